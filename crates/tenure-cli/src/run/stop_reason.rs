use std::time::Duration;

use tenure::Lost;
use tenure_core::election::TermEnd;

use crate::duration;

/// Reason why the child was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// No renewal succeeded in time.
    Risk,
    /// The guards woke up so late that waiting longer for a renewal was not safe.
    Late(Duration),
    /// The lease is lost.
    Lost(Lost),
    /// This process was stopped, and the watchdog acted.
    Stopped,
    /// The watchdog has exited.
    Unwatched,
}

impl StopReason {
    /// The reason in JSON.
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

    /// The end of the term, as far as the next campaign depends on it.
    pub(super) fn term_end(&self) -> TermEnd {
        match self {
            Self::Lost(why) => TermEnd::from(why),
            Self::Risk | Self::Late(_) | Self::Stopped | Self::Unwatched => TermEnd::Lost,
        }
    }

    /// True if there is no lease left to release.
    pub(super) fn is_definite(&self) -> bool {
        matches!(
            self,
            Self::Lost(Lost::Superseded { .. } | Lost::Deleted | Lost::Replaced { .. } | Lost::StoreGone)
        )
    }

    /// True if the last error of the store explains it.
    pub(super) fn is_of_the_store(&self) -> bool {
        matches!(self, Self::Risk | Self::Lost(Lost::Expired | Lost::RenewalFailed))
    }

    /// The next step for the user.
    pub(super) fn next_step(&self) -> &'static str {
        match self {
            Self::Risk | Self::Lost(Lost::Expired | Lost::RenewalFailed) => {
                "Find out why the store did not answer in time, and run it again"
            }
            Self::Lost(Lost::Revoked { .. } | Lost::Superseded { because: Some(_), .. }) => {
                "Run it again when that holder is done"
            }
            Self::Lost(Lost::Deleted | Lost::Replaced { .. }) => {
                "Find out what else writes to the store, and run it again"
            }
            Self::Late(_) => "Give it more processor time, or a longer ttl",
            Self::Lost(Lost::StoreGone) => {
                "Find out what removed, moved or mounted over it, and run it again"
            }
            Self::Stopped => "Run it again, and stop it with TERM instead of suspending it",
            Self::Unwatched => "Find out what killed it, such as a lack of memory, and run it again",
            Self::Lost(_) => "Run it again",
        }
    }

    /// The reason as a sentence.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Risk => {
                "no renewal succeeded in time, and the command must be dead before the lease is over"
                    .to_owned()
            }
            Self::Late(late) => format!(
                "this machine is so busy that the supervisor or the watchdog woke up {} late; without a renewal, the \
                 lease would have been overrun",
                duration::at_least(*late)
            ),
            Self::Lost(why) => why.to_string(),
            Self::Stopped => "this process was stopped (Ctrl-Z or SIGSTOP) and could not renew".to_owned(),
            Self::Unwatched => "its watchdog was killed, and the command with it".to_owned(),
        }
    }
}
