use std::time::Duration;

use tenure::Timing;
use tenure::clock::{BootClock, Clock, Instant};

use super::schedule::Schedule;
use super::tree::Tree;

/// Recent lateness of the timers of one guard. Each guard measures its own: they are scheduled separately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lateness {
    /// The worst of the current window, and of the one before.
    worst: [Duration; 2],
    window_ends: Instant,
    /// The latest instant at which the worst lateness grew.
    grew_at: Option<Instant>,
}

impl Lateness {
    pub(super) fn new(now: Instant) -> Self {
        Self { worst: [Duration::ZERO; 2], window_ends: now + WINDOW, grew_at: None }
    }

    /// Takes in a timer that was due at `due` and woke its guard at `now`.
    pub(super) fn note(&mut self, due: Instant, now: Instant) {
        let before = self.worst[0];
        self.note_at_the_end(due, now);
        if self.worst[0] > before {
            self.grew_at = Some(now);
        }
    }

    /// Takes in the lateness of a guard that should have stopped the tree already: it can only make it act sooner.
    pub(super) fn note_at_the_end(&mut self, due: Instant, now: Instant) {
        if self.window_ends <= now {
            self.worst = [Duration::ZERO, self.worst[0]];
            self.window_ends = now + WINDOW;
        }
        self.worst[0] = self.worst[0].max(now.since(due));
    }

    /// The latest instant at which the margin grew; `None` if it never did.
    pub(super) fn grew_at(&self) -> Option<Instant> {
        self.grew_at
    }

    /// The worst lateness of the last minutes.
    pub(super) fn worst(&self) -> Duration {
        self.worst[0].max(self.worst[1])
    }

    /// The margin for this lateness: twice the measured value, plus the time that a process takes to die.
    pub(super) fn margin(&self, least: Duration) -> Duration {
        (self.worst() * 2 + DYING).max(least)
    }
}

/// Method of a guard for measuring its lateness.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatenessMeter {
    /// Time between two measurements.
    pub(super) pause: Duration,
    /// Earliest instant of the next rehearsal of a sweep; `None` for a guard of normal priority, whose sweep takes
    /// milliseconds. A guard of low priority may wake up in time, and then wait a second for each millisecond of work.
    rehearse_at: Option<Instant>,
}

impl LatenessMeter {
    /// Often enough to know before it matters.
    pub(super) fn new(timing: Timing, schedule: Schedule) -> Self {
        let pause =
            (timing.ttl().as_duration() / 16).clamp(Duration::from_millis(50), Duration::from_secs(1));
        Self { pause, rehearse_at: schedule.is_slow().then(|| Instant::from_nanos(0)) }
    }

    /// The instant at which a guard that woke up at `now` has found its tree.
    pub(super) fn of(&mut self, tree: &Tree, now: Instant) -> Instant {
        if self.rehearse_at.is_none_or(|at| now < at) {
            return now;
        }
        let before = processor_time();
        tree.rehearse();
        let done = BootClock::new().now();
        // On a machine with many processes and little time for this one, measuring would use up the time that it
        // measures.
        self.rehearse_at = Some(done + processor_time().saturating_sub(before) * REHEARSAL_PART);
        done
    }
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Rehearsals use at most one part in this many of a guard's time.
const REHEARSAL_PART: u32 = 200;

/// Time for which a lateness counts: between one and two of these.
const WINDOW: Duration = Duration::from_secs(60);

/// A killed process is dead within this time, unless it sleeps in the kernel.
const DYING: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_late_timer_makes_the_margin_longer_and_is_forgotten_after_two_windows() {
        let least = Duration::from_millis(150);
        let mut lateness = Lateness::new(at(0));
        lateness.note(at(1_000), at(1_010));
        assert_eq!(lateness.margin(least), least);
        lateness.note(at(2_000), at(2_400));
        assert_eq!(lateness.margin(least), Duration::from_millis(850));
        lateness.note(at(61_000), at(61_000));
        assert_eq!(lateness.worst(), Duration::from_millis(400), "the window before still counts");
        lateness.note(at(122_000), at(122_000));
        assert_eq!(lateness.margin(least), least);
    }
}
