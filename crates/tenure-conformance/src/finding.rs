use std::fmt;

use crate::CheckOutcome;

/// One check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The clause of the contract that the check belongs to, such as `races`.
    pub clause: &'static str,
    /// Requirement on a correct store, as a sentence.
    pub check: &'static str,
    /// Outcome of the check.
    pub verdict: CheckOutcome,
    /// Counts collected by the check, such as the number of unknown outcomes. Empty for most checks.
    pub note: String,
}

impl Finding {
    /// True if the store broke the contract here.
    pub fn failed(&self) -> bool {
        matches!(self.verdict, CheckOutcome::Failed(_))
    }

    /// True if the check did not run.
    pub fn skipped(&self) -> bool {
        matches!(self.verdict, CheckOutcome::Skipped(_))
    }

    /// True if the store kept the contract here.
    pub fn passed(&self) -> bool {
        matches!(self.verdict, CheckOutcome::Passed)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<7}  {:<10}  {}", self.verdict, self.clause, self.check)?;
        if let CheckOutcome::Failed(why) | CheckOutcome::Skipped(why) = &self.verdict {
            write!(f, ": {why}")?;
        }
        if !self.note.is_empty() {
            write!(f, " ({})", self.note)?;
        }
        Ok(())
    }
}
