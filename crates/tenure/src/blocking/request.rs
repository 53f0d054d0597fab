use std::time::Duration;

use tenure_core::{Holder, Timing};

use super::{Lease, block_on};
use crate::{Error, Handle};

/// A lease that is wanted by a thread that waits for it.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until acquire() or try_acquire() is called"]
pub struct Request(pub(super) crate::Request);

impl Request {
    same! { choices of Request:
        ttl(ttl: Duration);
        timing(timing: Timing);
        holder(holder: Holder);
        value(value: &str);
        wait(limit: Duration);
        strict();
        manual();
        without_witness();
        heed_tree(limit: Option<Duration>);
        revoke(because: &str);
        take_now(because: &str);
    }

    /// Blocks until the lease is granted, at most as long as [`wait`](Self::wait) says.
    ///
    /// Nothing interrupts a thread that waits here; a program that must end meanwhile gives a limit, and asks again.
    #[track_caller]
    pub fn acquire(self) -> Result<Lease, Error> {
        block_on(self.0.acquire()).map(Lease)
    }

    /// One attempt: the lease, or an error of kind [`Held`](crate::ErrorKind::Held) that names the holder.
    #[track_caller]
    pub fn try_acquire(self) -> Result<Lease, Error> {
        block_on(self.0.try_acquire()).map(Lease)
    }

    /// Blocks as [`acquire`](Self::acquire) does, and gives a [`Handle`]: see
    /// [`Request::acquire_handle`](crate::Request::acquire_handle).
    #[track_caller]
    pub fn acquire_handle(self) -> Result<Handle, Error> {
        block_on(self.0.acquire_handle())
    }
}
