use std::time::Duration;

use tenure::Lost;

use crate::duration;

/// The reason why the script must stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// No renewal succeeded, and only the grace is left.
    NotRenewed { left: Duration },
    /// The lease is lost.
    Lost(Lost),
}

impl Loss {
    /// The reason in JSON.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::NotRenewed { .. } => "not_renewed",
            Self::Lost(Lost::Revoked { .. }) => "revoked",
            Self::Lost(_) => "lost",
        }
    }

    /// The end of a sentence about the lease.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::NotRenewed { left } => {
                format!("runs out in at most {}: no renewal succeeded in time", duration::at_most(*left))
            }
            Self::Lost(why) => format!("is lost: {why}"),
        }
    }

    /// Time until the lease is over.
    pub(super) fn left(&self) -> Duration {
        match self {
            Self::NotRenewed { left } => *left,
            Self::Lost(_) => Duration::ZERO,
        }
    }

    /// True if the last error of the store explains it.
    pub(super) fn is_of_the_store(&self) -> bool {
        matches!(self, Self::NotRenewed { .. } | Self::Lost(Lost::Expired))
    }
}

/// True if there is no lease left to release.
pub(super) fn is_definite(why: &Lost) -> bool {
    matches!(why, Lost::Superseded { .. } | Lost::Deleted | Lost::Replaced { .. } | Lost::StoreGone)
}
