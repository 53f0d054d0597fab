//! Measured durations of one operation, and their comparison with a goal.

use std::fmt;
use std::time::{Duration, Instant};

/// Durations of many runs of one operation. Displays the median, the ninetieth percentile and the longest.
#[derive(Debug, Clone)]
pub struct Samples {
    what: &'static str,
    spans: Vec<Duration>,
}

impl Samples {
    /// Creates an empty set of samples for an operation.
    pub fn new(what: &'static str) -> Self {
        Self { what, spans: Vec::new() }
    }

    /// Adds a duration that was measured elsewhere.
    pub fn add(&mut self, span: Duration) {
        self.spans.push(span);
    }

    /// Measures an operation.
    pub fn take<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.add(began.elapsed());
        done
    }

    /// Measures an operation that takes less time than a clock read, by running it a thousand times.
    pub fn take_thousand<T>(&mut self, mut work: impl FnMut() -> T) {
        let began = Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(work());
        }
        self.add(began.elapsed() / 1000);
    }

    /// Measures an asynchronous operation.
    pub async fn take_async<T>(&mut self, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let done = work.await;
        self.add(began.elapsed());
        done
    }

    /// The same after a pause, from which the processors and the server have to wake up as for a lone call. Without it, a
    /// call is faster the sooner it follows another one.
    pub async fn take_lone<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.take_async(work).await
    }

    /// The percentile. It leaves out the first two percent of the durations, which warm up; with fewer than fifty,
    /// none.
    ///
    /// # Panics
    ///
    /// If nothing was measured.
    pub fn at(&self, percent: usize) -> Duration {
        let mut spans = self.spans[self.spans.len() / 50..].to_vec();
        spans.sort();
        spans[(spans.len() * percent / 100).min(spans.len() - 1)]
    }

    /// The line above a table of samples.
    pub fn heading() -> String {
        format!("{:<58} {:>10} {:>10} {:>10}", "", "p50", "p90", "max")
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, all] = [50, 90, 100].map(|percent| format!("{:.2?}", self.at(percent)));
        write!(f, "{:<58} {half:>10} {most:>10} {all:>10}", self.what)
    }
}

/// Prints the ratio of `ours` to `bare`, and whether it meets the goal. Tests never assert times, because times depend
/// on the machine. `./test` counts the words `met` and `MISSED`.
pub fn print_ratio(what: &str, ours: Duration, bare: Duration, goal: Option<f64>) {
    println!("{}", ratio(what, ours, bare, goal));
}

fn ratio(what: &str, ours: Duration, bare: Duration, goal: Option<f64>) -> String {
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    let verdict = match goal {
        Some(goal) if ratio <= goal => format!(" (goal {goal:.2}x, met)"),
        Some(goal) => format!(" (goal {goal:.2}x, MISSED)"),
        None => String::new(),
    };
    format!("{what:<58} {ratio:>8.2}x{verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_or_missed() {
        let second = Duration::from_secs(1);
        assert!(ratio("a", 3 * second, 2 * second, Some(1.5)).ends_with("1.50x (goal 1.50x, met)"));
        assert!(ratio("a", 4 * second, 2 * second, Some(1.5)).ends_with("2.00x (goal 1.50x, MISSED)"));
        assert!(ratio("a", 4 * second, 2 * second, None).ends_with("2.00x"));
    }

    #[test]
    fn percentiles_omit_the_first_of_many_samples() {
        let mut samples = Samples::new("a");
        samples.add(Duration::from_secs(60));
        assert_eq!(samples.at(50), Duration::from_secs(60));
        (1..=99).for_each(|number| samples.add(Duration::from_millis(number)));
        assert_eq!(samples.at(100), Duration::from_millis(99));
        assert_eq!(samples.at(50), Duration::from_millis(51));
    }
}
