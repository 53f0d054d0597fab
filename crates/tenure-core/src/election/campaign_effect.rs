use crate::{Instant, Token};

/// An action that a [`Campaigner`](super::Campaigner) requests from its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignEffect {
    /// Acquire the lease, without a limit of the wait. One acquire is pending at most.
    Acquire,
    /// Cancel the pending acquire.
    Cancel,
    /// This node leads under this token. Report the end of the term.
    Lead(Token),
    /// Report the error of the failed acquire to the caller: a retry alone does not help.
    Report,
    /// Observe the leader, and report what is seen, until the next [`Acquire`](Self::Acquire).
    Observe,
    /// Come back at this instant. Replaces the previous request.
    SleepUntil(Instant),
}
