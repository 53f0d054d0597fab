use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::server_answer::SKEW_MAX;
use crate::boot_time::{BootTime, MachineBootTime};

/// The store's time, as the `Date` of its answers showed it, and continued on a clock of this machine that counts through
/// suspend.
///
/// A signature with a time ties the clocks of the client and of the server: see
/// [`ServerAnswer::doubt`](super::ServerAnswer::doubt). Bearer tokens and SAS tokens do not. There, a `Date` is believed
/// if it fits the earlier ones, or if a second answer agrees with it: one front end with a wrong clock is not enough.
#[derive(Debug)]
pub(super) struct SeenTime {
    clock: Arc<dyn BootTime>,
    state: Mutex<SeenState>,
}

#[derive(Debug, Default)]
struct SeenState {
    believed: Option<Seen>,
    /// The last one that did not fit.
    doubted: Option<Seen>,
}

/// A time of the store, in seconds, and the time of this machine's clock when it arrived.
#[derive(Clone, Copy, Debug)]
struct Seen {
    second: i64,
    at: Duration,
}

impl SeenTime {
    /// Seconds by which this time is ahead of the earlier ones, if they differ so much that it is not believed.
    pub(super) fn drift(&self, date: Timestamp) -> Option<i64> {
        let new = Seen { second: date.as_second(), at: self.clock.now() };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = state.believed.map_or(0, |believed| new.ahead_of(believed));
        let agrees = |doubted: Seen| new.ahead_of(doubted).abs() <= SKEW_MAX;
        if ahead.abs() <= SKEW_MAX || state.doubted.is_some_and(agrees) {
            *state = SeenState { believed: Some(new), doubted: None };
            return None;
        }
        state.doubted = Some(new);
        Some(ahead)
    }
}

impl Seen {
    /// Seconds by which this time is ahead of an earlier one that has continued since.
    fn ahead_of(self, earlier: Self) -> i64 {
        let passed = self.at.saturating_sub(earlier.at).as_secs();
        self.second.saturating_sub(earlier.second).saturating_sub_unsigned(passed)
    }
}

impl Default for SeenTime {
    fn default() -> Self {
        Self { clock: Arc::new(MachineBootTime), state: Mutex::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct SetClock(AtomicU64);

    impl BootTime for SetClock {
        fn now(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    /// Drifts of times that arrive at these seconds of this machine's clock.
    fn drifts<const N: usize>(seen: [(u64, i64); N]) -> [Option<i64>; N] {
        let clock = Arc::new(SetClock::default());
        let time = SeenTime { clock: clock.clone(), state: Mutex::default() };
        seen.map(|(at, second)| {
            clock.0.store(at, Ordering::Relaxed);
            time.drift(Timestamp::from_second(NOW + second).unwrap())
        })
    }

    const NOW: i64 = 1_794_744_996;
    const YEAR: i64 = 365 * 24 * 3600;

    #[test]
    fn a_time_that_fits_is_believed_also_after_a_long_suspend() {
        assert_eq!(drifts([(0, 0), (1, 1), (2, 800), (90_000, 90_000), (90_001, 89_500)]), [None; 5]);
    }

    #[test]
    fn one_answer_from_the_far_future_is_doubted_and_the_next_usual_one_is_believed() {
        let far = 100 * YEAR;
        assert_eq!(
            drifts([(0, 0), (1, far), (2, 2), (3, far), (4, 4)]),
            [None, Some(far - 1), None, Some(far - 3), None]
        );
    }

    #[test]
    fn a_clock_that_was_set_is_believed_once_a_second_answer_agrees() {
        let [first, doubted, agreed, old] = drifts([(0, 0), (1, -YEAR), (2, 1 - YEAR), (3, 3)]);
        assert_eq!((first, doubted, agreed), (None, Some(-YEAR - 1), None));
        assert!(old.is_some_and(|ahead| ahead > 0), "the old time is the odd one now");
    }

    #[test]
    fn two_doubted_times_that_differ_are_not_an_agreement() {
        let [.., third] = drifts([(0, 0), (1, YEAR), (2, 2 * YEAR)]);
        assert_eq!(third, Some(2 * YEAR - 2));
    }
}
