use std::time::Duration;

use tenure::{Coordinator, Request, SetRequest};
use tenure_store::Key;

use super::wire::Wire;

/// One of the contending programs: a coordinator with a separate wire, and no knowledge of what the others have seen.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) coordinator: Coordinator,
    pub(crate) wire: Wire,
    ttl: Duration,
}

impl Process {
    pub(crate) fn new(coordinator: Coordinator, wire: Wire, ttl: Duration) -> Self {
        Self { coordinator, wire, ttl }
    }

    /// A request for the lease of this key, which is kept as long as possible. Without a witness: the checks are about
    /// the store, and all these processes are one.
    pub(crate) fn wants(&self, key: &Key) -> Request {
        let request = self.coordinator.lease(key.as_str()).expect("a key is the name of a lease");
        request.ttl(self.ttl).without_witness()
    }

    /// A request for the leases of all these keys at once.
    pub(crate) fn wants_all(&self, keys: &[Key]) -> SetRequest {
        let request =
            self.coordinator.all_of(keys.iter().map(Key::as_str)).expect("keys that differ are a set");
        request.ttl(self.ttl).without_witness()
    }
}

impl Drop for Process {
    /// Ends pending calls, so that the keeper can stop.
    fn drop(&mut self) {
        self.wire.open();
    }
}
