use std::fmt;

/// Outcome of one check.
///
/// Exhaustive: a caller that ignores a skipped check would count it as a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The store kept the contract.
    Passed,
    /// The store broke the contract. The text says what the check observed.
    Failed(String),
    /// The check did not run, for this reason: nothing is known.
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
