//! Outages of the store.

use tenure_core::machine::Fault as CallFault;
use tenure_store::Reason;

use super::World;
use super::event::{Event, LeaseTarget};
use crate::Invariant;
use crate::oracle::holders_calls_are_few;
use crate::tally::Fault;
use crate::time::MILLI;

/// The latest outage of the store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outage {
    /// Its end.
    until: u64,
    manner: Manner,
}

/// The way in which calls fail during an outage.
#[derive(Clone, Copy, Debug, Default)]
enum Manner {
    /// The connection is refused at once: certainly no effect.
    #[default]
    Refuses,
    /// The connection breaks at once: the outcome is unknown.
    Breaks,
    /// There is no answer.
    Hangs,
}

impl World<'_> {
    pub(super) fn next_outage(&mut self) {
        let Some(outages) = &self.swarm.outages else { return };
        let at = self.outage.until.max(self.now) + self.rng.between(outages.apart, 3 * outages.apart);
        if at < self.swarm.length {
            self.agenda.push(at, Event::Outage);
        }
    }

    /// An outage begins.
    pub(super) fn goes_down(&mut self) {
        let Some(most) = self.swarm.outages.as_ref().map(|outages| outages.most) else { return };
        self.tally.fault(Fault::Outage);
        let span = self.rng.between(most / 4, most);
        let manner = self.rng.pick(&[Manner::Refuses, Manner::Breaks, Manner::Hangs]);
        self.outage = Outage { until: self.now + span, manner };
        let what = format_args!("is down for {} ms, and {manner:?}", span / MILLI);
        self.trace.line(self.now, format_args!("store"), what);
        self.next_outage();
    }

    pub(super) fn outage_ends(&mut self) {
        self.outage.until = self.now;
    }

    /// True if the store is down. The call then fails, now or when its sender gives up.
    pub(super) fn fails_by_outage(&mut self, target: LeaseTarget, call: u32, gives_up: u64) -> bool {
        if self.now >= self.outage.until {
            return false;
        }
        let soon = self.now + self.network.least;
        match self.outage.manner {
            Manner::Refuses => {
                let writing = self.lease(target).is_some_and(|lease| lease.writing);
                self.answer_soon(target, call, writing, CallFault::Refused(Reason::Unreachable));
            }
            Manner::Breaks => self.agenda.push(soon.min(gives_up), Event::Unanswered { target, call }),
            Manner::Hangs => self.agenda.push(gives_up, Event::Unanswered { target, call }),
        }
        true
    }

    /// L5: a holder sends one more call since its latest confirmed write.
    pub(super) fn count_holders_call(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target) else { return };
        if lease.kind.manual || !lease.machine.is_holding() {
            return;
        }
        lease.unconfirmed_calls += 1;
        let verdict = holders_calls_are_few(lease.unconfirmed_calls);
        self.oracle.judge(self.now, Invariant::L5, verdict);
    }
}
