use std::fmt;

use crate::CheckOutcome;

/// One check and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The clause of the contract that the check belongs to, such as `races`.
    pub clause: &'static str,
    /// What the check says of a good store, as a sentence.
    pub check: &'static str,
    /// What became of it.
    pub verdict: CheckOutcome,
    /// What was counted on the way, such as the number of unknown outcomes. Empty for most checks.
    pub note: String,
}

impl Finding {
    /// Whether the store broke the contract here.
    pub fn failed(&self) -> bool {
        matches!(self.verdict, CheckOutcome::Failed(_))
    }

    /// Whether the check was not made.
    pub fn skipped(&self) -> bool {
        matches!(self.verdict, CheckOutcome::Skipped(_))
    }

    /// Whether the store kept the contract here.
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
