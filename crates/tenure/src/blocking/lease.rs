use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Holder, Token};
use tenure_store::Key;
use tokio_util::sync::CancellationToken;

use super::Fenced;
use crate::fence::FencingToken;
use crate::{Error, Lost, WitnessPart, WorkGuard};

/// A granted lease. Threads share it by reference. Dropping it releases it without waiting.
///
/// Each call computes from the clock whether the lease is held. A check can be outdated by the time of the write; the
/// token cannot: see [`tenure::Lease`](crate::Lease).
#[must_use = "dropping a lease releases it"]
pub struct Lease(pub(super) crate::Lease);

impl Lease {
    same! { answers of Lease:
        token() -> Token;
        fencing_token() -> &FencingToken;
        key() -> &Key;
        holder() -> &Holder;
        remaining() -> Duration;
        check() -> Result<(), Error>;
        last_error() -> Option<Arc<str>>;
        cancellation_token() -> CancellationToken;
        work_guard() -> Result<WorkGuard, Error>;
        witness(part: WitnessPart) -> Result<Option<OwnedFd>, Error>;
    }

    /// See [`Lease::fenced`](crate::Lease::fenced).
    pub fn fenced<'a, F: ?Sized>(&'a self, fence: &'a F) -> Fenced<'a, F> {
        Fenced(self.0.fenced(fence))
    }

    same! { waits of Lease:
        lost() -> Lost;
        renew() -> Result<(), Error>;
        succeeded() -> Result<(), Error>;
        release() -> Result<(), Error>;
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
