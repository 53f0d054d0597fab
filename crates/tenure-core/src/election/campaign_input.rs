use super::{HealthState, TermEnd};
use crate::{ErrorKind, Token};

/// An input of a [`Campaigner`](super::Campaigner).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignInput<'a> {
    /// Begin.
    Start,
    /// The lease machine of this node was granted the lease.
    Granted(Token),
    /// The lease machine of this node was denied the lease, with an error of this kind.
    Failed(ErrorKind),
    /// The term of this node is over.
    Ended(TermEnd),
    /// An observer shows this leader.
    SawLeader {
        /// The token of its term.
        token: Token,
        /// Its name.
        holder: &'a str,
    },
    /// The state of the health check.
    Health(HealthState),
    /// The instant of the latest [`SleepUntil`](super::CampaignEffect::SleepUntil) has come.
    Wake,
}
