use crate::Finding;

/// Progress of a running suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// A check begins.
    Begun {
        /// The clause of the contract that it belongs to.
        clause: &'static str,
        /// Requirement on a correct store, as a sentence.
        check: &'static str,
    },
    /// A check has ended.
    Ended(&'a Finding),
}
