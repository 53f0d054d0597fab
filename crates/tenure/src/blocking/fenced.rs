use std::fmt;

use crate::Error;
use crate::fence::{Fence, Seal};

/// A resource, written under a lease: see [`fence::Fenced`](crate::fence::Fenced).
///
/// The thread has no network driver. So this is for fences that need none: values of the
/// [coordinator](super::Coordinator), files, and those in memory. A program that writes to a server has a runtime, and uses
/// the asynchronous API there.
pub struct Fenced<'a, F: ?Sized>(pub(super) crate::fence::Fenced<'a, F>);

impl<F: Fence + ?Sized> Fenced<'_, F> {
    /// See [`Fenced::write`](crate::fence::Fenced::write).
    #[track_caller]
    pub fn write<'w>(&'w self, write: F::Write<'w>) -> Result<F::Written, Error> {
        super::block_on(self.0.write(write))
    }
}

impl<F: Seal + ?Sized> Fenced<'_, F> {
    /// See [`Fenced::seal`](crate::fence::Fenced::seal).
    #[track_caller]
    pub fn seal(&self) -> Result<(), Error> {
        super::block_on(self.0.seal())
    }
}

impl<F: ?Sized> fmt::Debug for Fenced<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
