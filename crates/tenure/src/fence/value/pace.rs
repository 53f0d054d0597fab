use std::time::Duration;

use tenure_store::{StoreError, Throttled};

use crate::clock::Instant;
use crate::host::entropy::draw;

/// The pauses and the bounds of one operation.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    /// Time for the content, which is read and written.
    transfer: Duration,
    /// Number of failed calls. A read that succeeds does not reset it: a server that refuses writes would otherwise get them
    /// without growing pauses.
    failures: u32,
    conflicts: u32,
    /// The pause that the store asks for.
    asked: Duration,
    /// True if the latest call has failed.
    failed: bool,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        let (transfer, asked) = (Duration::ZERO, Duration::ZERO);
        Self { began: now, transfer, failures: 0, conflicts: 0, asked, failed: false }
    }

    /// Allows the time for content of this length.
    pub(super) fn allow(&mut self, bytes: usize) {
        self.transfer = self.transfer.max(transfer(bytes) * 2);
    }

    /// Takes the outcome of a call into account.
    pub(super) fn learn(&mut self, error: Option<&StoreError>) {
        self.failed = error.is_some();
        self.asked = match error {
            Some(StoreError::Throttled(Throttled { after: Some(after), .. })) => (*after).min(RETRY_MAX),
            _ => Duration::ZERO,
        };
        self.failures += u32::from(self.failed);
    }

    pub(super) fn count_conflict(&mut self) {
        self.conflicts += 1;
    }

    /// The pause before the next read, or the reason to give up.
    pub(super) fn next(&self, now: Instant) -> Result<Duration, &'static str> {
        if now >= self.began + GIVE_UP_AFTER + self.transfer {
            return Err("the operation took too long");
        }
        if self.conflicts > CONFLICTS_MAX {
            return Err("other writers replaced the value again and again. Try again");
        }
        if self.failed {
            let pause = RETRY.saturating_mul(1 << self.failures.min(6));
            return Ok(pause.min(RETRY_MAX).max(self.asked));
        }
        // The first conflicts are not delayed. Then the writers take turns by chance.
        let most = 1_u64 << self.conflicts.saturating_sub(2).min(6);
        let jitter = u64::from(u16::from_ne_bytes(draw())) % most;
        Ok(if self.conflicts > 2 { Duration::from_millis(jitter) } else { Duration::ZERO })
    }
}

/// Time for the transfer of this many bytes, at the lowest rate that is accepted: 1 MiB per second.
pub(super) fn transfer(bytes: usize) -> Duration {
    Duration::from_secs((bytes >> 20) as u64)
}

/// Time for which an operation is tried.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// Half of the first pause after a failed call.
const RETRY: Duration = Duration::from_millis(50);

/// Longest pause after repeated failures.
const RETRY_MAX: Duration = Duration::from_secs(2);

/// Each conflict is a write of another writer. A fence has one holder, and rarely more than two writers.
const CONFLICTS_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_refuses_every_write_and_answers_every_read_gets_few_writes() {
        let mut now = Instant::from_nanos(0);
        let mut pace = Pace::new(now);
        let mut writes = 0;
        for _ in 0..1_000 {
            writes += 1;
            pace.learn(Some(&StoreError::throttled(None)));
            let Ok(pause) = pace.next(now) else { break };
            now = now + pause;
            pace.learn(None);
        }
        assert!((8..=14).contains(&writes), "{writes}");
    }

    #[test]
    fn conflicts_are_bounded_and_the_first_ones_are_not_delayed() {
        let now = Instant::from_nanos(0);
        let mut pace = Pace::new(now);
        for conflict in 1..=CONFLICTS_MAX {
            pace.count_conflict();
            let pause = pace.next(now).unwrap();
            assert!(
                pause < Duration::from_millis(64) && (conflict > 2 || pause.is_zero()),
                "{conflict}: {pause:?}"
            );
        }
        pace.count_conflict();
        assert!(pace.next(now).is_err());
    }

    #[test]
    fn large_content_has_more_time() {
        let (mut pace, late) = (Pace::new(Instant::from_nanos(0)), Instant::from_nanos(20_000_000_000));
        assert!(pace.next(late).is_err());
        pace.allow(10 << 20);
        assert!(pace.next(late).is_ok());
    }
}
