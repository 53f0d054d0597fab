use std::time::Duration;

use tenure::Lost;

use crate::duration;

/// StopReason the child was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// No renewal succeeded for so long that the child had to end.
    Risk,
    /// The guards have woken up so late that the next renewal would have come too late.
    Late(Duration),
    /// The lease is not held any more.
    Lost(Lost),
    /// This process was stopped, and the watchdog acted.
    Stopped,
    /// The watchdog is gone.
    Unwatched,
}

impl StopReason {
    /// For programs.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Risk => "not_renewed",
            Self::Late(_) => "late",
            Self::Lost(Lost::Revoked { .. }) => "revoked",
            Self::Lost(Lost::RenewalFailed) => "strict",
            Self::Lost(_) => "lost",
            Self::Stopped => "was_stopped",
            Self::Unwatched => "watchdog_gone",
        }
    }

    /// Whether there was nothing left to let go of.
    pub(super) fn is_definite(&self) -> bool {
        matches!(
            self,
            Self::Lost(Lost::Superseded { .. } | Lost::Deleted | Lost::Replaced { .. } | Lost::StoreGone)
        )
    }

    /// Whether what the store said last explains it.
    pub(super) fn is_of_the_store(&self) -> bool {
        matches!(self, Self::Risk | Self::Lost(Lost::Expired | Lost::RenewalFailed))
    }

    /// What people do about it.
    pub(super) fn next_step(&self) -> &'static str {
        match self {
            Self::Risk | Self::Lost(Lost::Expired | Lost::RenewalFailed) => {
                "Look why the store did not answer in time, and run it again"
            }
            Self::Lost(Lost::Revoked { .. } | Lost::Superseded { because: Some(_), .. }) => {
                "Run it again when that one is done"
            }
            Self::Lost(Lost::Deleted | Lost::Replaced { .. }) => {
                "Find out who writes to the store by other means, and run it again"
            }
            Self::Late(_) => "Give it more processor time, or a longer ttl",
            Self::Lost(Lost::StoreGone) => {
                "Find out what removed, moved or mounted over it, and run it again"
            }
            Self::Stopped => "Run it again, and end it by TERM instead of stopping it",
            Self::Unwatched => "Find out who killed it, perhaps for want of memory, and run it again",
            Self::Lost(_) => "Run it again",
        }
    }

    /// For people.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Risk => {
                "no renewal succeeded in time, and it must have ended before the lease does".to_owned()
            }
            Self::Late(late) => format!(
                "this machine is so busy that the processes which end the command woke up {} late, and a lease that is not \
                 renewed would have been overrun",
                duration::at_least(*late)
            ),
            Self::Lost(why) => why.to_string(),
            Self::Stopped => {
                "this process was stopped (Ctrl-Z or SIGSTOP) and could not renew meanwhile".to_owned()
            }
            Self::Unwatched => "its watchdog was killed, and the command dies with it".to_owned(),
        }
    }
}
