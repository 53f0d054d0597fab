use crate::Invariant;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// The instant, in nanoseconds of true time.
    pub at: u64,
    /// One sentence that describes what happened.
    pub sentence: String,
}
