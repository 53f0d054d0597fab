use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::Lease;
use crate::keeper::{BeliefMirror, Connection};

/// The present term of this node, which all clones of an election share.
#[derive(Debug)]
pub(super) struct Seat {
    connection: Connection,
    lease: RwLock<Option<Arc<Lease>>>,
    /// The belief of that lease, for a check without a lock.
    belief: Arc<BeliefMirror>,
    /// The token of the latest term of this node.
    latest: AtomicU64,
}

impl Seat {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, lease: RwLock::default(), belief: Arc::default(), latest: AtomicU64::new(0) }
    }

    pub(super) fn take(&self, lease: &Arc<Lease>) {
        self.latest.fetch_max(lease.token().get(), Ordering::Relaxed);
        let mut seat = self.lease.write().unwrap_or_else(PoisonError::into_inner);
        let before = seat.replace(Arc::clone(lease));
        // Outside the lock: the last reference to a lease sends a command when it is dropped.
        drop(seat);
        drop(before);
        lease.shared().mirror_in(&self.belief);
    }

    /// Ends the term of this lease, and leaves the seat unless a later term has taken it.
    pub(super) fn leave(&self, lease: &Arc<Lease>) {
        lease.give_up();
        let mut seat = self.lease.write().unwrap_or_else(PoisonError::into_inner);
        // Under one lock: the next term may take the seat between a comparison and a later write.
        let before = seat.take_if(|present| Arc::ptr_eq(present, lease));
        drop(seat);
        drop(before);
    }

    /// Ends the present term, if there is one.
    pub(super) fn give_up(&self) {
        if let Some(lease) = self.lease() {
            self.leave(&lease);
        }
    }

    /// True while this node leads. Costs one load, one clock read and the check for a fork.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.connection.keeper.is_present()
            && self.belief.is_held(&*self.connection.clock).unwrap_or_else(|| self.held().is_some())
    }

    /// The lease under which this node leads.
    pub(super) fn held(&self) -> Option<Arc<Lease>> {
        self.lease().filter(|lease| lease.is_held())
    }

    /// The token of the latest term of this node.
    #[cfg(feature = "tower")]
    pub(super) fn latest(&self) -> tenure_core::Token {
        tenure_core::Token::new(self.latest.load(Ordering::Relaxed)).unwrap_or(tenure_core::Token::ZERO)
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        self.lease.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::Coordinator;
    use crate::store::Memory;

    async fn lease(coordinator: &Coordinator, key: &str) -> Arc<Lease> {
        Arc::new(coordinator.lease(key).unwrap().acquire().await.unwrap())
    }

    #[tokio::test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread that waits for a lock, and real time for it to get there"
    )]
    async fn the_end_of_a_term_never_takes_the_seat_from_the_next_one() {
        let coordinator = Coordinator::connect(Memory::new()).await.unwrap();
        let (earlier, later) = (lease(&coordinator, "earlier").await, lease(&coordinator, "later").await);
        let election = coordinator.election("seat").unwrap();
        let seat = &election.seat;
        for round in 0..10 {
            seat.take(&earlier);
            let reader = seat.lease.read().unwrap();
            thread::scope(|scope| {
                scope.spawn(|| seat.leave(&earlier));
                // The other thread waits for the lock by now. The lock is not fair: this thread gets it first.
                thread::sleep(Duration::from_millis(10));
                drop(reader);
                seat.take(&later);
            });
            assert!(seat.lease().is_some_and(|present| Arc::ptr_eq(&present, &later)), "round {round}");
        }
    }
}
