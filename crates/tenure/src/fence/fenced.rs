use std::fmt;

use super::{Fence, FenceError, FencingToken, Seal};
use crate::{Error, Lease};

/// A resource, written under a lease. Each write takes the token of the lease at that moment, after a check that the lease
/// is still held. So no part of the program remembers an old token.
///
/// The check saves a call that would be refused. The fence at the resource makes the write safe.
pub struct Fenced<'a, F: ?Sized> {
    lease: &'a Lease,
    fence: &'a F,
}

impl<'a, F: ?Sized> Fenced<'a, F> {
    pub(crate) fn new(lease: &'a Lease, fence: &'a F) -> Self {
        Self { lease, fence }
    }

    /// The token, if the lease is still held.
    fn token(&self) -> Result<&'a FencingToken, Error> {
        self.lease.check()?;
        Ok(self.lease.fencing_token())
    }

    /// Reports a refusal.
    fn failed(&self, error: FenceError) -> Error {
        if let FenceError::Stale { resource, highest, .. } = &error {
            self.lease.report_refusal(resource, *highest);
        }
        error.into()
    }
}

impl<F: Fence + ?Sized> Fenced<'_, F> {
    /// Writes under the token of the lease.
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the lease is lost already: nothing was sent.
    /// [`ErrorKind::Fenced`](crate::ErrorKind::Fenced) if the resource refused the write: a newer holder has been there.
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the resource could not be reached, or the outcome is
    /// unknown. The source of every error but `Lost` is the [`FenceError`]; only [`FenceError::Unknown`] means that the write
    /// may have been made.
    pub async fn write<'w>(&'w self, write: F::Write<'w>) -> Result<F::Written, Error> {
        let token = self.token()?;
        self.fence.write(token, write).await.map_err(|error| self.failed(error))
    }
}

impl<F: Seal + ?Sized> Fenced<'_, F> {
    /// Raises the fence without a write: the first act of a new holder. From then on the resource refuses every write of an
    /// earlier holder, also one that was already sent.
    pub async fn seal(&self) -> Result<(), Error> {
        let token = self.token()?;
        self.fence.seal(token).await.map_err(|error| self.failed(error))
    }
}

impl<F: ?Sized> fmt::Debug for Fenced<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fenced({:?})", self.lease)
    }
}
