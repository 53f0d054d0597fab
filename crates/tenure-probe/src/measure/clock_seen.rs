use std::time::Duration;

use tenure::clock::WallTime;
use tenure_core::machine::is_plausible;
use tenure_store::StoreTime;

/// Observations of the store's own clock. No safety property depends on its offset: it raises the floor of tokens, and
/// Tenure never compares it with a local clock to judge a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockSeen {
    /// Number of answers with a time.
    pub told: u32,
    /// Number of answers without a time.
    pub untold: u32,
    /// Number of times outside the plausible range, 2020 to 2200.
    pub implausible: u32,
    /// The largest step backwards.
    pub back: Duration,
    /// Offset from this machine's wall clock at the end, in milliseconds; negative if the store's clock was behind.
    pub ahead_ms: Option<i64>,
    latest: Option<StoreTime>,
}

impl ClockSeen {
    pub(crate) fn note(&mut self, time: Option<StoreTime>, wall: WallTime) {
        let Some(time) = time else {
            self.untold += 1;
            return;
        };
        self.told += 1;
        if !is_plausible(time) {
            self.implausible += 1;
            return;
        }
        let before = self.latest.map_or(0, StoreTime::as_micros);
        self.back = self.back.max(Duration::from_micros(before.saturating_sub(time.as_micros())));
        self.latest = self.latest.max(Some(time));
        let millis = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
        self.ahead_ms = Some(millis(time.as_micros() / 1_000).saturating_sub(millis(wall.as_millis())));
    }

    /// The consequence of these observations, as a sentence.
    pub fn sentence(&self) -> String {
        if self.told == 0 {
            return "it reports no time: tokens grow as long as the record exists".to_owned();
        }
        if self.implausible > 0 {
            return "it reports impossible times, which are ignored".to_owned();
        }
        let mut sentence = match self.ahead_ms.unwrap_or_default() {
            ahead if ahead.unsigned_abs() <= NEAR_MS => {
                "it reports the time, within two seconds of this machine's".to_owned()
            }
            ahead => {
                let off = Duration::from_secs(ahead.unsigned_abs() / 1_000);
                let side = if ahead < 0 { "behind" } else { "ahead of" };
                format!("it reports the time, {off:?} {side} this machine's, which does no harm")
            }
        };
        if self.ahead_ms.is_some_and(|ahead| ahead.unsigned_abs() > SIGNED_MS) {
            sentence.push_str(
                "; but AWS accepts no signature that is more than 15 minutes off, so set the clock",
            );
        }
        if self.back > BACK_MAX {
            sentence.push_str(&format!("; it went back by {:?}, so it is no floor for tokens", self.back));
        }
        if self.untold > 0 {
            sentence.push_str(&format!("; {} of {} answers had none", self.untold, self.told + self.untold));
        }
        sentence
    }

    /// The limit that a user of the store must know, if any.
    pub(crate) fn limit(&self) -> Option<String> {
        let insane = self.implausible > 0 || self.back > BACK_MAX;
        insane.then(|| {
            format!(
                "the store's time: {}, so tokens may not grow when a record is deleted from outside",
                self.sentence()
            )
        })
    }
}

/// `Date` has whole seconds, and an answer takes time to arrive.
const NEAR_MS: u64 = 2_000;

/// The clock difference that AWS tolerates.
const SIGNED_MS: u64 = 15 * 60 * 1_000;

/// Several front ends have several clocks, in whole seconds.
const BACK_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_794_735_088_000;

    fn seen(times: &[Option<i64>]) -> ClockSeen {
        let mut seen = ClockSeen::default();
        for ahead in times {
            let time =
                ahead.map(|ahead| StoreTime::from_micros((NOW * 1_000).saturating_add_signed(ahead * 1_000)));
            seen.note(time, WallTime::from_millis(NOW));
        }
        seen
    }

    #[test]
    fn a_clock_is_described_by_what_follows_from_it() {
        assert!(seen(&[None, None]).sentence().starts_with("it reports no time"));
        assert_eq!(
            seen(&[Some(-900)]).sentence(),
            "it reports the time, within two seconds of this machine's"
        );
        assert_eq!(
            seen(&[Some(-90_000)]).sentence(),
            "it reports the time, 90s behind this machine's, which does no harm"
        );
        assert!(seen(&[Some(1_000_000)]).sentence().contains("1000s ahead of"));
        assert!(seen(&[Some(1_000_000)]).sentence().contains("set the clock"));
        assert!(seen(&[Some(0), None]).sentence().ends_with("1 of 2 answers had none"));
    }

    #[test]
    fn a_clock_that_goes_back_is_a_limit_and_one_in_whole_seconds_is_not() {
        assert_eq!(seen(&[Some(0), Some(-1_000), Some(0)]).limit(), None);
        let back = seen(&[Some(0), Some(-3_600_000)]);
        assert_eq!(back.back, Duration::from_secs(3_600));
        assert!(back.limit().unwrap().contains("went back by 3600s"));
        assert!(seen(&[Some(-1_000_000_000_000)]).limit().is_some(), "the year 1995");
    }
}
