//! How often a fault really happened.

/// How often a fault really happened. A fault that did not happen proves nothing: a run asserts its quota on these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// It happened, from its beginning to its end.
    pub installed: u64,
    /// Those among them whose request the server answered with success, at least once.
    pub applied: u64,
    /// It was due and could not happen: the server did not answer, another rule was first, or there was nothing to cut.
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
