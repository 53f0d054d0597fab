use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::place_queue::{PlaceQueue, Ticket};
use super::urgency::{CallKind, Urgency};
use crate::clock::Instant;
use crate::host::simulation::{Duty, does};

/// The places of a coordinator: the number of calls on its store that may be in flight at the same time.
///
/// Only the keeper [gives](Self::give) places to calls that wait.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Mutex<PlaceQueue<oneshot::Sender<CallPlace>>>>);

/// A place for one call, given back when dropped: also when the call times out or panics.
#[derive(Debug)]
pub(crate) struct CallPlace {
    places: Places,
    kind: CallKind,
    /// Time at which the call got it after a wait; `None` if it did not wait.
    pub(crate) given_at: Option<Instant>,
}

/// A call that waits for a place. It leaves the queue when dropped.
pub(crate) struct WaitingCall {
    places: Places,
    ticket: Ticket,
    given: oneshot::Receiver<CallPlace>,
}

impl Places {
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(PlaceQueue::new(places))))
    }

    /// A place, if the call need not wait for one.
    pub(crate) fn try_take(&self, urgency: Urgency) -> Option<CallPlace> {
        let kind = urgency.kind();
        self.lock().try_take(kind).then(|| CallPlace { places: self.clone(), kind, given_at: None })
    }

    /// Queues a call for a place.
    pub(crate) fn wait(&self, urgency: Urgency) -> WaitingCall {
        let (give, given) = oneshot::channel();
        let ticket = self.lock().wait(urgency, give);
        WaitingCall { places: self.clone(), ticket, given }
    }

    /// A place, at once or after a wait.
    pub(crate) async fn take(&self, urgency: Urgency) -> Option<CallPlace> {
        match self.try_take(urgency) {
            Some(place) => Some(place),
            None => self.wait(urgency).given().await,
        }
    }

    /// Ends the wait of a call, which then gets no place.
    pub(crate) fn withdraw(&self, ticket: Ticket) {
        let withdrawn = self.lock().leave(ticket);
        drop(withdrawn);
    }

    /// Gives free places to the calls that wait.
    pub(crate) fn give(&self, now: Instant) {
        while let Some((kind, call)) = self.next(now) {
            // A call that has just left gives it back.
            let _ = call.send(CallPlace { places: self.clone(), kind, given_at: Some(now) });
        }
    }

    fn next(&self, now: Instant) -> Option<(CallKind, oneshot::Sender<CallPlace>)> {
        self.lock().next(now)
    }

    /// Earliest time at which [`give`](Self::give) can give a place; `None` if it cannot before another call ends.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.lock().next_at()
    }

    /// Counts a lease that is renewed or polled once in this period.
    pub(crate) fn add_lease(&self, period: Duration) {
        self.lock().pace.add(period);
    }

    /// Forgets a lease that was counted with this period.
    pub(crate) fn remove_lease(&self, period: Duration) {
        self.lock().pace.remove(period);
    }

    /// A call that was sent has ended. If it failed, the calls per second are limited for the given time from now on.
    pub(crate) fn call_ended(&self, now: Instant, failed: Option<Duration>) {
        let mut queue = self.lock();
        queue.pace.ended(now);
        if let Some(span) = failed
            && does(Duty::PaceInTrouble)
        {
            queue.pace.failed(now, span);
        }
    }

    /// Ends the limit on the calls per second for good.
    pub(crate) fn lift_pace(&self) {
        self.lock().pace.lift();
    }

    fn lock(&self) -> MutexGuard<'_, PlaceQueue<oneshot::Sender<CallPlace>>> {
        // No panic under the lock can leave the queue inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingCall {
    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// The place; `None` if the call was withdrawn.
    pub(crate) async fn given(mut self) -> Option<CallPlace> {
        (&mut self.given).await.ok()
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        self.places.lock().leave(self.ticket);
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        if does(Duty::GivePlacesBack) {
            self.places.lock().give_back(self.kind);
        }
    }
}
