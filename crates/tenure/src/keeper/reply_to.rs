use std::sync::Arc;

use tenure_core::machine::{self, Left};
use tokio::sync::oneshot;

use super::held_lease::HeldLease;
use crate::Error;

/// What a keeper is asked for, and who waits for it.
#[derive(Debug)]
pub(crate) enum ReplyTo {
    /// A lease that it keeps.
    Lease(oneshot::Sender<Result<Arc<HeldLease>, Error>>),
    /// A term that is left to whoever gets its handle.
    Handle(oneshot::Sender<Result<machine::TermRef, Error>>),
    /// The end of a term of another process.
    End(oneshot::Sender<Result<Left, Error>>),
}
