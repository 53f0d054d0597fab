//! One machine of many: its connection to the store, and the network in between.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure::Coordinator;
use tenure_testkit::{Counts, ErrorAnswer, Fault, FaultyProxy, InstalledRule, Rule};

use super::ground::Ground;
use super::tally::{Of, Tally};

/// A coordinator with a separate proxy, so that a fault of one machine does not affect the others.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) coordinator: Coordinator,
    proxy: FaultyProxy,
    ttl: Duration,
    faults: Mutex<Vec<(What, InstalledRule)>>,
}

/// Kind of fault that a rule counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Lost,
    Late {
        past_the_ttl: bool,
    },
    Partition,
    Storm,
    /// A fault without a quota.
    Uncounted,
}

impl Machine {
    /// Connects while the network is still good. A trusting machine does not check whether the store keeps its
    /// promises.
    pub(crate) async fn on(ground: &impl Ground, ttl: Duration, trusting: bool) -> Self {
        let proxy = ground.proxy();
        let (builder, store) = (Coordinator::builder(), ground.store_through(&proxy));
        let connected = if trusting {
            builder.connect_dangerously_unchecked(store).await
        } else {
            builder.connect(store).await
        };
        let coordinator = connected.unwrap();
        Self { coordinator, proxy, ttl, faults: Mutex::default() }
    }

    /// From now on answers to writes are lost, each with this probability; and also some requests and halves of
    /// answers.
    pub(crate) fn lose_answers(&self, chance: f64, seed: u64) {
        let faults = [
            (What::Lost, Rule::new(Fault::CutAfter)),
            (What::Lost, Rule::new(Fault::CutAfter).orderly()),
            // Longer than any call waits for it.
            (What::Lost, Rule::new(Fault::SwallowAnswer(self.ttl / 5))),
            (What::Uncounted, Rule::new(Fault::CutBefore)),
            (What::Uncounted, Rule::new(Fault::CutMidAnswer)),
        ];
        for (seed, (what, rule)) in (seed..).zip(faults) {
            self.install(what, rule.writes().chance(chance / 3.0, seed));
        }
    }

    /// From now on writes arrive late or twice, each with this probability: some of them after their ttl.
    pub(crate) fn deliver_late(&self, chance: f64, seed: u64) {
        let (soon, late) = (self.ttl / 8, self.ttl * 5 / 4);
        let faults = [
            (false, Fault::CutThenDeliver(soon)),
            (true, Fault::CutThenDeliver(late)),
            (true, Fault::HangThenDeliver(late)),
            (false, Fault::AgainLater(soon)),
            (true, Fault::AgainLater(late)),
            (false, Fault::TwiceFirstAnswer),
            (false, Fault::TwiceSecondAnswer),
        ];
        let faults: Vec<_> = faults.into_iter().filter(|(_, fault)| self.proxy.can_inject(*fault)).collect();
        let chance = chance / faults.len() as f64;
        for (seed, (past_the_ttl, fault)) in (seed..).zip(faults) {
            self.install(What::Late { past_the_ttl }, Rule::new(fault).writes().chance(chance, seed));
        }
    }

    /// Cuts the machine off from the store until [`mend`](Self::mend).
    pub(crate) fn cut_off(&self, rng: &mut fastrand::Rng) -> InstalledRule {
        // No call waits this long for an answer.
        let long = self.ttl;
        let (there, back) = (Rule::new(Fault::SwallowRequest(long)), Rule::new(Fault::SwallowAnswer(long)));
        let rule = match rng.u8(..6) {
            0 => there,
            1 => back,
            2 => there.reads(),
            3 => there.writes(),
            4 => back.writes(),
            _ => {
                self.proxy.cut_connections();
                there
            }
        };
        self.install(What::Partition, rule)
    }

    /// The server is overloaded, or slow, until [`mend`](Self::mend).
    pub(crate) fn storm(&self, rng: &mut fastrand::Rng) -> InstalledRule {
        let answer = *rng.choice(&ANSWERS).unwrap();
        let delay = self.ttl.mul_f64(3.0 * rng.f64());
        let fault = match rng.u8(..6) {
            0 | 1 => Fault::AnswerInstead(answer),
            2 | 3 => Fault::AnswerAfter(answer),
            4 => Fault::DelayRequest(delay),
            _ => Fault::DelayAnswer(delay),
        };
        // Where a proxy invents no answers, the server is only slow.
        let fault = if self.proxy.can_inject(fault) { fault } else { Fault::DelayAnswer(delay) };
        self.install(What::Storm, Rule::new(fault).chance(0.7, rng.u64(..)))
    }

    /// From now on the network has no faults.
    pub(crate) fn mend(&self) {
        for (_, rule) in self.faults().iter() {
            rule.remove();
        }
    }

    /// Waits until no earlier request is in flight.
    pub(crate) fn settle(&self) {
        // The longest delay of a storm, and as much again for a busy machine.
        self.proxy.settle(self.ttl * 6 + Duration::from_secs(10));
    }

    /// Faults that have happened so far.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for (what, rule) in self.faults().iter() {
            let Counts { installed, applied, .. } = rule.counts();
            match what {
                What::Lost => tally[Of::LostAnswer] += applied,
                What::Late { past_the_ttl } => {
                    tally[Of::LateWrite] += installed;
                    tally[Of::LatePastTheTtl] += if *past_the_ttl { installed } else { 0 };
                    tally[Of::LateApplied] += applied;
                }
                // A partition that affected no request does not count.
                What::Partition => tally[Of::Partition] += u64::from(installed > 0),
                What::Storm => {
                    tally[Of::Storm] += installed;
                    tally[Of::StormApplied] += applied;
                }
                What::Uncounted => {}
            }
        }
        tally
    }

    fn install(&self, what: What, rule: Rule) -> InstalledRule {
        let rule = self.proxy.install(rule);
        self.faults().push((what, rule.clone()));
        rule
    }

    fn faults(&self) -> std::sync::MutexGuard<'_, Vec<(What, InstalledRule)>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers of an overloaded server.
pub(crate) const ANSWERS: [ErrorAnswer; 5] = [
    ErrorAnswer::CONFLICT,
    ErrorAnswer::TOO_MANY,
    ErrorAnswer::INTERNAL,
    ErrorAnswer::SLOW_DOWN,
    ErrorAnswer::UNAVAILABLE,
];
