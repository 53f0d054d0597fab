use std::fmt;
use std::time::Duration;

use crate::words::short;

/// Latency of calls, from the call to its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// Number of answered calls. Only these count.
    pub samples: usize,
    /// Number of calls without an answer.
    pub failed: usize,
    /// Median.
    pub p50: Duration,
    /// 90th percentile.
    pub p90: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Maximum.
    pub max: Duration,
}

impl Latency {
    pub(crate) fn of(mut taken: Vec<Duration>, failed: usize) -> Self {
        taken.sort_unstable();
        // The smallest sample that at least this percentage of the samples does not exceed.
        let rank = |percent: usize| {
            let at = (taken.len() * percent).div_ceil(100).max(1) - 1;
            taken.get(at).copied().unwrap_or_default()
        };
        Self { samples: taken.len(), failed, p50: rank(50), p90: rank(90), p99: rank(99), max: rank(100) }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p90, p99, max] = [self.p50, self.p90, self.p99, self.max].map(short);
        write!(f, "p50 {p50}, p90 {p90}, p99 {p99}, the slowest of {} {max}", self.samples)?;
        if self.failed > 0 {
            write!(f, "; {} more were not answered", self.failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_samples() {
        let taken = (1..=200).rev().map(Duration::from_millis).collect();
        let latency = Latency::of(taken, 3);
        let millis = |span: Duration| span.as_millis();
        assert_eq!((latency.samples, latency.failed), (200, 3));
        assert_eq!(
            (millis(latency.p50), millis(latency.p90), millis(latency.p99), millis(latency.max)),
            (100, 180, 198, 200)
        );
        let one = Latency::of(vec![Duration::from_millis(7)], 0);
        assert_eq!((one.p50, one.p99, one.max), (one.max, one.max, Duration::from_millis(7)));
        assert_eq!(Latency::of(Vec::new(), 0), Latency::default());
    }
}
