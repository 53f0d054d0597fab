//! Informational times, as in `2026-11-15T05:30:00.250Z`.

use crate::WallTime;

/// End of the calendar, `9999-12-30T22:00:00.000Z`: soon after it, the year 10000 begins in some time zones.
///
/// A clock that shows more is broken. That is no reason to lose a lease, so such a time is written as this one.
pub(super) const LATEST: WallTime = WallTime::from_millis(253_402_207_200_000);

/// The nearest time that the format allows.
pub(super) fn writable(time: WallTime) -> WallTime {
    WallTime::from_millis(time.as_millis().min(LATEST.as_millis()))
}

/// Parses a time in exactly the form that this version writes; any other form would not survive a rewrite.
pub(super) fn parse(text: &str) -> Option<WallTime> {
    // The parser accepts many forms, some of them long. This form has 24 characters.
    if text.len() != 24 {
        return None;
    }
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    let time = WallTime::from_millis(u64::try_from(timestamp.as_millisecond()).ok()?);
    (time.to_string() == text).then_some(time)
}
