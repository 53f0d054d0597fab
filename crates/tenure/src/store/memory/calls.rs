use std::ops::Sub;

/// How many calls a [`Memory`](super::Memory) has received, each counted when it starts: lost, refused and hanging
/// ones too.
///
/// ```
/// # use tenure::store::Memory;
/// let memory = Memory::new();
/// let before = memory.calls();
/// // … what is to be economical …
/// let used = memory.calls() - before;
/// assert_eq!(used.total(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Reads.
    pub gets: u64,
    /// Conditional writes.
    pub puts: u64,
    /// Listings.
    pub lists: u64,
}

impl Calls {
    /// All calls of any kind.
    pub fn total(self) -> u64 {
        self.gets + self.puts + self.lists
    }
}

/// What came after `earlier`, which is a count of the same store.
impl Sub for Calls {
    type Output = Self;

    /// What came after `earlier`, which is a count of the same store.
    fn sub(self, earlier: Self) -> Self {
        Self {
            gets: self.gets.saturating_sub(earlier.gets),
            puts: self.puts.saturating_sub(earlier.puts),
            lists: self.lists.saturating_sub(earlier.lists),
        }
    }
}
