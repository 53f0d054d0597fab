use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tenure_store::Guarantees;

use crate::machine::rules;
use crate::record::Ttl;
use crate::{Drift, Error, ErrorKind};

/// Durations that are safe together. Unsafe ones cannot be built, and the error shows the arithmetic.
///
/// ```
/// # extern crate tenure_core as tenure;
/// use std::time::Duration;
/// use tenure::Timing;
///
/// let timing = Timing::new(Duration::from_secs(15))?;
/// assert_eq!(timing.period(), Duration::from_secs(5));
/// println!("{timing}");
///
/// // A request may take 4 s and the ttl is 6 s: one lost answer would end a healthy job.
/// let error = Timing::builder(Duration::from_secs(6)).timeout(Duration::from_secs(4)).build().unwrap_err();
/// assert!(error.to_string().contains("read back"));
/// # Ok::<(), tenure::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    ttl: Ttl,
    drift: Drift,
    period: Duration,
    timeout: Duration,
    retry: Duration,
    grace: Duration,
    margin: Duration,
}

/// Builds a [`Timing`] with durations other than the defaults.
#[derive(Clone, Debug)]
#[must_use = "a builder builds nothing until build() is called"]
pub struct TimingBuilder {
    ttl: Duration,
    drift: Drift,
    period: Option<Duration>,
    timeout: Option<Duration>,
    grace: Duration,
    margin: Option<Duration>,
}

impl Timing {
    /// The defaults for this ttl: a renewal every third of it, a request timeout of a tenth, and one percent of drift.
    pub fn new(ttl: Duration) -> Result<Self, Error> {
        Self::builder(ttl).build()
    }

    /// Starts from the defaults for this ttl.
    pub const fn builder(ttl: Duration) -> TimingBuilder {
        TimingBuilder {
            ttl,
            drift: Drift::DEFAULT,
            period: None,
            timeout: None,
            grace: Duration::ZERO,
            margin: None,
        }
    }

    /// Time for which a held version lasts.
    pub const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Bound on the rate of this machine's clock.
    pub const fn drift(&self) -> Drift {
        self.drift
    }

    /// Time between two renewals. Jitter only shortens it.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Time after which the outcome of a call on the store counts as unknown.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Shortest pause before a failed call is retried. Repeated failures make it longer, as far as the deadline of a term
    /// allows.
    pub const fn retry(&self) -> Duration {
        self.retry
    }

    /// Time that work needs to stop.
    pub const fn grace(&self) -> Duration {
        self.grace
    }

    /// Largest delay of a timer or a signal.
    pub const fn margin(&self) -> Duration {
        self.margin
    }

    /// Time for which a holder believes after one successful request: `ttl × (1 − drift)`.
    pub const fn belief(&self) -> Duration {
        self.drift.shorten(self.ttl.as_duration())
    }

    /// The part of the ttl for renewals: `ttl × (1 − drift) − grace − margin`.
    pub const fn usable(&self) -> Duration {
        self.belief().saturating_sub(self.grace).saturating_sub(self.margin)
    }

    /// Longest time without a holder after one died without releasing, by the clock of a waiting contender whose calls
    /// succeed. It sent a read just before the last renewal, sends the next one three eighths of a ttl later, waits for the
    /// ttl, and writes; both calls take their complete timeout.
    ///
    /// A contender usually knows the rhythm of the renewals and reads just after each. Then the time is 0.9 ttl at the
    /// median, and 1.1 ttl for 99 of 100 crashes.
    pub fn worst_write_outage(&self) -> Duration {
        let ttl = self.ttl.as_duration();
        rules::poll_period(self.ttl) + self.timeout + self.drift.lengthen(ttl) + self.timeout
    }

    /// Longest outage of the store that cannot end a term. It may begin just before a renewal. The last affected call
    /// waits for its timeout. Then the shortest pause, one read and one write must fit: a holder shortens its pause for
    /// the sake of this last attempt.
    pub fn rides_out(&self) -> Duration {
        self.usable().saturating_sub(self.period + 3 * self.timeout + self.retry)
    }

    /// Average number of renewals of a holder in this time, each of which is one write. Jitter makes each up to a tenth
    /// earlier.
    pub fn renewals_in(&self, span: Duration) -> u64 {
        occurrences(span, self.period)
    }

    /// Average number of reads of a waiting contender in this time, for a lease of this timing, on a store without hints:
    /// one after each renewal, and about one in ten that was too early.
    pub fn looks_in(&self, span: Duration) -> u64 {
        let renewals = self.renewals_in(span);
        renewals + renewals / 10
    }

    /// These durations on a store: a failed call is retried no sooner than the store accepts the next write of a key.
    /// Refuses durations that would write more often, or whose retry would come too late for a lost answer. Refuses a ttl
    /// that outlasts the store's quarantine.
    pub fn bearable_for(&self, store: &str, guarantees: &Guarantees) -> Result<Self, Error> {
        if let Some(max) = guarantees.ttl_max
            && self.ttl.as_duration() > max
        {
            return Err(outlasts_quarantine(store, self.ttl, max));
        }
        let interval = guarantees.write_interval;
        let shortest = self.period - self.period / rules::JITTER_PART;
        // The time for one retry is a request timeout: the pause before it takes no more than the lost call did.
        if shortest >= interval && self.timeout >= interval {
            return Ok(Self { retry: self.retry.max(interval), ..*self });
        }
        // The default timeout is a tenth of the ttl, at most five seconds.
        let enough = Duration::from_secs(interval.saturating_mul(10).as_millis().div_ceil(1_000) as u64);
        let advice = match Self::new(enough) {
            Ok(timing) if timing.timeout >= interval => format!("use a ttl of {enough:?} or longer"),
            _ => "use a longer ttl, and a longer request timeout".to_owned(),
        };
        Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "{store} accepts one write of a key every {interval:?}, but a ttl of {} renews every {:?} and allows \
                 {:?} for a retry: {advice}",
                self.ttl,
                in_millis(self.period),
                in_millis(self.timeout)
            ),
        ))
    }
}

impl TimingBuilder {
    /// Sets the bound on this machine's clock rate.
    pub fn drift(mut self, drift: Drift) -> Self {
        self.drift = drift;
        self
    }

    /// Sets the time between two renewals. Default: a third of the ttl.
    pub fn period(mut self, period: Duration) -> Self {
        self.period = Some(period);
        self
    }

    /// Sets the request timeout. Default: a tenth of the ttl, at most five seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the time that work needs to stop. Default: none.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the largest delay of a timer or a signal. Default: a fiftieth of the ttl.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// The durations; an error if they are not safe together.
    pub fn build(self) -> Result<Timing, Error> {
        let ttl = Ttl::try_from(self.ttl)?;
        let whole = ttl.as_duration();
        let margin = self.margin.unwrap_or(whole / 50);
        let timeout = self.timeout.unwrap_or((whole / 10).min(Duration::from_secs(5)));
        let usable = self.drift.shorten(whole).saturating_sub(self.grace).saturating_sub(margin);
        // A third, or as much of it as the grace leaves: one lost answer must still fit behind it.
        let room = usable.saturating_sub(timeout.saturating_mul(3));
        let third = whole / 3;
        let period = self.period.unwrap_or(if room < LEAST { third } else { third.min(room) });
        for (name, span) in [("renewal period", period), ("request timeout", timeout)] {
            if span < LEAST {
                return Err(unsafe_together(
                    ttl,
                    format!("the {name} is {span:?}, and must be at least {LEAST:?}"),
                ));
            }
        }
        let needed = period.saturating_add(timeout.saturating_mul(3));
        if needed > usable {
            let drift = whole - self.drift.shorten(whole);
            let [period, timeout, needed] = [period, timeout, needed].map(shown);
            let [whole, drift, grace, margin] = [whole, drift, self.grace, margin].map(shown);
            let parts = format!("ttl − drift − grace − margin = {whole} − {drift} − {grace} − {margin}");
            let room = if usable.is_zero() {
                format!("but {parts} leaves nothing")
            } else {
                format!("but only {parts} = {} may be used", shown(usable))
            };
            return Err(unsafe_together(
                ttl,
                format!(
                    "renewal period {period} + write {timeout} + read back {timeout} + one retry {timeout} = {needed}, {room}"
                ),
            ));
        }
        let retry = timeout / 2;
        Ok(Timing { ttl, drift: self.drift, period, timeout, retry, grace: self.grace, margin })
    }
}

/// Number of events in a span, one per `period`, each up to one part in [`JITTER_PART`] earlier.
///
/// [`JITTER_PART`]: rules::JITTER_PART
fn occurrences(span: Duration, period: Duration) -> u64 {
    let parts = u128::from(2 * rules::JITTER_PART);
    let times = (span.as_nanos() * parts).div_ceil(period.as_nanos() * (parts - 1));
    u64::try_from(times).unwrap_or(u64::MAX)
}

/// A duration with three significant digits, for messages.
fn shown(span: Duration) -> String {
    let nanos = span.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let step = 10_u128.pow(nanos.ilog10().saturating_sub(2));
    let rounded = (nanos + step / 2) / step * step;
    format!("{:?}", Duration::from_nanos(u64::try_from(rounded).unwrap_or(u64::MAX)))
}

/// Rounds to milliseconds, for messages.
fn in_millis(span: Duration) -> Duration {
    span - Duration::from_nanos(u64::from(span.subsec_nanos() % 1_000_000))
}

/// Shortest period or timeout.
const LEAST: Duration = Duration::from_millis(1);

fn outlasts_quarantine(store: &str, ttl: Ttl, max: Duration) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!(
            "{store} may forget leases when it restarts, and then grants nothing for {max:?} + drift, but a ttl of {ttl} \
             lasts longer: use a ttl of {max:?} or shorter, or add accept=restart to the URL if two holders after a \
             restart do no harm"
        ),
    )
}

fn unsafe_together(ttl: Ttl, arithmetic: String) -> Error {
    let advice = "use a longer ttl, or a shorter request timeout, period or grace";
    Error::new(ErrorKind::Invalid, format!("a ttl of {ttl} cannot be safe: {arithmetic}: {advice}"))
}

impl FromStr for Timing {
    type Err = Error;

    /// The defaults for a ttl in written form: `15s`, `500ms`, `2m`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed: Result<jiff::SignedDuration, _> = text.parse();
        let ttl = parsed.map_err(|error| {
            let advice = "write it like 15s, 500ms or 2m";
            Error::new(ErrorKind::Invalid, format!("{text:?} is not a duration: {advice}")).because(error)
        })?;
        let ttl = Duration::try_from(ttl)
            .map_err(|_| Error::new(ErrorKind::Invalid, format!("a ttl cannot be negative: {text:?}")))?;
        Self::new(ttl)
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ttl {}, renewed every {} by requests of at most {}, clock drift {}: survives a store outage of {:?}; at most \
             {:?} without a writer after a crash",
            self.ttl,
            shown(self.period),
            shown(self.timeout),
            self.drift,
            self.rides_out(),
            self.worst_write_outage()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_default_for_fifteen_seconds_is_a_third_a_tenth_and_one_percent() {
        let timing = Timing::new(15 * SECOND).unwrap();
        assert_eq!(timing.period(), 5 * SECOND);
        assert_eq!(timing.timeout(), Duration::from_millis(1500));
        assert_eq!(timing.belief(), Duration::from_millis(14_850));
        assert_eq!(timing.usable(), Duration::from_millis(14_550));
        assert_eq!(timing.rides_out(), Duration::from_millis(14_550 - 5_000 - 4_500 - 750));
        assert_eq!(timing.worst_write_outage(), Duration::from_millis(5_625 + 1_500 + 15_150 + 1_500));
        assert_eq!(
            timing.to_string(),
            "ttl 15s, renewed every 5s by requests of at most 1.5s, clock drift 10000 ppm: survives a store outage of \
             4.3s; at most 23.775s without a writer after a crash"
        );
    }

    #[test]
    fn every_default_leaves_room_for_one_lost_answer() {
        for millis in [50, 100, 333, 1_000, 15_000, 3_600_000, 86_400_000] {
            let timing = Timing::new(Duration::from_millis(millis)).unwrap();
            assert!(timing.period() + 3 * timing.timeout() <= timing.usable(), "{timing}");
        }
    }

    #[test]
    fn grace_shortens_the_period_rather_than_the_room_for_a_lost_answer() {
        let timing = Timing::builder(15 * SECOND).grace(5 * SECOND).build().unwrap();
        assert_eq!(timing.usable(), Duration::from_millis(9_550));
        assert!(timing.period() + 3 * timing.timeout() <= timing.usable());
    }

    #[test]
    fn an_unsafe_combination_cannot_be_built_and_the_error_shows_the_arithmetic() {
        let error = Timing::builder(6 * SECOND).timeout(4 * SECOND).period(2 * SECOND).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            "a ttl of 6s cannot be safe: renewal period 2s + write 4s + read back 4s + one retry 4s = 14s, but only \
             ttl − drift − grace − margin = 6s − 60ms − 0s − 120ms = 5.82s may be used: use a longer ttl, or a \
             shorter request timeout, period or grace"
        );
    }

    #[test]
    fn messages_have_three_digits_and_no_nanoseconds() {
        for (nanos, text) in [
            (0, "0s"),
            (33_333_333, "33.3ms"),
            (999_999_999, "1s"),
            (23_760_000_000, "23.8s"),
            (15_000_000_000, "15s"),
            (86_400_000_000_000, "86400s"),
        ] {
            assert_eq!(shown(Duration::from_nanos(nanos)), text);
        }
        let error = Timing::builder(Duration::from_millis(100))
            .margin(Duration::from_millis(150))
            .build()
            .unwrap_err();
        assert!(error.to_string().contains("100ms − 1ms − 0s − 150ms leaves nothing"), "{error}");
        assert!(error.to_string().contains("renewal period 33.3ms"), "{error}");
        assert!(shown(Duration::MAX).ends_with('s'));
    }

    #[test]
    fn absurd_durations_are_refused_in_words() {
        for ttl in [Duration::ZERO, Duration::from_millis(49), Duration::from_secs(86_401), Duration::MAX] {
            assert_eq!(Timing::new(ttl).unwrap_err().kind(), ErrorKind::Invalid, "{ttl:?}");
        }
        assert_eq!(
            Timing::new(Duration::from_millis(10)).unwrap_err().to_string(),
            "a ttl is a whole number of milliseconds from 50ms to 86400s, not 10ms: use 15s, for example"
        );
        assert!(Timing::new(Duration::from_micros(100_500)).is_err(), "records keep whole milliseconds");
        let builder = || Timing::builder(15 * SECOND);
        assert!(builder().period(Duration::ZERO).build().is_err());
        assert!(builder().timeout(Duration::ZERO).build().is_err());
        assert!(builder().timeout(Duration::MAX).build().is_err());
        assert!(builder().grace(Duration::MAX).build().is_err());
        assert!(builder().margin(15 * SECOND).build().is_err());
    }

    #[test]
    fn text_that_is_no_duration_is_refused_in_words() {
        assert_eq!("15s".parse::<Timing>().unwrap(), Timing::new(15 * SECOND).unwrap());
        for text in ["", "NaN", "inf", "-15s", "0s", "1e300s", "15", "99999999999h", "15 parsecs"] {
            assert_eq!(text.parse::<Timing>().unwrap_err().kind(), ErrorKind::Invalid, "{text:?}");
        }
    }

    #[test]
    fn a_ttl_that_outlasts_the_quarantine_of_a_store_is_refused() {
        let mut guarantees = Guarantees::default();
        (guarantees.write_interval, guarantees.ttl_max) = (Duration::ZERO, Some(60 * SECOND));
        let bearable =
            |seconds| Timing::new(seconds * SECOND).unwrap().bearable_for("redis://x", &guarantees);
        assert!(bearable(60).is_ok());
        let error = bearable(61).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            "redis://x may forget leases when it restarts, and then grants nothing for 60s + drift, but a ttl of 61s \
             lasts longer: use a ttl of 60s or shorter, or add accept=restart to the URL if two holders after a restart \
             do no harm"
        );
    }

    #[test]
    fn a_store_that_bears_one_write_a_second_refuses_a_short_ttl() {
        let mut guarantees = Guarantees::default();
        guarantees.write_interval = SECOND;
        let short = Timing::new(2 * SECOND).unwrap();
        let error = short.bearable_for("gs://bucket", &guarantees).unwrap_err();
        let sentence = error.to_string();
        assert!(sentence.contains("gs://bucket accepts one write of a key every 1s"), "{sentence}");
        assert!(sentence.ends_with("for a retry: use a ttl of 10s or longer"), "{sentence}");
        assert!(Timing::new(10 * SECOND).unwrap().bearable_for("gs://bucket", &guarantees).is_ok());
        let timing = Timing::new(15 * SECOND).unwrap();
        assert_eq!(timing.retry(), Duration::from_millis(750));
        let borne = timing.bearable_for("gs://bucket", &guarantees).unwrap();
        assert_eq!((borne.retry(), borne.period()), (SECOND, timing.period()), "a retry waits for its turn");
        assert!(borne.rides_out() < timing.rides_out() && borne.rides_out() > Duration::ZERO);
        assert!(Timing::new(9 * SECOND).unwrap().bearable_for("gs://bucket", &guarantees).is_err());
        guarantees.write_interval = Duration::MAX;
        let never = timing.bearable_for("gs://bucket", &guarantees).unwrap_err().to_string();
        assert!(never.ends_with("use a longer ttl, and a longer request timeout"), "{never}");
        guarantees.write_interval = Duration::ZERO;
        assert_eq!(timing.bearable_for("s3://bucket", &guarantees).unwrap(), timing);
    }

    #[test]
    fn one_lost_answer_fits_to_the_nanosecond_and_no_less() {
        let builder = || Timing::builder(15 * SECOND).timeout(Duration::from_millis(1_500));
        let longest = Duration::from_millis(14_550 - 4_500);
        assert_eq!(builder().period(longest).build().unwrap().period(), longest);
        assert!(builder().period(longest + Duration::from_nanos(1)).build().is_err());
        // The grace leaves the shortest period, which is allowed.
        let timing = builder().grace(longest - LEAST).build().unwrap();
        assert_eq!(timing.period(), LEAST);
    }

    #[test]
    fn jitter_counts_where_a_store_limits_its_writes_and_the_message_has_whole_milliseconds() {
        let mut guarantees = Guarantees::default();
        guarantees.write_interval = SECOND;
        let renewed_every = |millis| {
            let timing = Timing::builder(15 * SECOND).period(Duration::from_millis(millis)).build().unwrap();
            timing.bearable_for("gs://bucket", &guarantees)
        };
        assert!(renewed_every(1_112).is_ok(), "a tenth earlier is still a second");
        assert!(renewed_every(1_111).is_err());
        let error = Timing::new(2 * SECOND).unwrap().bearable_for("gs://bucket", &guarantees).unwrap_err();
        let sentence = error.to_string();
        assert!(
            sentence.contains("a ttl of 2s renews every 666ms and allows 200ms for a retry"),
            "{sentence}"
        );
        guarantees.write_interval = 6 * SECOND;
        let error = Timing::new(2 * SECOND).unwrap().bearable_for("gs://bucket", &guarantees).unwrap_err();
        assert!(
            error.to_string().ends_with("a longer request timeout"),
            "no default timeout is so long: {error}"
        );
    }

    #[test]
    fn an_hour_of_a_fifteen_second_lease_costs_its_renewals_and_a_few_more_reads() {
        let timing = Timing::new(15 * SECOND).unwrap();
        // Every 4.75 s on average, because jitter makes a renewal up to a tenth earlier.
        assert_eq!(timing.renewals_in(3_600 * SECOND), 758);
        assert_eq!(timing.looks_in(3_600 * SECOND), 758 + 75);
        assert_eq!(timing.renewals_in(Duration::ZERO), 0);
    }
}
