use std::time::Duration;

use tenure::Timing;
use tenure_store::{Guarantees, Reach};

use crate::measure::Measured;
use crate::words::short;

/// A ttl that fits a store, and the way it was found. It is the shortest of a few round ones; longer ones fit too.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// The ttl, with the durations derived from it.
    pub timing: Timing,
    /// Time allowed for one call.
    pub call: Duration,
    /// Minimum interval between two writes of one key.
    pub interval: Duration,
    /// The arithmetic, one line per step.
    pub arithmetic: Vec<String>,
    /// The limit that a user must know, if the store is too slow for any ttl.
    pub limit: Option<String>,
}

/// The ttl for a store with these measurements; `None` if there is none.
pub(crate) fn advise(store: &str, declared: &Guarantees, measured: &Measured) -> Option<Advice> {
    let mut guarantees = *declared;
    guarantees.write_interval = measured.rate.sensible_interval(declared.write_interval);
    let interval = guarantees.write_interval;
    let calls = [measured.read, measured.create, measured.replace];
    let p99 = calls.iter().map(|latency| latency.p99).max().unwrap_or_default();
    let slowest = calls.iter().map(|latency| latency.max).max().unwrap_or_default();
    let (least, why) = least_call(declared.reach);
    let call = least.max(p99 * P99_TIMES).max(slowest * SLOWEST_TIMES);

    let timings: Vec<Timing> = ROUND_SECONDS
        .iter()
        .filter_map(|seconds| Timing::new(Duration::from_secs(*seconds)).ok())
        .filter_map(|timing| timing.bearable_for(store, &guarantees).ok())
        .collect();
    let patient = timings.iter().find(|timing| timing.timeout() >= call);
    let longest_call = timings.iter().map(Timing::timeout).max()?;
    let timing = *patient.or_else(|| timings.iter().find(|timing| timing.timeout() == longest_call))?;
    let limit = patient.is_none().then(|| {
        format!(
            "it is slow: a call may take {}, and any ttl allows at most {}, so a healthy holder may lose its lease now \
             and then",
            short(call),
            short(longest_call)
        )
    });

    let ttl = timing.ttl().as_duration();
    let (period, timeout) = (millis(timing.period()), millis(timing.timeout()));
    let wants = match interval {
        Duration::ZERO => "no pause".to_owned(),
        interval => short(interval),
    };
    let arithmetic = vec![
        format!(
            "one call may take {}: the greatest of {P99_TIMES} × p99 = {P99_TIMES} × {} = {}, {SLOWEST_TIMES} × the \
             slowest = {SLOWEST_TIMES} × {} = {}, and {least:?} ({why})",
            short(call),
            short(p99),
            short(p99 * P99_TIMES),
            short(slowest),
            short(slowest * SLOWEST_TIMES),
        ),
        format!("a ttl of {ttl:?} allows {timeout:?} for a call, and is renewed every {period:?}"),
        format!(
            "period {period:?} + write {timeout:?} + read back {timeout:?} + one retry {timeout:?} = {:?}, and that \
             is within ttl − drift − margin = {ttl:?} − {:?} − {:?} = {:?}",
            period + 3 * timeout,
            millis(ttl - timing.belief()),
            millis(timing.margin()),
            millis(timing.usable()),
        ),
        format!(
            "a call that failed is tried again after {:?} at the earliest, and the store wants {wants} between two \
             writes of one key",
            millis(timing.retry()),
        ),
        format!(
            "so the lease survives an outage of {:?}, and a waiting contender takes over from a dead holder within \
             {:?}",
            millis(timing.rides_out()),
            millis(timing.worst_write_outage())
        ),
    ];
    Some(Advice { timing, call, interval, arithmetic, limit })
}

/// Minimum time allowed for a call, however fast the store was during the probe.
fn least_call(reach: Reach) -> (Duration, &'static str) {
    match reach {
        Reach::Nothing | Reach::Process | Reach::Machine => {
            (Duration::from_millis(200), "on one machine: it may be busy")
        }
        _ => (
            Duration::from_millis(1_500),
            "on a network: when the first packet of a connection is lost, the next comes a second later",
        ),
    }
}

/// Rounds to milliseconds for display. Sums stay correct, because every ttl here is in whole seconds.
fn millis(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from((span.as_micros() + 500) / 1_000).unwrap_or(u64::MAX))
}

/// Margin: over a day a store is slower than during the few seconds of a probe.
const P99_TIMES: u32 = 5;
const SLOWEST_TIMES: u32 = 2;

/// Common values of a ttl.
const ROUND_SECONDS: [u64; 12] = [2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Latency, WriteRate};

    fn measured(p99_ms: u64, rate: WriteRate) -> Measured {
        let latency = Latency::of(vec![Duration::from_millis(p99_ms); 100], 0);
        Measured { read: latency, create: latency, replace: latency, rate, clock: Default::default() }
    }

    fn guarantees(reach: Reach, interval_ms: u64) -> Guarantees {
        let mut guarantees = Guarantees::default();
        guarantees.reach = reach;
        guarantees.write_interval = Duration::from_millis(interval_ms);
        guarantees
    }

    fn seconds(reach: Reach, interval_ms: u64, p99_ms: u64) -> u64 {
        let advice =
            advise("x", &guarantees(reach, interval_ms), &measured(p99_ms, WriteRate::default())).unwrap();
        advice.timing.ttl().as_duration().as_secs()
    }

    #[test]
    fn every_recommended_ttl_is_valid_and_tolerated_and_leaves_time_for_a_call() {
        for reach in [Reach::Machine, Reach::Network] {
            for interval_ms in [0, 100, 1_100] {
                for p99_ms in [0, 1, 40, 200, 400, 700, 950] {
                    let guarantees = guarantees(reach, interval_ms);
                    let advice = advise("x", &guarantees, &measured(p99_ms, WriteRate::default()))
                        .expect("there is one");
                    let ttl = advice.timing.ttl().as_duration();
                    let timing = Timing::new(ttl).expect("the library takes it");
                    let timing = timing.bearable_for("x", &guarantees).expect("the store bears it");
                    assert_eq!(timing, advice.timing);
                    assert!(
                        timing.timeout() >= Duration::from_millis(5 * p99_ms),
                        "{timing} for {p99_ms} ms"
                    );
                    assert_eq!(advice.limit, None);
                }
            }
        }
    }

    #[test]
    fn a_fast_store_is_recommended_a_short_ttl_and_a_network_needs_longer() {
        assert_eq!(seconds(Reach::Machine, 0, 1), 2);
        assert_eq!(seconds(Reach::Network, 100, 30), 15, "the default of the command");
        assert_eq!(seconds(Reach::Network, 100, 450), 30, "five times that is 2.25 s");
        assert_eq!(seconds(Reach::Network, 1_100, 30), 15, "a failed write is retried after 1.1 s");
        assert_eq!(seconds(Reach::Machine, 1_100, 1), 15, "10 s would allow a second for a retry");
    }

    #[test]
    fn a_store_that_throttles_is_written_at_its_measured_interval() {
        let second = Duration::from_secs(1);
        let rate = WriteRate { writes: 5, throttled: 9, failed: 0, took: 5 * second };
        let advice = advise("x", &guarantees(Reach::Network, 100), &measured(30, rate)).unwrap();
        assert_eq!(advice.interval, second);
        assert!(advice.timing.retry() >= second, "{}", advice.timing);
    }

    #[test]
    fn a_store_that_is_too_slow_has_a_limit() {
        let advice =
            advise("x", &guarantees(Reach::Network, 100), &measured(3_000, WriteRate::default())).unwrap();
        assert!(advice.limit.unwrap().starts_with("it is slow: a call may take 15s"));
        assert_eq!(advice.timing.timeout(), Duration::from_secs(5));
        assert_eq!(
            advise("x", &guarantees(Reach::Network, 3_600_000), &measured(1, WriteRate::default())),
            None
        );
    }

    #[test]
    fn the_arithmetic_is_written_out() {
        let advice =
            advise("x", &guarantees(Reach::Network, 100), &measured(31, WriteRate::default())).unwrap();
        assert_eq!(
            advice.arithmetic,
            [
                "one call may take 1.5s: the greatest of 5 × p99 = 5 × 31ms = 155ms, 2 × the slowest = 2 × 31ms = \
                 62ms, and 1.5s (on a network: when the first packet of a connection is lost, the next comes a second \
                 later)",
                "a ttl of 15s allows 1.5s for a call, and is renewed every 5s",
                "period 5s + write 1.5s + read back 1.5s + one retry 1.5s = 9.5s, and that is within ttl − drift − \
                 margin = 15s − 150ms − 300ms = 14.55s",
                "a call that failed is tried again after 750ms at the earliest, and the store wants 100ms between two \
                 writes of one key",
                "so the lease survives an outage of 4.3s, and a waiting contender takes over from a dead holder \
                 within 23.775s",
            ]
        );
    }
}
