use std::fmt;
use std::time::Duration;

use tenure_core::Token;
use tenure_store::Key;
use tokio_util::sync::CancellationToken;

use crate::{Error, SetLoss};

/// Several leases, held at once. Threads share it by reference. Dropping it releases them without waiting.
#[must_use = "dropping a set of leases releases all of them"]
pub struct LeaseSet(pub(super) crate::LeaseSet);

impl LeaseSet {
    same! { answers of LeaseSet:
        tokens() -> impl Iterator<Item = (&Key, Token)>;
        token(key: impl AsRef<str>) -> Option<Token>;
        remaining() -> Duration;
        check() -> Result<(), Error>;
        cancellation_token() -> CancellationToken;
    }

    same! { waits of LeaseSet:
        lost() -> SetLoss;
        release() -> Result<(), Error>;
    }
}

impl fmt::Debug for LeaseSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
