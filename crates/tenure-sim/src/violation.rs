use crate::Invariant;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// When, in nanoseconds of true time.
    pub at: u64,
    /// What happened, as a sentence.
    pub sentence: String,
}
