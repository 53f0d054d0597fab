use std::time::Duration;

use tenure::{Coordinator, Request};
use tenure_store::Key;

use super::wire::Wire;

/// One of the contending programs: a coordinator with a separate wire, and no knowledge of what the others have seen.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) coordinator: Coordinator,
    pub(super) wire: Wire,
    ttl: Duration,
}

impl Process {
    pub(super) fn new(coordinator: Coordinator, wire: Wire, ttl: Duration) -> Self {
        Self { coordinator, wire, ttl }
    }

    /// A request for the lease of this key, which is kept as long as possible. Without a witness: the checks are about
    /// the store, and all these processes are one.
    pub(super) fn wants(&self, key: &Key) -> Request {
        let request = self.coordinator.lease(key.as_str()).expect("a key is the name of a lease");
        request.ttl(self.ttl).without_witness()
    }
}

impl Drop for Process {
    /// Ends pending calls, so that the keeper can stop.
    fn drop(&mut self) {
        self.wire.open();
    }
}
