//! Counts of faults.

use std::fmt;
use std::iter::Sum;
use std::ops::{Index, IndexMut};

/// A kind of fault that is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of {
    /// The answer was lost after the write was applied.
    LostAnswer,
    /// The write was delivered after its sender had given up, or twice.
    LateWrite,
    /// A late write that arrived after the ttl.
    LatePastTheTtl,
    /// A late write that the server applied, at least once.
    LateApplied,
    /// A machine was cut off: one way or both, for reading or writing or both, and noticed it.
    Partition,
    /// A request was answered with 409, 429, 500 or 503, or delayed.
    Storm,
    /// A request of a storm that the server had carried out.
    StormApplied,
}

/// Number of faults that really happened, by kind; or the required numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally(pub(crate) [u64; WORDS.len()]);

impl Tally {
    /// True if every count is at least that of the quota.
    pub(crate) fn covers(&self, quota: &Self) -> bool {
        self.0.iter().zip(quota.0).all(|(count, least)| *count >= least)
    }

    /// True if no fault is required.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// Divides every count by this number.
    pub(crate) fn part(self, of: u64) -> Self {
        Self(self.0.map(|count| count / of))
    }
}

impl Index<Of> for Tally {
    type Output = u64;

    fn index(&self, of: Of) -> &u64 {
        &self.0[of as usize]
    }
}

impl IndexMut<Of> for Tally {
    fn index_mut(&mut self, of: Of) -> &mut u64 {
        &mut self.0[of as usize]
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self(std::array::from_fn(|of| sum.0[of] + one.0[of])))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (count, what)) in self.0.iter().zip(WORDS).enumerate() {
            write!(f, "{}{count} {what}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

const WORDS: [&str; 7] = [
    "answers lost after the write was applied",
    "writes delivered late or twice",
    "of these past the ttl",
    "of these applied",
    "partitions",
    "requests in storms of 409, 429, 500, 503 and latency",
    "of these carried out all the same",
];
