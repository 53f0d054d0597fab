use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_util::sync::WaitForCancellationFutureOwned;

use super::Lease;
use crate::Error;

/// Work that is polled only while the lease is held, and dropped when it is lost.
#[derive(Debug)]
#[must_use = "work does nothing unless polled"]
pub(super) struct Work<'a, F> {
    lease: &'a Lease,
    work: Option<Pin<Box<F>>>,
    lost: Pin<Box<WaitForCancellationFutureOwned>>,
    begun: bool,
}

impl<'a, F: Future> Work<'a, F> {
    pub(super) fn new(lease: &'a Lease, work: F) -> Self {
        let lost = Box::pin(lease.shared.cancellation().clone().cancelled_owned());
        Self { lease, work: Some(Box::pin(work)), lost, begun: false }
    }
}

impl<F> Work<'_, F> {
    /// Drops the work, and only then counts it out, so that a vacate does not overtake it.
    fn end(&mut self) {
        self.work = None;
        if std::mem::take(&mut self.begun) && self.lease.shared.end_work() {
            self.lease.drained();
        }
    }
}

impl<F: Future> Future for Work<'_, F> {
    type Output = Result<F::Output, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.begun && self.work.is_some() {
            self.begun = true;
            self.lease.shared.begin_work();
        }
        // Wakes the task when the lease is lost, whatever the work waits for.
        let lost = self.lost.as_mut().poll(context).is_ready();
        if lost || !self.lease.shared.is_held() {
            self.end();
            return Poll::Ready(Err(self.lease.shared.lost_error()));
        }
        let Some(work) = &mut self.work else { panic!("polled after completion") };
        match work.as_mut().poll(context) {
            Poll::Ready(output) => {
                self.end();
                Poll::Ready(Ok(output))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<F> Drop for Work<'_, F> {
    fn drop(&mut self) {
        self.end();
    }
}
