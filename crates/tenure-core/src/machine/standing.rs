use std::sync::Arc;
use std::time::Duration;

use super::{Rules, Sighting};
use crate::record::{Record, State, Ttl};
use crate::{Drift, Instant};

/// How a key stands for somebody who only looks, by the same rules that a contender goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// There is no record: nobody ever wanted it.
    Absent,
    /// Nobody holds it.
    Vacant,
    /// Somebody holds it.
    Held(Remaining),
    /// Somebody holds it and was asked to let go. The record says by whom, and why.
    Revoked(Remaining),
    /// Nobody holds it, and meanwhile only the successor that the record names is granted.
    Reserved(Remaining),
    /// The version has run out: a contender who has seen as much is granted at once.
    RanOut,
    /// The witness shows that nobody acts under the record any more: a contender is granted at once.
    Dead,
    /// It is retired on purpose and never granted again.
    Closed,
    /// What is there is not a record that this version understands, in words. It is never overwritten.
    Foreign(Arc<str>),
}

/// How much longer a version lasts at most, unless its holder renews it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remaining {
    /// At most this long, counted from when it was looked at.
    pub at_most: Duration,
    /// Whether the time that has passed since the version was written, or first seen, is taken off already. If not, it
    /// cannot be judged yet: the store tells no age, and this is the first look.
    pub judged: bool,
}

impl Remaining {
    /// At most this long, and whether that is judged already.
    pub fn new(at_most: Duration, judged: bool) -> Self {
        Self { at_most, judged }
    }
}

impl Standing {
    /// Whether a contender who has seen as much is granted at once.
    pub fn is_free(&self) -> bool {
        matches!(self, Self::Absent | Self::Vacant | Self::RanOut | Self::Dead)
    }

    /// Whether somebody may be acting under the record.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Held(_) | Self::Revoked(_))
    }

    /// How much longer it stands like this at most, where that is known.
    pub fn remaining(&self) -> Option<Remaining> {
        match self {
            Self::Held(remaining) | Self::Revoked(remaining) | Self::Reserved(remaining) => Some(*remaining),
            _ => None,
        }
    }

    /// How a record stands, by how long its version is known and by what there is to see of its witness.
    pub(super) fn of(rules: &dyn Rules, record: &Record, known: KnownSince, sighting: Sighting) -> Self {
        let remaining = match &record.state {
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

/// The instant since which a version is known, and the instant of the question.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownSince {
    pub(super) from: Instant,
    pub(super) now: Instant,
    pub(super) judged: bool,
}

impl KnownSince {
    /// What is left of the version; `None` if it has run out.
    fn remaining(self, rules: &dyn Rules, record: &Record) -> Option<Remaining> {
        // No record that could be read comes here without one.
        let ttl = record.ttl.unwrap_or(Ttl::MAX);
        let out = rules.runs_out_at(self.from, ttl, ttl, Drift::DEFAULT);
        (out > self.now).then(|| Remaining { at_most: out.since(self.now), judged: self.judged })
    }
}
