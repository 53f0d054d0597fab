use std::sync::Arc;

use tenure_core::machine::{self, Left};
use tokio::sync::oneshot;

use super::held_lease::HeldLease;
use crate::Error;

/// Requested result, with its reply channel.
#[derive(Debug)]
pub(crate) enum ReplyTo {
    /// A lease that the keeper keeps.
    Lease(oneshot::Sender<Result<Arc<HeldLease>, Error>>),
    /// A handle, whose owner renews the term.
    Handle(oneshot::Sender<Result<machine::TermRef, Error>>),
    /// The end of a term of another process.
    End(oneshot::Sender<Result<Left, Error>>),
}
