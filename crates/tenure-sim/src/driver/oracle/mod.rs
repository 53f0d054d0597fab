//! Judges the driver in true time, which no process can see.

mod keys;
mod sets;
mod slots;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use tenure::simulation::BeliefProbe;
use tenure_core::record::{Nonce, Record, Witness};
use tenure_core::{Drift, Timing};
use tenure_store::{Key, Purpose};

use super::executor::ThreadRole;
use super::server::AppliedWrite;
use super::world::{DriverWorld, try_world};
use super::{DriverFocus, Reached};
use crate::Invariant;
use crate::time::SECOND;

pub(in crate::driver) use keys::ShownEntry;
pub(in crate::driver) use slots::SlotWaiter;

use keys::KeyOracle;
use slots::SlotOracle;

/// State of the oracle.
#[derive(Default)]
pub(in crate::driver) struct DriverOracle {
    beliefs: Vec<UserBelief>,
    grants: BTreeMap<GrantId, Grant>,
    highest: BTreeMap<Key, u64>,
    groups: BTreeMap<Key, SlotOracle>,
    entries: KeyOracle,
    /// Number of beliefs that began.
    began: u32,
    /// Acquires that wait, by process and key.
    pub(in crate::driver) waiting: BTreeMap<(usize, Key), u32>,
    /// Processes that renew or release a plain key.
    pub(in crate::driver) alone: BTreeSet<(usize, Key)>,
    /// The greatest token that each coordinator has shown.
    pub(in crate::driver) shown: BTreeMap<(u64, Key), u64>,
    /// Time at which the shutdown of a coordinator had returned.
    pub(in crate::driver) shut_down: BTreeMap<u64, u64>,
    /// Coordinators whose shutdown has begun.
    pub(in crate::driver) shutting_down: BTreeSet<u64>,
    /// The greatest token of a write that the fenced value has confirmed.
    pub(in crate::driver) fenced: BTreeMap<Key, u64>,
}

/// A grant, by its key and its token.
pub(in crate::driver) type GrantId = (Key, u64);

/// A user that believes it holds a lease.
struct UserBelief {
    number: u32,
    process: usize,
    grant: GrantId,
    probe: Probe,
    ended: bool,
}

/// Reads a belief.
#[derive(Clone)]
pub(in crate::driver) enum Probe {
    Lease(BeliefProbe),
    /// The deadline of a handle, which its script sets; zero once the script has stopped.
    Handle(Rc<Cell<u64>>),
}

impl Probe {
    /// The deadline on the clock of the machine; `None` once the belief has ended for good.
    fn deadline(&self) -> Option<u64> {
        match self {
            Self::Lease(probe) => probe.deadline().map(|deadline| deadline.as_nanos()),
            Self::Handle(deadline) => Some(deadline.get()).filter(|deadline| *deadline > 0),
        }
    }
}

/// The life of a grant.
struct Grant {
    process: usize,
    granted_at: u64,
    term: Nonce,
    /// Time of its holder's clock at which its last applied write was sent.
    sent: u64,
    /// The same in true time, of its last renewal that was sent.
    renewal_sent: u64,
    /// Length of the belief after a write was sent.
    belief: u64,
    /// Time after which a contender may take over.
    ttl_and_drift: u64,
    period: u64,
    witness: Option<Arc<Witness>>,
    /// Number of users that have the lease.
    pub(in crate::driver) users: u32,
    /// True if a script has its handle.
    is_handle: bool,
    /// Number of pieces of work under it.
    works: u32,
    /// True time at which its user gave it up.
    given_up: Option<u64>,
    /// True if its user has asked for a renewal.
    renewal_asked: bool,
    ended: bool,
    unused_since: Option<u64>,
}

impl DriverWorld {
    /// Checks every belief: after each step of a task.
    pub(in crate::driver) fn judge(self: &Rc<Self>) {
        let now = self.now.get();
        let mut oracle = self.oracle.borrow_mut();
        let DriverOracle { beliefs, grants, groups, .. } = &mut *oracle;
        let mut believed: BTreeMap<&Key, (usize, u64)> = BTreeMap::new();
        for believer in beliefs.iter_mut() {
            let (process, (key, token)) = (believer.process, &believer.grant);
            let (alive, machine) = self.process(process, |it| (it.alive, it.machine));
            let local = self.machines[machine].clock.local(now);
            let deadline = believer.probe.deadline().filter(|_| alive);
            let is_handle = matches!(believer.probe, Probe::Handle(_));
            // A deadline that has passed without being checked is not latched, and stays in the past. A script may get its
            // next handle after the deadline of the one before.
            if let Some(deadline) =
                deadline.filter(|deadline| believer.ended && !is_handle && *deadline > local)
            {
                let sentence =
                    format!("process {process} believes again in {key} under token {token} until {deadline}");
                return self.violate(Invariant::S6, sentence);
            }
            let is_over = deadline.is_none_or(|deadline| deadline <= local);
            believer.ended = is_over || (believer.ended && !is_handle);
            let Some(deadline) = deadline.filter(|_| !believer.ended) else { continue };
            let Some(grant) = grants.get(&believer.grant) else {
                let sentence = format!(
                    "process {process} believes in {key} under token {token}, which was never granted"
                );
                return self.violate(Invariant::S5, sentence);
            };
            if deadline > grant.sent + grant.belief {
                let sentence = format!(
                    "process {process} believes in {key} under token {token} for {} ns longer than its last applied write \
                     allows",
                    deadline - grant.sent - grant.belief
                );
                return self.violate(Invariant::S5, sentence);
            }
            if matches!(believer.probe, Probe::Lease(_)) && !self.tasks.has(process, ThreadRole::Keeper) {
                let sentence =
                    format!("process {process} believes in {key} under token {token} without a keeper");
                return self.violate(Invariant::S6, sentence);
            }
            if let Some((other, theirs)) = believed.insert(key, (process, *token))
                && theirs != *token
            {
                let sentence = format!(
                    "processes {other} (token {theirs}) and {process} (token {token}) both believe in {key}"
                );
                return self.violate(Invariant::S2, sentence);
            }
        }
        beliefs.retain(|believer| {
            let is_kept = !believer.ended || believer.probe.deadline().is_some();
            if !is_kept
                && let Some(group) = believer.grant.0.group()
                && let Some(it) = groups.get_mut(&group)
            {
                it.judge.ends(believer.number);
            }
            is_kept
        });
    }

    /// Judges a write that a process is about to send.
    pub(in crate::driver) fn judge_send(
        self: &Rc<Self>,
        process: usize,
        key: &Key,
        record: &Arc<Record>,
        purpose: Purpose,
    ) {
        let now = self.now.get();
        if record.is_key() {
            return self.see_entry_sent(process, key, record, purpose);
        }
        let mut oracle = self.oracle.borrow_mut();
        let Some(grant) = oracle.grants.get_mut(&(key.clone(), record.token.get())) else { return };
        if purpose != Purpose::Renewal || record.term != grant.term {
            return;
        }
        // A renewal that waits for a place is withdrawn.
        if self.plan.focus == DriverFocus::Crowded
            && grant.given_up.is_some_and(|given_up| given_up + WITHDRAWN_MAX < now)
        {
            let sentence =
                format!("process {process} sends a renewal of {key} that was released while it waited");
            return self.violate(Invariant::S6, sentence);
        }
        // The next renewal is not due before nine tenths of a period after the last one.
        if let Some(given_up) = grant.given_up
            && self.plan.focus.is_calm()
            && !grant.renewal_asked
            && given_up < grant.renewal_sent + grant.period * 8 / 10
        {
            let sentence = format!("process {process} renews {key} after its user has released it");
            self.violate(Invariant::S6, sentence);
        }
        grant.renewal_sent = now;
    }

    /// Judges a write that the store has applied.
    pub(in crate::driver) fn judge_write(self: &Rc<Self>, applied: &AppliedWrite<'_>) {
        let AppliedWrite { process, key, .. } = *applied;
        if self.plan.lies {
            return;
        }
        if applied.before == Some(Err(())) && self.plan.keys.contains(key) {
            return self
                .violate(Invariant::S9, format!("process {process} overwrote foreign bytes under {key}"));
        }
        let Some(record) = applied.record.as_ref() else { return };
        if record.is_key() {
            return self.judge_entry(applied, record);
        }
        let before = applied.before.as_ref().and_then(|before| before.as_ref().ok());
        self.note(
            format_args!("store"),
            record.token.get(),
            format_args!(
                "{key}: {:?} by process {process}, token {}, {}",
                applied.write.purpose,
                record.token,
                if record.is_held() { "held" } else { "not held" }
            ),
        );
        let mut oracle = self.oracle.borrow_mut();
        let id = (key.clone(), record.token.get());
        if let Some(before) = before.filter(|before| before.is_held()) {
            let is_over = !record.is_held() || record.term != before.term;
            if is_over && let Some(grant) = oracle.grants.get_mut(&(key.clone(), before.token.get())) {
                grant.ended = true;
                if applied.write.purpose == Purpose::Release && grant.works > 0 {
                    let sentence = format!("{key} was vacated by process {process} while its work went on");
                    return self.violate(Invariant::S6, sentence);
                }
            }
        }
        if !record.is_held() {
            return;
        }
        if before.is_none_or(|before| before.term != record.term || !before.is_held()) {
            self.reach(Reached::Grant);
            let highest = oracle.highest.entry(key.clone()).or_default();
            if id.1 <= *highest {
                let sentence = format!("{key} was granted with token {} after token {highest}", id.1);
                return self.violate(Invariant::S1, sentence);
            }
            *highest = id.1;
            let ttl = record.ttl.map(|ttl| ttl.as_duration()).unwrap_or_default();
            let grant = Grant {
                process,
                granted_at: self.now.get(),
                term: record.term,
                sent: applied.sent,
                renewal_sent: self.now.get(),
                belief: Drift::default().shorten(ttl).as_nanos() as u64,
                ttl_and_drift: Drift::default().lengthen(ttl).as_nanos() as u64,
                period: Timing::new(ttl).map(|timing| timing.period().as_nanos() as u64).unwrap_or_default(),
                witness: record.witness.clone(),
                users: 0,
                is_handle: false,
                works: 0,
                given_up: None,
                renewal_asked: false,
                ended: false,
                unused_since: None,
            };
            oracle.grants.insert(id.clone(), grant);
        } else if matches!(applied.write.purpose, Purpose::Renewal | Purpose::Resumption) {
            self.reach(Reached::Renewal);
            if let Some(grant) = oracle.grants.get_mut(&id) {
                grant.sent = grant.sent.max(applied.sent);
                grant.witness.clone_from(&record.witness);
                // A term that another process resumes is its own from then on.
                grant.process = process;
            }
        }
        drop(oracle);
        // A revocation keeps the witness of the holder.
        if applied.write.purpose != Purpose::Change {
            self.judge_witness(process, key, record);
        }
    }

    /// Without faults, the record of a witnessed lease names a witness that is locked and lists its nonce.
    fn judge_witness(self: &Rc<Self>, process: usize, key: &Key, record: &Record) {
        if !(self.plan.focus.is_calm() && self.plan.witnesses && record.secret_hash.is_none()) {
            return;
        }
        let Some(witness) = &record.witness else {
            return self
                .violate(Invariant::W1, format!("process {process} was granted {key} without its witness"));
        };
        let machine = self.process(process, |it| it.machine);
        let seen =
            self.machines[machine].kernel.borrow_mut().sighting(witness, record.nonce).unwrap_or_default();
        if !(seen.lists_nonce && seen.guards_locked) {
            let sentence =
                format!("the witness of {key} does not prove that process {process} lives: {seen:?}");
            self.violate(Invariant::W1, sentence);
        }
    }

    /// Checks, from time to time, that no grant stays unused.
    pub(in crate::driver) fn judge_unused(self: &Rc<Self>) {
        let now = self.now.get();
        let bounded = self.healed.get() || self.plan.focus.is_calm();
        let held: Vec<GrantId> = {
            let server = self.server.borrow();
            let records = server.records().filter(|(_, record)| record.is_held());
            records.map(|(key, record)| (key.clone(), record.token.get())).collect()
        };
        let mut oracle = self.oracle.borrow_mut();
        let DriverOracle { grants, waiting, .. } = &mut *oracle;
        for id in held {
            let Some(grant) = grants.get_mut(&id) else { continue };
            let waits = waiting.get(&(grant.process, id.0.clone())).is_some_and(|count| *count > 0);
            let (alive, troubled, bereft) =
                self.process(grant.process, |it| (it.alive, it.troubled_until > now, it.keeper_killed));
            let local = self.machines[self.process(grant.process, |it| it.machine)].clock.local(now);
            // After its ttl a record has run out for every contender that watches it. Its holder tries one vacate and then stops.
            let lapsed = local >= grant.sent + grant.ttl_and_drift;
            let excused = grant.users > 0 || grant.is_handle || grant.works > 0 || waits || lapsed;
            if excused || !alive || troubled || bereft || !bounded {
                grant.unused_since = None;
                continue;
            }
            let since = *grant.unused_since.get_or_insert(now);
            if now - since > UNUSED_MIN.max(grant.belief * 6 / 10) {
                let sentence = format!(
                    "process {} was granted {} with token {}, it has no user, and it is not vacated",
                    grant.process, id.0, id.1
                );
                return self.violate(Invariant::S11, sentence);
            }
        }
    }

    /// A user has got a lease, or a script the handle of one.
    pub(in crate::driver) fn own(
        self: &Rc<Self>,
        process: usize,
        key: &Key,
        token: u64,
        probe: Probe,
    ) -> Owned {
        let grant = (key.clone(), token);
        if self.plan.lies {
            self.violate(Invariant::S7, format!("process {process} was granted {key} on a store that lies"));
        }
        let mut oracle = self.oracle.borrow_mut();
        if let Some(it) = oracle.grants.get_mut(&grant) {
            it.users += 1;
            // A term that is resumed goes on.
            it.given_up = None;
            it.is_handle = matches!(probe, Probe::Handle(_));
        }
        oracle.began += 1;
        let number = oracle.began;
        oracle.beliefs.push(UserBelief { number, process, grant: grant.clone(), probe, ended: false });
        drop(oracle);
        self.judge();
        Owned(grant)
    }

    pub(in crate::driver) fn with_grant<T>(
        &self,
        id: &GrantId,
        with: impl FnOnce(&mut GrantView<'_>) -> T,
    ) -> Option<T> {
        self.oracle.borrow_mut().grants.get_mut(id).map(|grant| with(&mut GrantView(grant)))
    }

    /// Checks a grant that a user has got: its coordinator was not shut down before.
    pub(in crate::driver) fn judge_granted(self: &Rc<Self>, process: usize, coordinator: u64, id: &GrantId) {
        let oracle = self.oracle.borrow();
        let (shut_down, grant) = (oracle.shut_down.get(&coordinator), oracle.grants.get(id));
        if let (Some(shut_down), Some(grant)) = (shut_down, grant)
            && grant.granted_at > *shut_down
        {
            let sentence = format!("process {process} was granted {} after its shutdown", id.0);
            self.violate(Invariant::S11, sentence);
        }
    }

    /// Checks after a release: its witness is gone before the answer.
    pub(in crate::driver) fn judge_released(self: &Rc<Self>, process: usize, id: &GrantId) {
        let witness = self.oracle.borrow().grants.get(id).and_then(|grant| grant.witness.clone());
        if let Some(witness) = witness.filter(|_| self.plan.focus.is_calm()) {
            let machine = self.process(process, |it| it.machine);
            if self.machines[machine].kernel.borrow_mut().has(&witness) {
                let sentence =
                    format!("the release of {} was answered while its witness was still there", id.0);
                self.violate(Invariant::W1, sentence);
            }
        }
    }

    /// Checks a poll of work: only while the lease is held.
    pub(in crate::driver) fn judge_work(self: &Rc<Self>, process: usize, id: &GrantId, probe: &Probe) {
        let machine = self.process(process, |it| it.machine);
        let local = self.machines[machine].clock.local(self.now.get());
        let is_lost = match probe.deadline() {
            Some(deadline) => deadline <= local,
            // Another thread may latch the belief between the check and the poll, if the thread is preempted there.
            None => self.plan.preemption == 0,
        };
        if is_lost {
            let sentence = format!("the work of process {process} under {} is polled after the loss", id.0);
            self.violate(Invariant::S6, sentence);
        }
    }

    /// Checks a release that was polled once: the belief has ended.
    pub(in crate::driver) fn judge_latched(self: &Rc<Self>, process: usize, id: &GrantId, probe: &Probe) {
        if probe.deadline().is_some() {
            let sentence = format!("process {process} believes in {} after it has begun to release it", id.0);
            self.violate(Invariant::S6, sentence);
        }
    }

    /// Checks the witness of work: it stays locked.
    pub(in crate::driver) fn judge_witness_of_work(self: &Rc<Self>, process: usize, id: &GrantId) {
        let witness = self.oracle.borrow().grants.get(id).and_then(|grant| grant.witness.clone());
        let (Some(witness), false) = (witness, self.plan.loses_locks) else { return };
        let machine = self.process(process, |it| it.machine);
        let seen = self.machines[machine].kernel.borrow_mut().sighting(&witness, Nonce::ZERO);
        if seen.is_ok_and(|seen| !seen.guards_locked) {
            let sentence = format!("the witness of {} is unlocked while its work goes on", id.0);
            self.violate(Invariant::W1, sentence);
        }
    }

    pub(in crate::driver) fn is_whole(&self) -> bool {
        matches!(self.plan.focus, DriverFocus::Whole | DriverFocus::Paced | DriverFocus::Crowded)
    }
}

/// Access of the users to a grant.
pub(in crate::driver) struct GrantView<'a>(&'a mut Grant);

impl GrantView<'_> {
    pub(in crate::driver) fn change_works(&mut self, change: i32) {
        self.0.works = self.0.works.saturating_add_signed(change);
    }

    pub(in crate::driver) fn ask_for_renewal(&mut self) {
        self.0.renewal_asked = true;
    }

    pub(in crate::driver) fn give_up(&mut self, now: u64) {
        self.0.given_up.get_or_insert(now);
    }
}

/// A user has the lease.
pub(in crate::driver) struct Owned(pub(in crate::driver) GrantId);

impl Drop for Owned {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        let mut oracle = world.oracle.borrow_mut();
        if let Some(grant) = oracle.grants.get_mut(&self.0) {
            grant.users -= 1;
            grant.given_up.get_or_insert(world.now.get());
        }
    }
}

/// Longest time from a release to the sending of a renewal that already had its place: its nonce is listed first.
const WITHDRAWN_MAX: u64 = 2 * crate::time::MILLI;

/// A grant may stay unused for this long while everything works, or for six tenths of its ttl.
const UNUSED_MIN: u64 = 3 * SECOND / 2;
