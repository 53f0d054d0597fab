use super::Clock;
use crate::time::MILLI;

/// The timer of a machine, on the clock of its process. One agenda entry serves it until it needs an earlier one.
#[derive(Debug)]
pub(crate) struct Timer {
    /// The time until which the machine sleeps, on the clock of its process.
    until: Option<u64>,
    /// True time of its next entry in the agenda.
    queued: u64,
}

/// Meaning of an agenda entry of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerEntry {
    /// The sleep is over.
    Due,
    /// The machine sleeps longer: the entry moves to this true time.
    Later(u64),
    /// It serves no timer any more.
    Void,
}

impl Timer {
    /// A timer that is not set.
    pub(crate) fn new() -> Self {
        Self { until: None, queued: u64::MAX }
    }

    /// The time until which the machine sleeps, on the clock of its process.
    pub(crate) fn until(&self) -> Option<u64> {
        self.until
    }

    /// Sets the timer. Returns the true time of the agenda entry, if it needs a new one.
    pub(crate) fn sleep(&mut self, until: u64, clock: &Clock, now: u64) -> Option<u64> {
        self.until = Some(until);
        // A timer that is already due fires a little later, as real timers do.
        let earliest = if until <= clock.local(now) { now + MILLI } else { now };
        let at = clock.reaches(until).max(earliest);
        (at < self.queued).then(|| {
            self.queued = at;
            at
        })
    }

    /// An agenda entry of this timer is reached.
    pub(crate) fn fires(&mut self, clock: &Clock, now: u64) -> TimerEntry {
        let Some(until) = self.until.filter(|_| self.queued <= now) else { return TimerEntry::Void };
        if clock.local(now) < until {
            self.queued = clock.reaches(until);
            return TimerEntry::Later(self.queued);
        }
        self.queued = u64::MAX;
        self.until = None;
        TimerEntry::Due
    }
}
