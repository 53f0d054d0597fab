use std::ops::Sub;

/// Number of calls that a [`Memory`](super::Memory) has received, counted at their start: also lost, refused and
/// hanging ones.
///
/// ```
/// # use tenure::store::Memory;
/// let memory = Memory::new();
/// let before = memory.calls();
/// // … code that should need few calls …
/// let used = memory.calls() - before;
/// assert_eq!(used.total(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Number of reads.
    pub gets: u64,
    /// Number of conditional writes.
    pub puts: u64,
    /// Number of listings.
    pub lists: u64,
}

impl Calls {
    /// Number of all calls.
    pub fn total(self) -> u64 {
        self.gets + self.puts + self.lists
    }
}

impl Sub for Calls {
    type Output = Self;

    /// Calls after `earlier`, which is a count of the same store.
    fn sub(self, earlier: Self) -> Self {
        Self {
            gets: self.gets.saturating_sub(earlier.gets),
            puts: self.puts.saturating_sub(earlier.puts),
            lists: self.lists.saturating_sub(earlier.lists),
        }
    }
}
