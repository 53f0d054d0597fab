use std::time::Duration;

use tenure_store::StoreTime;

use super::Seen;
use crate::Instant;
use crate::record::Nonce;

/// Reads of a planted record for a later time of the store's clock.
#[derive(Debug, Default)]
pub(crate) struct TickReads {
    /// Nonce of the planted record.
    planted: Nonce,
    /// Time of the last answer that counted.
    answered: Option<Instant>,
    reads: u32,
    /// Number of these in a row before which the clock showed the same time as at first.
    unchanged: u32,
}

/// Next step towards the first grant of a planted record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextTick {
    /// Wait until this instant.
    Wait(Instant),
    /// Read again.
    Read {
        /// True if front ends with different clocks have answered: a contender without patience is denied.
        again: bool,
    },
    /// The clock stands still: it is no floor.
    Stands,
}

impl TickReads {
    /// Decides the step after an answer that showed a planted record. It is read again once the store's clock shows a
    /// later time: one timer and one read, if all answers come from one clock. If this answer is from a clock that is
    /// behind the first one, the pause is longer, up to `longest`.
    pub(crate) fn after(&mut self, seen: &Seen, tick: Duration, longest: Duration, now: Instant) -> NextTick {
        let micros = |time: Option<StoreTime>| time.map_or(0, StoreTime::as_micros);
        let behind = Duration::from_micros(micros(seen.first_time).saturating_sub(micros(seen.time)));
        let due = seen.returned + (tick + behind).min(tick.max(longest));
        if due > now {
            return NextTick::Wait(due);
        }
        let planted = seen.identity().map_or(Nonce::ZERO, |(_, nonce)| nonce);
        match self.next(planted, seen.returned, behind.is_zero()) {
            (_, unchanged) if unchanged > TICK_READS_MAX => NextTick::Stands,
            (reads, _) => NextTick::Read { again: reads > TICK_READS_MAX },
        }
    }

    /// Counts the next read of this record, unless the last one had no answer since then: it says nothing about the
    /// clock. Returns the number of reads, and of those with an unchanged clock.
    fn next(&mut self, planted: Nonce, answered: Instant, unchanged: bool) -> (u32, u32) {
        if self.planted != planted {
            *self = Self { planted, ..Self::default() };
        }
        if self.answered.replace(answered) == Some(answered) {
            return (self.reads, self.unchanged);
        }
        self.reads = self.reads.saturating_add(1);
        self.unchanged = if unchanged { self.unchanged.saturating_add(1) } else { 0 };
        (self.reads, self.unchanged)
    }
}

/// Maximum number of reads for a later time that show the same time, or by a contender that does not wait. One is enough
/// for one clock; front ends may be a tick apart.
const TICK_READS_MAX: u32 = 3;
