//! Changes between the reported state of a key and a new observation.

use std::sync::Arc;

use tenure_core::Token;
use tenure_core::machine::Standing;
use tenure_core::record::{End, Nonce, Past, Record, State};
use tenure_store::Key;

use super::event::{Change, ChangeKind};
use crate::clock::WallTime;
use crate::observe::Observation;

/// The reported state of a key.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    /// The latest Tenure record. It stays after a deletion, so that its terms are not reported again if it comes back.
    record: Option<Arc<Record>>,
    standing: Standing,
}

impl Reported {
    /// The state of a key without a record.
    pub(crate) fn absent() -> Self {
        Self { record: None, standing: Standing::Absent }
    }

    pub(crate) fn of(seen: &Observation) -> Self {
        Self { record: lease_record(seen), standing: seen.standing.clone() }
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.standing == Standing::Absent
    }

    /// The nonce of the record whose holder was reported dead.
    pub(crate) fn dead(&self) -> Option<Nonce> {
        let record = self.record.as_ref()?;
        (self.standing == Standing::Dead).then_some(record.nonce)
    }

    /// Takes in an observation, and returns the changes since the reported state, oldest first.
    pub(crate) fn update(&mut self, seen: &Observation, renewals: bool) -> Vec<Change> {
        let changes = changes(self, seen, renewals);
        self.standing = seen.standing.clone();
        self.record = lease_record(seen).or(self.record.take());
        changes
    }

    fn token(&self) -> Token {
        self.record.as_ref().map_or(Token::ZERO, |record| record.token)
    }

    /// True if the latest read showed the record of a lease.
    fn is_ours(&self) -> bool {
        !matches!(self.standing, Standing::Absent | Standing::PlainKey | Standing::Foreign(_))
    }

    /// True if the end of the term was reported before it was written.
    fn has_reported_end(&self) -> bool {
        matches!(self.standing, Standing::RanOut | Standing::Dead)
    }
}

fn changes(reported: &Reported, seen: &Observation, renewals: bool) -> Vec<Change> {
    let mut list = ChangeList { key: &seen.key, seen_at: seen.seen_at, changes: Vec::new() };
    let old = reported.record.as_deref();
    match (&seen.standing, &seen.record) {
        (Standing::Absent, _) => {
            if !reported.is_absent() {
                list.push(ChangeKind::Gone, old.and_then(token), None, None);
            }
        }
        (Standing::Foreign(what), _) => {
            if reported.standing != seen.standing {
                list.push(ChangeKind::Foreign(Arc::clone(what)), old.and_then(token), None, None);
            }
        }
        (Standing::PlainKey, _) => {
            if reported.standing != seen.standing {
                list.push(ChangeKind::PlainKey, old.and_then(token), None, None);
            }
        }
        (_, Some(new)) => {
            list.past_terms(reported, new);
            list.present(reported, seen, new, renewals);
            // A planted record precedes a grant, and the key is as free as before.
            let is_known = reported.is_ours() || reported.is_absent() && token(new).is_none();
            if list.changes.is_empty() && !is_known {
                list.of(new, ChangeKind::Appeared, Some(new.written_at));
            }
        }
        (_, None) => {}
    }
    list.changes
}

struct ChangeList<'a> {
    key: &'a Key,
    seen_at: WallTime,
    changes: Vec<Change>,
}

impl ChangeList<'_> {
    fn push(
        &mut self,
        kind: ChangeKind,
        token: Option<Token>,
        holder: Option<Arc<str>>,
        at: Option<WallTime>,
    ) {
        let (key, seen_at) = (self.key.clone(), self.seen_at);
        self.changes.push(Change { key, kind, token, holder, written_at: at, seen_at });
    }

    /// Adds a change of the term of a record.
    fn of(&mut self, record: &Record, kind: ChangeKind, at: Option<WallTime>) {
        let holder = record.holder.as_ref().map(|holder| Arc::clone(holder.id()));
        self.push(kind, token(record), holder, at);
    }

    /// Adds the end of the last reported term, and the terms that began and ended since.
    fn past_terms(&mut self, reported: &Reported, new: &Record) {
        let (from, old) = (reported.token(), reported.record.as_deref());
        let was_open = old.is_some_and(Record::is_held);
        for past in new.history.iter().filter(|past| past.token == from && was_open) {
            // The watch has reported that the term ran out or that its holder died. The next holder wrote the same.
            if !(reported.has_reported_end() && matches!(past.end, End::RanOut | End::Died)) {
                self.end_of(past);
            }
        }
        let reaches_back = new.history.iter().any(|past| past.token <= from);
        let is_full = new.history.len() >= Record::HISTORY_MAX;
        if new.token > from && !reaches_back && (is_full || was_open && reported.is_ours()) {
            self.push(ChangeKind::Missed, old.and_then(token), None, None);
        }
        let mut latest = from;
        // A history that is out of order was written by another program. It is informational, and not reported.
        for past in new.history.iter() {
            if past.token <= latest || past.token > new.token {
                continue;
            }
            latest = past.token;
            let (token, holder) = (Some(past.token), Some(Arc::clone(&past.holder)));
            self.push(ChangeKind::Granted, token, holder, Some(past.granted_at));
            self.end_of(past);
        }
    }

    fn end_of(&mut self, past: &Past) {
        let holder = Some(Arc::clone(&past.holder));
        self.push(ChangeKind::Ended(past.end.clone()), Some(past.token), holder, Some(past.ended_at));
    }

    /// Adds the changes of the record's own term.
    fn present(&mut self, reported: &Reported, seen: &Observation, new: &Record, renewals: bool) {
        let written_at = Some(new.written_at);
        // The same term, or its vacant record.
        let same = reported.record.as_deref().filter(|old| old.token == new.token);
        if new.is_held() && same.is_none() {
            self.of(new, ChangeKind::Granted, Some(new.granted_at));
        }
        let is_new = same.is_none_or(|old| old.state != new.state);
        match &new.state {
            State::Revoked(revocation) if is_new => {
                let (by, because) = (Arc::clone(&revocation.by), Arc::clone(&revocation.because));
                self.of(new, ChangeKind::Revoked { by, because }, written_at);
            }
            State::Reserved(successor) if is_new => {
                self.of(new, ChangeKind::Reserved { successor: Arc::clone(successor) }, written_at);
            }
            State::Closed(closure) if is_new => {
                let (by, because) = (Arc::clone(&closure.by), Arc::clone(&closure.because));
                self.of(new, ChangeKind::Closed { by, because }, written_at);
            }
            State::Held => {
                let renewed = same.is_some_and(|old| old.nonce != new.nonce);
                let was_over = reported.has_reported_end() || same.is_some_and(|old| !old.is_held());
                let revived = was_over && seen.standing.is_held();
                if renewed && (renewals || revived) {
                    self.of(new, ChangeKind::Renewed, written_at);
                }
            }
            _ => {}
        }
        let over = match seen.standing {
            Standing::RanOut => End::RanOut,
            Standing::Dead => End::Died,
            _ => return,
        };
        if same.is_none() || !reported.has_reported_end() {
            self.of(new, ChangeKind::Ended(over), None);
        }
    }
}

/// The record, if it is one of a lease.
fn lease_record(seen: &Observation) -> Option<Arc<Record>> {
    seen.record.clone().filter(|record| !record.is_key())
}

/// The token of the latest grant; `None` for a planted record, whose token was never granted.
fn token(record: &Record) -> Option<Token> {
    record.ttl.map(|_| record.token)
}

#[cfg(test)]
mod tests;
