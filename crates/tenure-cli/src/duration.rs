//! Durations in written form: `15s`, `1m30s`, `500ms`.

use std::time::Duration;

/// Parses a duration. Units go from the largest to the smallest, each at most once.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit())) {
        return Err(format!("a duration cannot be negative: {EXAMPLES}"));
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("it has no unit: {EXAMPLES}"));
    }
    let wrong = || format!("it is not a duration: {EXAMPLES}");
    let (mut rest, mut units, mut millis) = (text, UNITS, 0u64);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|next: char| next.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let word = after.len() - after.trim_start_matches(|next: char| next.is_ascii_alphabetic()).len();
        let (word, after) = after.split_at(word);
        let at = units.iter().position(|(unit, _)| *unit == word).ok_or_else(wrong)?;
        if number.is_empty() {
            return Err(wrong());
        }
        let number: u64 = number.parse().unwrap_or(u64::MAX);
        millis = millis.saturating_add(number.saturating_mul(units[at].1));
        (rest, units) = (after, &units[at + 1..]);
    }
    if text.is_empty() {
        return Err(wrong());
    }
    if millis > MAX_MILLIS {
        return Err(format!("it is more than a year: {EXAMPLES}"));
    }
    Ok(Duration::from_millis(millis))
}

/// Parses a number of seconds, which may have a fraction.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "it is not a number of seconds: write it like 10 or 2.5, or use --wait 1m30s".to_owned();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    let millis = (seconds * 1_000.0).ceil();
    if millis > MAX_MILLIS as f64 {
        return Err("it is more than a year: write it like 10 or 2.5".to_owned());
    }
    Ok(Duration::from_millis(millis as u64))
}

/// The duration to the millisecond, such as `1m30s`. It parses back.
pub(crate) fn exact(span: Duration) -> String {
    let mut rest = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, millis) in UNITS {
        if rest >= *millis {
            text.push_str(&format!("{}{unit}", rest / millis));
            rest %= millis;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// The duration in short form, rounded up, for upper bounds.
pub(crate) fn at_most(span: Duration) -> String {
    let step = resolution(span);
    exact(Duration::from_millis(millis_up(span).div_ceil(step) * step))
}

/// The duration in short form, rounded down.
pub(crate) fn at_least(span: Duration) -> String {
    let step = resolution(span);
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    exact(Duration::from_millis(millis / step * step))
}

/// Whole milliseconds, rounded up.
pub(crate) fn millis_up(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX / 2)
}

/// Resolution of the short form, in milliseconds: two units are enough.
fn resolution(span: Duration) -> u64 {
    match span.as_secs() {
        0 => 1,
        1..3_600 => 1_000,
        3_600..86_400 => 60_000,
        _ => 3_600_000,
    }
}

/// From the largest, in milliseconds.
const UNITS: &[(&str, u64)] = &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

const MAX_MILLIS: u64 = 365 * 86_400_000;

const EXAMPLES: &str = "write it like 15s, 1m30s or 500ms";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_numbers_with_or_without_a_fraction() {
        for (text, millis) in [("0", 0), ("10", 10_000), ("2.5", 2_500), (".1", 100), ("0.0001", 1)] {
            assert_eq!(parse_seconds(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", ".", "1s", "-1", "1e3", "inf", "NaN", "1.2.3", "31536001", "99999999999999999999"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn written_durations_are_parsed() {
        for (text, millis) in [
            ("15s", 15_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("0s", 0),
            ("1h", 3_600_000),
            ("2d1h3m4s5ms", 176_584_005),
            ("90m", 5_400_000),
            ("365d", MAX_MILLIS),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_is_refused_with_a_valid_one() {
        for (text, what) in [
            ("15", "it has no unit"),
            ("-5s", "a duration cannot be negative"),
            ("", "it is not a duration"),
            ("s", "it is not a duration"),
            ("--wait", "it is not a duration"),
            ("1.5s", "it is not a duration"),
            ("15 s", "it is not a duration"),
            ("15sec", "it is not a duration"),
            ("30s1m", "it is not a duration"),
            ("1s1s", "it is not a duration"),
            ("1m30", "it is not a duration"),
            ("1µs", "it is not a duration"),
            ("366d", "it is more than a year"),
            ("99999999999999999999s", "it is more than a year"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error, format!("{what}: write it like 15s, 1m30s or 500ms"), "{text}");
        }
    }

    #[test]
    fn a_printed_duration_can_be_parsed() {
        for millis in [0, 1, 999, 1_000, 1_500, 60_000, 90_000, 3_661_001, 90_061_001, MAX_MILLIS] {
            let span = Duration::from_millis(millis);
            assert_eq!(parse(&exact(span)), Ok(span));
        }
    }

    #[test]
    fn remaining_time_is_rounded_up_and_past_time_is_rounded_down() {
        for (span, up, down) in [
            (Duration::from_nanos(1), "1ms", "0s"),
            (Duration::from_millis(999), "999ms", "999ms"),
            (Duration::from_millis(10_001), "11s", "10s"),
            (Duration::from_millis(59_001), "1m", "59s"),
            (Duration::from_millis(3_661_000), "1h2m", "1h1m"),
            (Duration::from_secs(90_061), "1d2h", "1d1h"),
        ] {
            assert_eq!((at_most(span).as_str(), at_least(span).as_str()), (up, down), "{span:?}");
        }
    }
}
