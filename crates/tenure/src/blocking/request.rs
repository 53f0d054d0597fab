use std::time::Duration;

use tenure_core::record::Record;
use tenure_core::{Holder, Timing};

use super::{Lease, block_on};
use crate::{Error, Handle};

/// A request for a lease, for a blocking thread.
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
        once_per(period: Duration);
        revoke(because: &str);
        take_now(because: &str);
    }

    /// Blocks until the lease is granted, at most as long as [`wait`](Self::wait) allows.
    ///
    /// Nothing interrupts the thread. A program that must be able to exit sets a limit, and tries again.
    #[track_caller]
    pub fn acquire(self) -> Result<Lease, Error> {
        block_on(self.0.acquire()).map(Lease)
    }

    /// Tries once: the lease, or an error of kind [`Held`](crate::ErrorKind::Held), whose [`held`](crate::Error::held) has
    /// the holder, its token and the time left.
    #[track_caller]
    pub fn try_acquire(self) -> Result<Lease, Error> {
        block_on(self.0.try_acquire()).map(Lease)
    }

    /// Asks the holder of this record to release, and blocks until its term is over: see
    /// [`Request::end_term`](crate::Request::end_term).
    #[track_caller]
    pub fn end_term(self, record: &Record, because: &str) -> Result<(), Error> {
        block_on(self.0.end_term(record, because))
    }

    /// Blocks as [`acquire`](Self::acquire) does, and returns a [`Handle`]: see
    /// [`Request::acquire_handle`](crate::Request::acquire_handle).
    #[track_caller]
    pub fn acquire_handle(self) -> Result<Handle, Error> {
        block_on(self.0.acquire_handle())
    }
}
