use std::fmt;

/// Wall time in milliseconds since 1970. It is informational, and never compared with another clock. A contender
/// schedules reads by the difference of two times of one holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// The time this many milliseconds after the beginning of 1970.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the beginning of 1970.
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

impl fmt::Display for WallTime {
    /// As in `2026-11-15T05:30:00.250Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(millis) {
            Ok(timestamp) => write!(f, "{timestamp:.3}"),
            Err(_) => f.write_str("(beyond the calendar)"),
        }
    }
}
