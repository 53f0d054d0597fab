use std::fmt;

use tenure_core::machine::Lost;
use tenure_store::Key;

use crate::Lease;

/// The first loss among the leases of a [`LeaseSet`](crate::LeaseSet). Whatever it is: stop acting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetLoss {
    /// The lease that was lost first. After a release of the complete set, the first of its keys.
    pub key: Key,
    /// The cause.
    pub why: Lost,
}

impl SetLoss {
    pub(super) fn new(lease: &Lease, why: Lost) -> Self {
        Self { key: lease.key().clone(), why }
    }

    /// The loss of a set that its holder releases.
    pub(super) fn released(first: &Lease) -> Self {
        Self::new(first, Lost::Released)
    }
}

impl fmt::Display for SetLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lease {}: {}", self.key, self.why)
    }
}
