use std::time::Duration;

/// Formats a duration with three digits, rounded up: the measurement is no more precise.
pub(crate) fn short(span: Duration) -> String {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let step = [1, 10, 100, 1_000, 10_000].into_iter().find(|step| micros / step < 1_000).unwrap_or(100_000);
    format!("{:?}", Duration::from_micros(micros.div_ceil(step).saturating_mul(step)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_enough() {
        for (micros, words) in
            [(0, "0ns"), (7, "7µs"), (1_234, "1.24ms"), (45_678, "45.7ms"), (2_345_678, "2.35s")]
        {
            assert_eq!(short(Duration::from_micros(micros)), words);
        }
    }
}
