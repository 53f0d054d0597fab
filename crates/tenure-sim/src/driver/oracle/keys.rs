//! K1, K2 and S5 of plain keys.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tenure::{KeyEntry, clock::Instant};
use tenure_core::Drift;
use tenure_core::keys::{KeyAnswer, KeyOperation, SeenEntry};
use tenure_core::machine::{Content, Purpose as WritePurpose, Rules, Standard, Write};
use tenure_core::record::{Nonce, Record};
use tenure_store::{Key, Purpose, Version};

use crate::Invariant;
use crate::driver::server::AppliedWrite;
use crate::driver::world::DriverWorld;
use crate::primitives::judges::{Entries, EntryOperation, EntryWrite};

/// The true history of all plain keys, and the operations of the users.
#[derive(Default)]
pub(super) struct KeyOracle {
    entries: BTreeMap<Key, Entries>,
    operations: Vec<UserOperation>,
    /// Every entry that a write made, by its revision.
    records: BTreeMap<(Key, u64), Vec<Arc<Record>>>,
    /// Hash of the secret of each process that has written an entry.
    secrets: BTreeMap<usize, [u8; 32]>,
}

struct UserOperation {
    process: usize,
    /// The connection of its process, which remembers what it has written.
    coordinator: u64,
    key: Key,
    facts: EntryOperation,
}

/// An entry, or none, as an operation showed it.
pub(in crate::driver) enum ShownEntry {
    Created(KeyEntry),
    Updated(KeyEntry),
    Renewed(KeyEntry),
    Released,
    Conflict(Option<KeyEntry>),
    Found(Option<KeyEntry>),
}

impl KeyOracle {
    /// Hash of the secret of a process. A process that has written no entry owns none.
    fn secret(&self, process: usize) -> [u8; 32] {
        self.secrets.get(&process).copied().unwrap_or_default()
    }

    /// The operation that sends this write: a change is known by its value. A process renews and releases a key by one
    /// operation at a time.
    fn sender(&self, process: usize, key: &Key, record: &Record, purpose: WritePurpose) -> Option<usize> {
        let is_sender = |it: &UserOperation| {
            it.process == process
                && it.key == *key
                && match (&it.facts.operation, purpose) {
                    (KeyOperation::Set { value, .. }, WritePurpose::Grant) => *value == record.value,
                    (KeyOperation::Renew, WritePurpose::Renew) => true,
                    (KeyOperation::Release, WritePurpose::Vacate) => true,
                    _ => false,
                }
        };
        self.operations.iter().rposition(is_sender)
    }

    /// The entries that were written with this revision at this time of their owner.
    fn seen(&self, entry: &KeyEntry) -> Vec<SeenEntry> {
        let records = self.records.get(&(entry.key.clone(), entry.revision.get()));
        let same = records.into_iter().flatten().filter(|record| record.written_at == entry.written_at);
        same.map(|record| SeenEntry { record: Arc::clone(record), remaining: entry.remaining }).collect()
    }

    /// The answers of the machine that this could be. Several entries of one millisecond look the same to users.
    fn answers(&self, shown: &ShownEntry) -> Vec<KeyAnswer> {
        let (entry, answer): (_, fn(SeenEntry) -> KeyAnswer) = match shown {
            ShownEntry::Created(entry) => (entry, KeyAnswer::Created),
            ShownEntry::Updated(entry) => (entry, KeyAnswer::Updated),
            ShownEntry::Renewed(entry) => (entry, KeyAnswer::Renewed),
            ShownEntry::Conflict(Some(entry)) => (entry, |seen| KeyAnswer::Conflict(Some(seen))),
            ShownEntry::Found(Some(entry)) => (entry, |seen| KeyAnswer::Found(Some(seen))),
            ShownEntry::Conflict(None) => return vec![KeyAnswer::Conflict(None)],
            ShownEntry::Found(None) => return vec![KeyAnswer::Found(None)],
            ShownEntry::Released => return vec![KeyAnswer::Released],
        };
        self.seen(entry).into_iter().map(answer).collect()
    }
}

impl DriverWorld {
    /// An operation of a user begins. Its number.
    pub(in crate::driver) fn begin_operation(
        &self,
        process: usize,
        coordinator: u64,
        key: &Key,
        operation: KeyOperation,
    ) -> usize {
        let mut oracle = self.oracle.borrow_mut();
        let entries = &mut oracle.entries;
        let secret_hash = entries.secret(process);
        let facts = EntryOperation { operation, secret_hash, began: self.now.get(), writes: Vec::new() };
        entries.operations.push(UserOperation { process, coordinator, key: key.clone(), facts });
        entries.operations.len() - 1
    }

    /// A write of a plain key is sent.
    pub(super) fn see_entry_sent(&self, process: usize, key: &Key, record: &Arc<Record>, purpose: Purpose) {
        if !self.plan.entries.contains(key) {
            return;
        }
        let machine = self.process(process, |it| it.machine);
        let sent = Instant::from_nanos(self.machines[machine].clock.local(self.now.get()));
        let present = self.server.borrow().record(key);
        let mut oracle = self.oracle.borrow_mut();
        let oracle = &mut oracle.entries;
        let purpose = purpose_of(purpose, record);
        let Some(sender) = oracle.sender(process, key, record, purpose) else { return };
        if let (WritePurpose::Grant, Some(hash)) = (purpose, record.secret_hash) {
            oracle.secrets.insert(process, hash);
        }
        let owner = oracle.secret(process);
        let UserOperation { coordinator, facts, .. } = &mut oracle.operations[sender];
        facts.writes.push(record.nonce);
        facts.secret_hash = owner;
        let revision = match &facts.operation {
            KeyOperation::Set { revision, .. } => Some(revision.get()),
            _ => None,
        };
        let entries = oracle.entries.entry(key.clone()).or_default();
        let by = (process as u16, *coordinator as u32);
        // A thread that is preempted between its check and its request sends late.
        let is_late = |present: Arc<Record>| {
            let (before, ttl) = (entries.own_sent(present.nonce, by)?, present.ttl?);
            let deadline = Standard.deadline(before, before, ttl, Drift::DEFAULT);
            Some(purpose == WritePurpose::Renew && !Standard.may_go_on(sent, deadline))
        };
        let late = self.plan.preemption == 0 && present.and_then(is_late).unwrap_or_default();
        entries.sends(record.nonce, EntryWrite { revision, owner, knew_run_out: false, late, by, sent });
    }

    /// A write of a plain key was applied.
    pub(super) fn judge_entry(self: &Rc<Self>, applied: &AppliedWrite<'_>, record: &Arc<Record>) {
        self.see_size(applied.key, record);
        if !self.plan.entries.contains(applied.key) {
            return;
        }
        let (key, purpose) = (applied.key, purpose_of(applied.write.purpose, record));
        self.note(
            format_args!("store"),
            record.token.get(),
            format_args!("{key}: {purpose:?} by process {}, revision {}", applied.process, record.token),
        );
        let before = match &applied.before {
            Some(Ok(before)) => Content::Record(Arc::clone(before), Version::new("before")),
            Some(Err(())) | None => Content::Absent,
        };
        let write = Write { purpose, expect: applied.write.expect.clone(), record: Arc::clone(record) };
        let mut oracle = self.oracle.borrow_mut();
        let oracle = &mut oracle.entries;
        if record.is_held() {
            let made = oracle.records.entry((key.clone(), record.token.get())).or_default();
            made.push(Arc::clone(record));
        }
        let judgements =
            oracle.entries.entry(key.clone()).or_default().applies(self.now.get(), &before, &write);
        for (invariant, judgement) in
            [Invariant::K1, Invariant::K2, Invariant::S5].into_iter().zip(judgements)
        {
            if let Err(sentence) = judgement {
                self.violate(invariant, format!("{key}, by process {}: {sentence}", applied.process));
            }
        }
    }

    /// A copy of a write conflicts.
    pub(in crate::driver) fn see_conflict(&self, key: &Key, nonce: Nonce) {
        if let Some(entries) = self.oracle.borrow_mut().entries.entries.get_mut(key) {
            entries.conflicts(nonce);
        }
    }

    /// Checks the answer to an operation of a user.
    pub(in crate::driver) fn judge_shown(self: &Rc<Self>, operation: usize, shown: &ShownEntry) {
        if self.plan.lies {
            return;
        }
        let now = self.now.get();
        let mut oracle = self.oracle.borrow_mut();
        let oracle = &mut oracle.entries;
        let answers = oracle.answers(shown);
        let UserOperation { process, key, facts, .. } = &oracle.operations[operation];
        let entries = oracle.entries.entry(key.clone()).or_default();
        let judgements = answers.iter().map(|answer| {
            let linearizable = entries.is_linearizable(now, facts, answer);
            let linearizable = linearizable.map_err(|sentence| (Invariant::K1, sentence));
            linearizable.and_then(|()| {
                entries.is_truthful(facts, answer).map_err(|sentence| (Invariant::S5, sentence))
            })
        });
        let mut judgement =
            Err((Invariant::K1, "an operation showed an entry that no write made".to_owned()));
        for each in judgements {
            judgement = each;
            if judgement.is_ok() {
                break;
            }
        }
        if let Err((invariant, sentence)) = judgement {
            let operation = &facts.operation;
            self.violate(invariant, format!("{key}, process {process}, {operation:?}: {sentence}"));
        }
    }
}

fn purpose_of(purpose: Purpose, record: &Record) -> WritePurpose {
    match purpose {
        Purpose::Renewal => WritePurpose::Renew,
        Purpose::Release => WritePurpose::Vacate,
        _ if record.is_held() => WritePurpose::Grant,
        _ => WritePurpose::Plant,
    }
}
