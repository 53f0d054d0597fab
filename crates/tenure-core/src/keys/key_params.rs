use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreClock;

use crate::record::Ttl;
use crate::{Drift, Holder, Instant, Token};

/// Parameters of one operation on a plain key.
#[derive(Clone, Debug)]
pub struct KeyParams {
    /// The operation.
    pub operation: KeyOperation,
    /// The participant that asks.
    pub owner: KeyOwner,
    /// Abilities of the store's clock.
    pub store_clock: StoreClock,
    /// Tick of the store's clock; zero if the clock counts writes.
    pub clock_tick: Duration,
    /// Bound on the rate of this machine's clock.
    pub drift: Drift,
    /// Time for which an earlier answer of the store may be acted on, counted from its request.
    pub fresh_for: Ttl,
    /// Pause before a failed call is retried. It doubles with each failure in a row.
    pub retry: Duration,
    /// Longest pause before a retry.
    pub retry_max: Duration,
    /// Instant until which a creation waits for the present entry to run out or to be released; `None` if it does not
    /// wait.
    pub wait_until: Option<Instant>,
    /// Instant after which no further call begins.
    pub give_up_at: Instant,
}

/// Operation on a plain key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOperation {
    /// Read the entry.
    Get,
    /// Replace the entry that has exactly this revision. Revision zero means that there is no entry.
    Set {
        /// The expected revision.
        revision: Token,
        /// The new value.
        value: Arc<str>,
        /// Time after which the new entry runs out without a renewal; `None` if it never does.
        ttl: Option<Ttl>,
    },
    /// Start the ttl of the owner's entry anew.
    Renew,
    /// Remove the owner's entry. The key keeps its revision.
    Release,
}

/// Participant that owns entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOwner {
    /// Its name, which proves nothing.
    pub holder: Arc<Holder>,
    /// SHA-256 of its secret: the proof of ownership.
    pub secret_hash: [u8; 32],
}
