//! The guarantees of a store with given settings.

use std::time::Duration;

use tenure_store::{Guarantees, Reach, StoreClock};

use crate::open::{Accepted, Settings};

/// Guarantees of a server that was found as the settings require. A connection to any other server is refused.
pub(crate) fn of(settings: &Settings) -> Guarantees {
    let mut guarantees = Guarantees::default();
    guarantees.atomic_create = true;
    guarantees.atomic_replace = true;
    guarantees.linearizable_reads = true;
    // A restart may lose writes. With a quarantine, that endangers no lease. Without, the caller has accepted it. A server that
    // syncs every write is known only after the first connection, so it declares the same.
    guarantees.quarantine = settings.has_quarantine();
    guarantees.keeps_acknowledged = false;
    guarantees.accepted_loss = accepted_loss(settings.accepted);
    guarantees.ttl_max = guarantees.quarantine.then_some(settings.quarantine);
    guarantees.unique_versions = true;
    guarantees.reach = Reach::Network;
    guarantees.clock = StoreClock::Floors;
    // It counts microseconds, and every script takes longer.
    guarantees.clock_tick = Duration::ZERO;
    guarantees.watch = true;
    guarantees.write_interval = Duration::ZERO;
    guarantees.value_max = VALUE_MAX;
    guarantees
}

/// The options by which the caller accepted that writes may be lost: those that turn the quarantine off, or else the first one.
fn accepted_loss(accepted: Accepted) -> Option<&'static str> {
    match accepted {
        Accepted { restart: true, failover: true, .. } => Some("accept=restart and accept=failover"),
        Accepted { restart: true, .. } => Some("accept=restart"),
        Accepted { failover: true, .. } => Some("accept=failover"),
        Accepted { eviction: true, .. } => Some("accept=eviction"),
        Accepted { unknown_settings: true, .. } => Some("accept=unknown-settings"),
        _ => None,
    }
}

/// Maximum size of a value, in bytes: the maximum size of a record.
pub(crate) const VALUE_MAX: usize = 64 * 1024;
