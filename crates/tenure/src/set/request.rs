use std::time::Duration;

use tenure_core::machine::Patience;
use tenure_core::set::SetMachine;
use tenure_core::{Holder, Timing};
use tenure_store::Key;

use super::LeaseSet;
use super::seeker::SetSeeker;
use crate::Error;
use crate::keeper::Connection;
use crate::lease::Request;

/// A request for several leases at once.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until acquire() or try_acquire() is awaited"]
pub struct SetRequest {
    connection: Connection,
    keys: Vec<Key>,
    /// The request for each lease, of one of the keys.
    each: Request,
}

impl SetRequest {
    /// Most leases of one set: each is acquired by itself, and renewed by itself.
    pub const MEMBERS_MAX: usize = SetMachine::MEMBERS_MAX;

    pub(crate) fn new(connection: Connection, keys: Vec<Key>) -> Result<Self, Error> {
        // The machine knows which keys make a set; its order is the one of the leases.
        let machine = SetMachine::new(keys, Patience::Once)?;
        let keys = machine.keys().to_vec();
        let each = Request::new(connection.clone(), keys[0].clone());
        Ok(Self { connection, keys, each })
    }

    /// Sets the ttl of each lease, with the default timing for it. Default: [`Request::DEFAULT_TTL`].
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.each = self.each.ttl(ttl);
        self
    }

    /// Sets all durations of each lease.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.each = self.each.timing(timing);
        self
    }

    /// Sets the holder, instead of the coordinator's default. The name is informational.
    pub fn holder(mut self, holder: Holder) -> Self {
        self.each = self.each.holder(holder);
        self
    }

    /// A small value to write with each grant, which other processes can read. It stays in the records after the
    /// release.
    pub fn value(mut self, value: &str) -> Self {
        self.each = self.each.value(value);
        self
    }

    /// Sets the longest wait of [`acquire`](Self::acquire), for all leases together. Default: unlimited.
    pub fn wait(mut self, limit: Duration) -> Self {
        self.each = self.each.wait(limit);
        self
    }

    /// Ends the set at the first failed renewal of any of its leases, instead of at the deadline.
    pub fn strict(mut self) -> Self {
        self.each = self.each.strict();
        self
    }

    /// Disables the witness: the leases run out by their ttl alone.
    pub fn without_witness(mut self) -> Self {
        self.each = self.each.without_witness();
        self
    }

    /// Waits until all leases are granted, at most as long as [`wait`](Self::wait) allows.
    ///
    /// They are acquired one after the other in the order of their keys, and kept. So contenders of overlapping sets
    /// never wait for each other, whatever order their callers wrote. If a lease is lost while the contender waits for
    /// a later one, it releases all of them and begins again.
    ///
    /// All or nothing: an error, which names the lease that was not granted, comes after the granted ones have been
    /// released. If the store does not answer, that takes one ttl at most.
    ///
    /// Do not acquire a set, or a lease, while you hold another one without a limit to the wait: you chose that order,
    /// and two processes with opposite orders wait for each other. Name all keys in one set.
    ///
    /// Cancel-safe: if the future is dropped, the keeper vacates what was granted.
    pub async fn acquire(self) -> Result<LeaseSet, Error> {
        let patience = self.each.patience();
        SetSeeker::new(self.connection, self.keys, self.each, patience)?.seek().await
    }

    /// Tries once: all leases, or an error of kind [`Held`](crate::ErrorKind::Held) that names the first that another
    /// holder has, and that holder.
    ///
    /// Cancel-safe, and all or nothing, as [`acquire`](Self::acquire) is.
    pub async fn try_acquire(self) -> Result<LeaseSet, Error> {
        SetSeeker::new(self.connection, self.keys, self.each, Patience::Once)?.seek().await
    }
}
