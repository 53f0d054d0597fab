use std::collections::{HashMap, HashSet};

use tenure_core::Instant;
use tenure_core::keys::{KeyAnswer, KeyDenied, KeyOperation, SeenEntry};
use tenure_core::machine::{Content, Purpose, Write};
use tenure_core::record::{Nonce, Record};

use super::{only_by_its_owner, replaces_what_it_expects};
use crate::oracle::Judgement;

/// The true history of one plain key, and what is known of the writes that were sent.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// The contents, the latest at the end.
    epochs: Vec<Epoch>,
    sent: HashMap<Nonce, EntryWrite>,
    applied: HashMap<Nonce, Purpose>,
    /// Applied writes that were sent again on the way, and whose sender got the answer to the second copy.
    retried: HashSet<Nonce>,
    /// Writes of operations that have answered that nothing was changed.
    denied: HashMap<Nonce, &'static str>,
}

/// A content of a plain key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    /// True time at which it began.
    from: u64,
    /// The entry; `None` if there is none.
    entry: Option<TrueEntry>,
}

/// An entry, as it really was.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrueEntry {
    nonce: Nonce,
    /// Its ttl in nanoseconds; `None` if it never runs out.
    ttl: Option<u64>,
    owner: Option<[u8; 32]>,
}

/// Facts about a write when it was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryWrite {
    /// The expected revision of a change.
    pub(crate) revision: Option<u64>,
    /// Hash of the secret of the sender.
    pub(crate) owner: [u8; 32],
    /// True if the sender knew that the present entry had run out.
    pub(crate) knew_run_out: bool,
    /// True for a renewal of an own entry that may have run out for another participant.
    pub(crate) late: bool,
    /// The sender: its process and incarnation.
    pub(crate) by: (u16, u32),
    /// The instant before it was sent, on the clock of the process.
    pub(crate) sent: Instant,
}

/// Facts about an operation on a plain key.
#[derive(Clone, Debug)]
pub(crate) struct EntryOperation {
    pub(crate) operation: KeyOperation,
    /// Hash of the secret of its owner.
    pub(crate) secret_hash: [u8; 32],
    /// True time at which it began.
    pub(crate) began: u64,
    /// The nonces of its writes, without a plant.
    pub(crate) writes: Vec<Nonce>,
}

impl Entries {
    /// A write is sent.
    pub(crate) fn sends(&mut self, nonce: Nonce, fact: EntryWrite) {
        self.sent.insert(nonce, fact);
    }

    /// The instant before this write was sent, if this incarnation of this process has sent it.
    pub(crate) fn own_sent(&self, nonce: Nonce, by: (u16, u32)) -> Option<Instant> {
        self.sent.get(&nonce).filter(|fact| fact.by == by).map(|fact| fact.sent)
    }

    /// A write replaces this content. The first judgement is that of K1, the second that of K2, the third that of S5.
    pub(crate) fn applies(&mut self, now: u64, before: &Content, write: &Write) -> [Judgement; 3] {
        let nonce = write.record.nonce;
        let since = self.epochs.last().map_or(0, |epoch| epoch.from);
        let verdicts = match (self.sent.get(&nonce), before) {
            (Some(fact), Content::Record(old, _)) => [
                replaces_what_it_expects(*fact, write, old, now - since),
                only_by_its_owner(*fact, write, old),
                self.denied.get(&nonce).map_or(Ok(()), |answer| {
                    Err(format!("a write was applied after its operation had answered {answer}"))
                }),
            ],
            _ => [Ok(()), Ok(()), Ok(())],
        };
        self.applied.insert(nonce, write.purpose);
        self.epochs.push(Epoch { from: now, entry: TrueEntry::of(&write.record) });
        verdicts
    }

    /// A copy of a write conflicts. True if the store has applied another copy of it, and the sender does not learn so.
    pub(crate) fn conflicts(&mut self, nonce: Nonce) -> bool {
        self.applied.contains_key(&nonce) && self.retried.insert(nonce)
    }

    /// The record was deleted from outside.
    pub(crate) fn deleted(&mut self, now: u64) {
        self.epochs.push(Epoch { from: now, entry: None });
    }

    /// S5: the answer agrees with what the store applied.
    ///
    /// A conflict is the store's word that a change was not applied. If a balancer has sent the change twice, the word is
    /// about the second copy. Such a change is found by its nonce, unless another participant has replaced it before it
    /// is read back: that is outside the promise.
    pub(crate) fn is_truthful(&mut self, call: &EntryOperation, answer: &KeyAnswer) -> Judgement {
        let landed = |purpose: Purpose| call.writes.iter().any(|it| self.applied.get(it) == Some(&purpose));
        let (claims, word) = match answer {
            KeyAnswer::Created(_) => (Some(Purpose::Grant), "created"),
            KeyAnswer::Updated(_) => (Some(Purpose::Grant), "updated"),
            KeyAnswer::Renewed(_) => (Some(Purpose::Renew), "renewed"),
            KeyAnswer::Released => (Some(Purpose::Vacate), "released"),
            KeyAnswer::Conflict(_) => (None, "conflict"),
            KeyAnswer::Found(_) => (None, "found"),
            KeyAnswer::Denied { in_doubt: false, .. } => (None, "denied without doubt"),
            KeyAnswer::Denied { in_doubt: true, .. } => return Ok(()),
        };
        if let Some(purpose) = claims {
            return if landed(purpose) {
                Ok(())
            } else {
                Err(format!("an operation answered {word}, but the store never applied its write"))
            };
        }
        let present = self.epochs.last().and_then(|epoch| epoch.entry).map(|entry| entry.nonce);
        let excused = |nonce: &Nonce| self.retried.contains(nonce) && present != Some(*nonce);
        if call.writes.iter().any(|nonce| self.applied.contains_key(nonce) && !excused(nonce)) {
            return Err(format!("an operation answered {word}, but the store has applied its write"));
        }
        self.denied.extend(call.writes.iter().map(|nonce| (*nonce, word)));
        Ok(())
    }

    /// K1: an answer that shows an entry, or that there is none, was true at some instant of the operation.
    pub(crate) fn is_linearizable(&self, now: u64, call: &EntryOperation, answer: &KeyAnswer) -> Judgement {
        let (shown, early) = match answer {
            KeyAnswer::Found(shown) | KeyAnswer::Conflict(shown) => (shown.as_ref(), false),
            KeyAnswer::Denied { why: KeyDenied::NotOwner(shown), .. } => (Some(shown), false),
            // The owner stops earlier than the others, and counts from before the entry was written.
            KeyAnswer::Denied { why: KeyDenied::NoEntry, .. } => (None, true),
            _ => return Ok(()),
        };
        if let (KeyOperation::Set { revision, .. }, KeyAnswer::Conflict(Some(shown))) =
            (&call.operation, answer)
            && shown.record.token == *revision
        {
            return Err(format!("a change of revision {revision} answered a conflict with that revision"));
        }
        let fits = |epoch: &Epoch, end: u64| match (shown, epoch.entry) {
            (Some(shown), Some(entry)) => shown.record.nonce == entry.nonce,
            (Some(_), None) => false,
            (None, None) => true,
            (None, Some(entry)) => {
                let mine = early && entry.owner == Some(call.secret_hash);
                mine || entry.ttl.is_some_and(|ttl| end - epoch.from >= ttl)
            }
        };
        let mut end = now;
        for epoch in self.epochs.iter().rev() {
            if end < call.began {
                break;
            }
            if fits(epoch, end) {
                return Ok(());
            }
            end = epoch.from;
        }
        // Before its first content, the key had none.
        if shown.is_none() && end >= call.began && self.epochs.first().is_none_or(|first| first.from == end) {
            return Ok(());
        }
        let shown = shown.map_or_else(
            || "no entry".to_owned(),
            |shown: &SeenEntry| format!("revision {} of write {}", shown.record.token, shown.record.nonce),
        );
        Err(format!("an operation showed {shown}, which was not the content at any time of the operation"))
    }
}

impl TrueEntry {
    fn of(record: &Record) -> Option<Self> {
        let ttl = record.ttl.map(|ttl| ttl.as_duration().as_nanos() as u64);
        record.is_held().then_some(Self { nonce: record.nonce, ttl, owner: record.secret_hash })
    }
}
