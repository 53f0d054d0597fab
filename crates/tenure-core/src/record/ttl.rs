use std::fmt;
use std::time::Duration;

/// How long a held version lasts, in whole milliseconds; fixed for a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(u32);

impl Ttl {
    /// The shortest ttl, 50 ms: below it a scheduler's hiccup ends a healthy term.
    pub const MIN: Self = Self(50);

    /// The longest ttl, one day: a record that claims more would block its key for longer than anybody waits.
    pub const MAX: Self = Self(24 * 60 * 60 * 1000);

    /// A ttl of this many milliseconds; `None` outside of [`MIN`](Self::MIN) to [`MAX`](Self::MAX).
    pub const fn from_millis(millis: u64) -> Option<Self> {
        if millis >= Self::MIN.0 as u64 && millis <= Self::MAX.0 as u64 {
            Some(Self(millis as u32))
        } else {
            None
        }
    }

    /// Milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 as u64
    }

    /// The ttl as a duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_duration())
    }
}
