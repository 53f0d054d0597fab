use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Holder, Token};
use tenure_store::Key;
use tokio_util::sync::CancellationToken;

use crate::{Error, Lost, WitnessPart, WorkGuard};

/// A lease that was granted. Threads share it by reference; dropping it gives it up, without waiting.
///
/// Whether it is held is computed from the clock at every call. A check is a hope, a token is a proof: see
/// [`tenure::Lease`](crate::Lease).
#[must_use = "dropping a lease gives it up"]
pub struct Lease(pub(super) crate::Lease);

impl Lease {
    same! { answers of Lease:
        token() -> Token;
        key() -> &Key;
        holder() -> &Holder;
        remaining() -> Duration;
        check() -> Result<(), Error>;
        last_error() -> Option<Arc<str>>;
        cancellation_token() -> CancellationToken;
        work_guard() -> Result<WorkGuard, Error>;
        witness(part: WitnessPart) -> Result<Option<OwnedFd>, Error>;
    }

    same! { waits of Lease:
        lost() -> Lost;
        renew() -> Result<(), Error>;
        release() -> Result<(), Error>;
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
