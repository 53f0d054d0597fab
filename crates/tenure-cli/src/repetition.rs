use std::time::Duration;

use tenure::clock::Instant;

/// The times of a message that is repeated as long as its cause lasts: at first at once, then at growing intervals.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    /// The latest message, and the interval after it.
    latest: Option<(Instant, Duration)>,
}

impl Repetition {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The time from which the message is due again, or `now`, if that is later.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        self.latest.map_or(now, |(at, interval)| now.max(at + interval))
    }

    /// Records that the message is printed now. A cause that returns soon continues with the longer intervals.
    pub(crate) fn repeated(&mut self, now: Instant) {
        let interval = match self.latest {
            Some((at, interval)) if now.since(at) <= 4 * interval => (2 * interval).min(LONGEST),
            _ => FIRST,
        };
        self.latest = Some((now, interval));
    }
}

const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_up_to_ten_minutes_and_begin_anew_after_a_calm_time() {
        let mut repetition = Repetition::new();
        let mut now = Instant::default() + Duration::from_secs(100);
        assert_eq!(repetition.due(now), now);
        for seconds in [5, 10, 20, 40, 80, 160, 320, 600, 600] {
            repetition.repeated(now);
            now = repetition.due(now);
            assert_eq!(repetition.due(now - Duration::from_millis(1)), now);
            assert_eq!(now.since(repetition.latest.unwrap().0), Duration::from_secs(seconds));
        }
        now = now + 4 * LONGEST;
        repetition.repeated(now);
        assert_eq!(repetition.due(now).since(now), FIRST);
    }
}
