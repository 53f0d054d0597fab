//! How often one key is written.

use std::time::Duration;

use futures_util::future::FutureExt;
use tenure_store::{BoxFuture, Key};

use super::Keeper;
use crate::clock::Instant;

impl Keeper {
    /// How long a write of this key waits until the store bears it.
    ///
    /// Timing keeps renewals and repetitions apart, and nothing else: a record is planted and granted in one go, and what is
    /// let go at once may be wanted again. Nobody waits for longer than the interval, however many want the key.
    pub(crate) fn pace(&mut self, key: &Key, now: Instant) -> Duration {
        let interval = self.write_interval;
        let Some(known) = self.keys.get_mut(key).filter(|_| interval >= STRICT) else {
            return Duration::ZERO;
        };
        let at = known.next_write_at.map_or(now, |next_write_at| next_write_at.clamp(now, now + interval));
        known.next_write_at = Some(at + interval);
        at.since(now)
    }

    /// Has something done before a write is sent, and then waits until the store bears it.
    pub(crate) fn paced(
        &self,
        first: Option<BoxFuture<'static, ()>>,
        now: Instant,
        wait: Duration,
    ) -> Option<BoxFuture<'static, ()>> {
        if wait.is_zero() {
            return first;
        }
        let next_write_at = self.clock.sleep_until(now + wait);
        Some(match first {
            Some(first) => first.then(|()| next_write_at).boxed(),
            None => next_write_at,
        })
    }
}

/// A store that wants so long between two writes answers to the second of two in a row that it came too soon: R2 and Google's
/// take one in a second. Shorter intervals are what was seen of many in a row, and two do no harm.
const STRICT: Duration = Duration::from_millis(500);
