use std::time::Duration;

use tenure_core::{Holder, Timing};

use super::{LeaseSet, block_on};
use crate::Error;

/// A request for several leases at once.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until acquire() or try_acquire() is called"]
pub struct SetRequest(pub(super) crate::SetRequest);

impl SetRequest {
    same! { choices of SetRequest:
        ttl(ttl: Duration);
        timing(timing: Timing);
        holder(holder: Holder);
        value(value: &str);
        wait(limit: Duration);
        strict();
        without_witness();
    }

    /// Blocks until all leases are granted: see [`SetRequest::acquire`](crate::SetRequest::acquire).
    #[track_caller]
    pub fn acquire(self) -> Result<LeaseSet, Error> {
        block_on(self.0.acquire()).map(LeaseSet)
    }

    /// Tries once: see [`SetRequest::try_acquire`](crate::SetRequest::try_acquire).
    #[track_caller]
    pub fn try_acquire(self) -> Result<LeaseSet, Error> {
        block_on(self.0.try_acquire()).map(LeaseSet)
    }
}
