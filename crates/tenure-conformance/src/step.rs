use crate::Finding;

/// What the suite tells while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// A check begins.
    Begun {
        /// The clause of the contract that it belongs to.
        clause: &'static str,
        /// What it says of a good store, as a sentence.
        check: &'static str,
    },
    /// A check has ended.
    Ended(&'a Finding),
}
