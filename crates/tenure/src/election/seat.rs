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
        self.replace(Some(Arc::clone(lease)));
        lease.shared().mirror_in(&self.belief);
    }

    /// Ends the term of this lease, and leaves the seat unless a later term has taken it.
    pub(super) fn leave(&self, lease: &Arc<Lease>) {
        lease.give_up();
        if self.lease().is_some_and(|present| Arc::ptr_eq(&present, lease)) {
            self.replace(None);
        }
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
        tenure_core::Token::new(self.latest.load(Ordering::Relaxed)).unwrap_or_default()
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        self.lease.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, lease: Option<Arc<Lease>>) {
        let mut seat = self.lease.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *seat, lease);
        // Outside the lock: the last reference to a lease sends a command when it is dropped.
        drop(seat);
        drop(before);
    }
}
