//! Pacing of writes to one key.

use std::time::Duration;

use tenure_store::Key;

use super::Keeper;
use crate::clock::Instant;
use crate::host::simulation::{Duty, does};

impl Keeper {
    /// Time for which a write of this key waits for the store's write interval.
    ///
    /// Timing already spaces renewals and retries. This spaces the other writes: a plant is followed by its grant, and
    /// a release by the next acquire. No write waits longer than the interval, whatever the number of contenders.
    pub(crate) fn pace(&mut self, key: &Key, now: Instant) -> Duration {
        let interval = self.write_interval;
        let known = self.keys.get_mut(key);
        known.map_or(Duration::ZERO, |known| next_write(&mut known.next_write_at, interval, now))
    }
}

/// Time for which the next write of a key waits, if the store accepts one per `interval`. `next_write_at` is the earliest
/// time of the write after that.
pub(crate) fn next_write(next_write_at: &mut Option<Instant>, interval: Duration, now: Instant) -> Duration {
    if interval < STRICT {
        return Duration::ZERO;
    }
    let latest = if does(Duty::BoundPacing) { now + interval } else { now + QUEUE_MAX };
    let at = next_write_at.map_or(now, |next_write_at| next_write_at.clamp(now, latest));
    *next_write_at = Some(at + interval);
    at.since(now)
}

/// Intervals of at least this length are enforced between any two writes: R2 and Google accept one write of a key per second.
/// Shorter intervals were measured over many writes in a row, and two writes do no harm.
const STRICT: Duration = Duration::from_millis(500);

/// Longest queue of a keeper that neglects its duty.
const QUEUE_MAX: Duration = Duration::from_secs(3600);
