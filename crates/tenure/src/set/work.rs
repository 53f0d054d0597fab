use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_util::sync::WaitForCancellationFutureOwned;

use super::members::Members;
use crate::{Error, WorkGuard};

/// Work that is polled only while all leases of a set are held, and dropped when the first is lost.
#[derive(Debug)]
#[must_use = "work does nothing unless polled"]
pub(super) struct SetWork<'a, F> {
    members: &'a Members,
    work: Option<Pin<Box<F>>>,
    lost: Pin<Box<WaitForCancellationFutureOwned>>,
    /// One per lease, from the first poll until the work has been dropped.
    guards: Option<Vec<WorkGuard>>,
}

impl<'a, F: Future> SetWork<'a, F> {
    pub(super) fn new(members: &'a Members, work: F) -> Self {
        let lost = Box::pin(members.cancelled.clone().cancelled_owned());
        Self { members, work: Some(Box::pin(work)), lost, guards: None }
    }
}

impl<F> SetWork<'_, F> {
    /// Drops the work, and only then counts it out, so that no vacate overtakes it.
    fn end(&mut self) {
        self.work = None;
        self.guards = Some(Vec::new());
    }

    /// True if the work counts for every lease. False if one of them is lost already.
    fn begin(&mut self) -> bool {
        if self.guards.is_none() {
            let guards: Result<_, _> = self.members.leases.iter().map(|lease| lease.work_guard()).collect();
            self.guards = guards.ok();
        }
        self.guards.is_some()
    }
}

impl<F: Future> Future for SetWork<'_, F> {
    type Output = Result<F::Output, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let begun = self.begin();
        // Wakes the task when the set is lost, whatever the work waits for.
        let lost = self.lost.as_mut().poll(context).is_ready();
        if lost || !begun || !self.members.is_held() {
            self.end();
            return Poll::Ready(Err(self.members.lost_error()));
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

impl<F> Drop for SetWork<'_, F> {
    fn drop(&mut self) {
        self.end();
    }
}
