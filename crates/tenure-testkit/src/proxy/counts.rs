//! Counts of the faults that really happened.

/// Counts of a fault. A fault that did not happen proves nothing: a test run asserts its quota on these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Times that it happened completely.
    pub installed: u64,
    /// Times among them that the server answered the request with success, at least once.
    pub applied: u64,
    /// Times that it was due and could not happen: the server did not answer, another rule came first, or the request
    /// or answer did not allow it.
    pub skipped: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            installed: self.installed + other.installed,
            applied: self.applied + other.applied,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), std::ops::Add::add)
    }
}
