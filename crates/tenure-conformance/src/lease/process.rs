use std::time::Duration;

use tenure::{Coordinator, Request};
use tenure_store::Key;

use super::wire::Wire;

/// One of the programs that want the lease: a coordinator with a wire of its own, which has seen nothing of what others
/// saw.
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

    /// A lease of this key, which it keeps as long as it can. Without a witness: this is about the store, and all processes
    /// here are one.
    pub(super) fn wants(&self, key: &Key) -> Request {
        let request = self.coordinator.lease(key.as_str()).expect("a key is the name of a lease");
        request.ttl(self.ttl).without_witness()
    }
}

impl Drop for Process {
    /// What is still waiting ends, so that the keeper can.
    fn drop(&mut self) {
        self.wire.open();
    }
}
