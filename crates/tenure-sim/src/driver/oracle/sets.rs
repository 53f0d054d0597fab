//! A1 and S11 of sets: all of a set is held, or nothing.

use std::rc::Rc;
use std::sync::Arc;

use tenure_core::record::Record;
use tenure_store::Key;

use super::{GrantId, Probe, UNUSED_MIN};
use crate::Invariant;
use crate::driver::world::DriverWorld;
use crate::primitives::judges::{believes_only_whole, leaves_nothing_held};

impl DriverWorld {
    /// For each lease of a set, true if it is held.
    pub(in crate::driver) fn held_members(&self, process: usize, members: &[(GrantId, Probe)]) -> Vec<bool> {
        let machine = self.process(process, |it| it.machine);
        let local = self.machines[machine].clock.local(self.now.get());
        members.iter().map(|(_, probe)| probe.deadline().is_some_and(|deadline| deadline > local)).collect()
    }

    /// Checks a set that is believed, or whose work is polled. `held` was read before.
    pub(in crate::driver) fn judge_set(self: &Rc<Self>, process: usize, believes: bool, held: &[bool]) {
        if let Err(sentence) = believes_only_whole(believes, held) {
            self.violate(Invariant::A1, format!("process {process}: {sentence}"));
        }
    }

    /// Checks a set that was denied, whose grants have this value: without faults, no lease is held that had been granted to
    /// it. The keeper vacates a grant that landed after the end of the wait.
    pub(in crate::driver) fn judge_denied_set(self: &Rc<Self>, process: usize, value: &str) {
        // While its credentials are wrong, the process cannot vacate anything.
        let is_troubled = self.process(process, |it| it.troubled_until) > self.now.get();
        if !self.plan.focus.is_calm() || is_troubled {
            return;
        }
        let (server, oracle) = (self.server.borrow(), self.oracle.borrow());
        let is_kept = |(key, record): &(&Key, &Arc<Record>)| {
            // The value stays in the record: the key may be held by another user.
            let others_wait = oracle.waiting.get(&(process, (*key).clone())).is_some_and(|count| *count > 1);
            let grant = oracle.grants.get(&((*key).clone(), record.token.get()));
            let is_its_own = grant.is_some_and(|grant| {
                let is_old = self.now.get() - grant.granted_at > UNUSED_MIN;
                grant.process == process && grant.users == 0 && is_old
            });
            record.is_held() && &*record.value == value && is_its_own && !others_wait
        };
        if let Err(sentence) = leaves_nothing_held(server.records().filter(is_kept).count()) {
            self.violate(Invariant::S11, format!("process {process}: {sentence}"));
        }
    }
}
