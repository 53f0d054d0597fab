//! The fate of a call on its way to the store and back: lost, late, duplicated, or retried on the way.

use std::time::Duration;

use tenure_core::machine::Fault as CallFault;
use tenure_store::Reason;

use crate::rng::Rng;
use crate::swarm::Network;
use crate::tally::{Fault, Tally};
use crate::time::SECOND;

/// Connection of one process to the store.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Messages that a partition blocks now.
    pub(crate) cut: Cut,
    /// Number of partitions; distinguishes the ends of two partitions.
    pub(crate) cuts: u32,
    /// Time of the last lost message.
    lost_at: u64,
}

/// Messages that a partition blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) requests: bool,
    pub(crate) answers: bool,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// A call that a process sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) now: u64,
    pub(crate) writing: bool,
    /// True if the store is overloaded.
    pub(crate) storm: bool,
    /// Time at which the sender gives up.
    pub(crate) gives_up: u64,
    /// Ttl of the sender: losses of one process may have to be apart.
    pub(crate) ttl: u64,
}

/// The fate of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Passage {
    /// It fails at once, and nothing was sent.
    Fails(CallFault),
    /// The request is lost.
    Lost,
    /// The request arrives.
    Flies(Flight),
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// Time of arrival of each copy.
    pub(crate) arrivals: [u64; 2],
    /// Number of copies.
    pub(crate) copies: u8,
    /// The copy whose answer returns.
    pub(crate) answering: u8,
    /// True if the answer is that the store is overloaded, whatever the store did.
    pub(crate) throttled: bool,
    /// Time at which the sender stops to wait, if it does so before the answer.
    pub(crate) unanswered: Option<u64>,
}

impl Cut {
    /// Every partition that may strike, with its name in the tally.
    pub(crate) const KINDS: &[(Self, Fault)] = &[
        (Self { requests: true, answers: true, reads: false, writes: false }, Fault::CutFull),
        (Self { requests: true, answers: false, reads: false, writes: false }, Fault::CutRequests),
        (Self { requests: false, answers: true, reads: false, writes: false }, Fault::CutAnswers),
        (Self { requests: false, answers: false, reads: true, writes: false }, Fault::CutReads),
        (Self { requests: false, answers: false, reads: false, writes: true }, Fault::CutWrites),
    ];
}

impl Network {
    /// Draws the fate of a call.
    pub(crate) fn send(&self, rng: &mut Rng, tally: &mut Tally, link: &mut Link, call: Departure) -> Passage {
        let Departure { now, writing, storm, gives_up, ttl } = call;
        let cut = link.cut;
        let is_cut = cut.requests || (writing && cut.writes) || (!writing && cut.reads);
        if rng.chance(self.unreachable) || (is_cut && rng.chance(100)) {
            tally.fault(Fault::Unreachable);
            return Passage::Fails(CallFault::Refused(Reason::Unreachable));
        }
        let storm = storm && rng.chance(600);
        let throttled = storm && rng.chance(500);
        if storm && !throttled {
            tally.fault(Fault::ThrottledBefore);
            let after = rng.chance(500).then(|| Duration::from_millis(rng.between(1, 500)));
            return Passage::Fails(CallFault::Throttled(after));
        }
        if is_cut || self.loses(rng, link, now, ttl, self.request_loss) {
            tally.fault(Fault::RequestLost);
            return Passage::Lost;
        }
        let arrivals = [self.arrival(rng, tally, now), 0];
        let mut flight = Flight { arrivals, copies: 1, answering: 0, throttled, unanswered: None };
        if rng.chance(self.duplicate) {
            tally.fault(Fault::Duplicated);
            flight.arrivals[1] = arrivals[0] + rng.skewed(0, self.spike_most);
            flight.copies = 2;
        } else if rng.chance(self.balance) {
            tally.fault(Fault::Balanced);
            flight.arrivals[1] = arrivals[0] + self.one_way(rng);
            flight.copies = 2;
            flight.answering = 1;
        }
        if rng.chance(self.reset) {
            tally.fault(Fault::Reset);
            flight.unanswered = Some((now + self.one_way(rng)).min(gives_up));
        } else if flight.arrivals[flight.answering as usize] >= gives_up {
            flight.unanswered = Some(gives_up);
        }
        Passage::Flies(flight)
    }

    /// Draws the time at which the answer to a call arrives; `None` if it is lost, or comes after its sender gave up.
    pub(crate) fn answer(
        &self,
        rng: &mut Rng,
        tally: &mut Tally,
        link: &mut Link,
        call: Departure,
    ) -> Option<u64> {
        let lost = link.cut.answers || self.loses(rng, link, call.now, call.ttl, self.answer_loss);
        let at = self.arrival(rng, tally, call.now);
        if lost || at >= call.gives_up {
            tally.fault(Fault::AnswerLost);
            return None;
        }
        Some(at)
    }

    /// Time of arrival of a message that is sent now.
    pub(crate) fn arrival(&self, rng: &mut Rng, tally: &mut Tally, now: u64) -> u64 {
        let mut at = now + self.one_way(rng);
        if rng.chance(self.spike) {
            tally.fault(Fault::Spike);
            at += rng.skewed(0, self.spike_most);
        }
        at.next_multiple_of(self.quantum)
    }

    /// Delay in one direction.
    fn one_way(&self, rng: &mut Rng) -> u64 {
        self.least + rng.skewed(0, self.spread)
    }

    /// True if a message on this link is lost.
    fn loses(&self, rng: &mut Rng, link: &mut Link, now: u64, ttl: u64, chance: u32) -> bool {
        if !rng.chance(chance) {
            return false;
        }
        let apart = self.loss_apart * 2 * ttl;
        let allowed = apart == 0 || now.saturating_sub(link.lost_at) >= apart.max(SECOND);
        if allowed {
            link.lost_at = now;
        }
        allowed
    }
}
