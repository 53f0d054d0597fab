use std::fmt;

/// What became of one check.
///
/// Exhaustive: whoever forgets that a check was skipped takes it for a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The store kept the contract.
    Passed,
    /// The store broke the contract, and this is what was seen.
    Failed(String),
    /// The check was not made, for this reason: nothing is known.
    Skipped(String),
}

impl fmt::Display for CheckOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
        })
    }
}
