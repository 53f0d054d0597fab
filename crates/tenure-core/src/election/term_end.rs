use crate::machine::Lost;

/// The way in which a term of this node ended, as far as the next act depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermEnd {
    /// This node ended it: it released the lease or resigned.
    Released,
    /// A contender asked for it.
    Revoked,
    /// It was lost in any other way.
    Lost,
}

impl From<&Lost> for TermEnd {
    fn from(lost: &Lost) -> Self {
        match lost {
            Lost::Released => Self::Released,
            Lost::Revoked { .. } => Self::Revoked,
            _ => Self::Lost,
        }
    }
}
