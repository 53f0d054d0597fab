//! A lease that must survive its faults.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Coordinator, Lease};
use tenure_testkit::Fault;

use super::healthy::TTL;

/// A lease, or a slot of a group, that is held and renewed during faults.
#[derive(Debug)]
pub(super) struct Patient {
    /// Every write of it contains this.
    pub(super) name: String,
    lease: Lease,
    renewals: AtomicU64,
}

impl Patient {
    /// Acquires a slot of a group of this size, or the lease if the size is zero.
    pub(super) async fn acquire(coordinator: &Coordinator, name: String, slots: u16) -> Self {
        let lease = if slots == 0 {
            let request = coordinator.lease(name.as_str()).unwrap().without_witness();
            request.ttl(TTL).wait(TTL * 2).acquire().await.unwrap()
        } else {
            let request = coordinator.slots(name.as_str(), slots.into()).unwrap().without_witness();
            request.ttl(TTL).wait(TTL * 2).acquire().await.unwrap().into_lease()
        };
        Self { name, lease, renewals: AtomicU64::new(0) }
    }

    /// Number of renewals so far.
    pub(super) fn renewed(&self) -> u64 {
        self.renewals.load(Relaxed)
    }

    /// Counts the renewals until this instant, or until the lease is lost.
    pub(super) async fn count_until(&self, end: Instant) {
        let mut renewals = pin!(self.lease.renewals());
        while let Either::Left((Some(_), _)) = select(renewals.next(), BootClock.sleep_until(end)).await {
            self.renewals.fetch_add(1, Relaxed);
        }
    }

    /// Panics if the lease is lost.
    #[track_caller]
    pub(super) fn must_hold(&self, fault: Fault) {
        if let Err(lost) = self.lease.check() {
            panic!("{lost}, after {fault:?}; the last trouble was {:?}", self.lease.last_error());
        }
    }

    pub(super) async fn release(self) {
        self.lease.release().await.unwrap();
    }
}
