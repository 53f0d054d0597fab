use std::sync::Arc;
use std::time::Duration;

use super::{Rules, Sighting};
use crate::record::{Record, State, Ttl};
use crate::{Drift, Instant};

/// State of a key for an observer, by the same rules as for a contender.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// There is no record: no contender ever wanted the key.
    Absent,
    /// No process holds it.
    Vacant,
    /// A process holds it.
    Held(Remaining),
    /// A process holds it and was asked to release. The record says by whom, and why.
    Revoked(Remaining),
    /// No process holds it, and until this has run out only the successor that the record names is granted.
    Reserved(Remaining),
    /// The version has run out: a contender that has seen the same is granted at once.
    RanOut,
    /// The witness shows that no process acts under the record any more: a contender is granted at once.
    Dead,
    /// The key is retired and is never granted again.
    Closed,
    /// The record is a plain key, which is no lease and is never granted as one.
    PlainKey,
    /// The value is not a record that this version understands, with a description. It is never overwritten.
    Foreign(Arc<str>),
}

/// Longest remaining time of a version, unless its holder renews it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remaining {
    /// The longest remaining time, counted from the moment of the observation.
    pub at_most: Duration,
    /// True if the time since the version was written, or first seen, is already subtracted. If not, the expiry is not
    /// yet confirmed: the store reports no age, and this is the first read.
    pub judged: bool,
}

impl Remaining {
    /// This remaining time, and whether the time that has passed is already subtracted.
    pub fn new(at_most: Duration, judged: bool) -> Self {
        Self { at_most, judged }
    }
}

impl Standing {
    /// True if a contender that has seen the same is granted at once.
    pub fn is_free(&self) -> bool {
        matches!(self, Self::Absent | Self::Vacant | Self::RanOut | Self::Dead)
    }

    /// True if a process may act under the record.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Held(_) | Self::Revoked(_))
    }

    /// Longest remaining time in this state, if it is known.
    pub fn remaining(&self) -> Option<Remaining> {
        match self {
            Self::Held(remaining) | Self::Revoked(remaining) | Self::Reserved(remaining) => Some(*remaining),
            _ => None,
        }
    }

    /// Standing of a record, by the time since which its version is known and by the sighting of its witness.
    pub(super) fn of(rules: &dyn Rules, record: &Record, known: KnownSince, sighting: Sighting) -> Self {
        let remaining = match &record.state {
            _ if record.is_key() => return Self::PlainKey,
            State::Vacant => return Self::Vacant,
            State::Closed(_) => return Self::Closed,
            State::Held | State::Revoked(_) if rules.is_dead(sighting) => return Self::Dead,
            State::Held | State::Revoked(_) | State::Reserved(_) => match known.remaining(rules, record) {
                Some(remaining) => remaining,
                None => return Self::RanOut,
            },
        };
        match &record.state {
            State::Revoked(_) => Self::Revoked(remaining),
            State::Reserved(_) => Self::Reserved(remaining),
            _ => Self::Held(remaining),
        }
    }
}

/// Instant since which a version is known, and the instant of the judgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownSince {
    pub(super) from: Instant,
    pub(super) now: Instant,
    pub(super) judged: bool,
}

impl KnownSince {
    /// Remaining time of the version; `None` if it has run out.
    fn remaining(self, rules: &dyn Rules, record: &Record) -> Option<Remaining> {
        // Every held or reserved record that could be decoded has a ttl.
        let ttl = record.ttl.unwrap_or(Ttl::MAX);
        let out = rules.runs_out_at(self.from, ttl, ttl, Drift::DEFAULT);
        (out > self.now).then(|| Remaining { at_most: out.since(self.now), judged: self.judged })
    }
}
