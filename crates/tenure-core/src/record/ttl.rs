use std::fmt;
use std::time::Duration;

use crate::{Error, ErrorKind};

/// Time that a held version lasts without a renewal, in whole milliseconds; fixed for a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(u32);

impl Ttl {
    /// Minimum ttl, 50 ms: with less, a short scheduling delay ends a healthy term.
    pub const MIN: Self = Self(50);

    /// Maximum ttl, one day: a longer one would block its key for longer than any contender waits.
    pub const MAX: Self = Self(24 * 60 * 60 * 1000);

    /// A ttl of this many milliseconds; `None` outside [`MIN`](Self::MIN) to [`MAX`](Self::MAX).
    pub const fn from_millis(millis: u64) -> Option<Self> {
        if millis >= Self::MIN.0 as u64 && millis <= Self::MAX.0 as u64 {
            Some(Self(millis as u32))
        } else {
            None
        }
    }

    /// The ttl in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 as u64
    }

    /// The ttl as a duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

impl TryFrom<Duration> for Ttl {
    type Error = Error;

    fn try_from(ttl: Duration) -> Result<Self, Error> {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let whole = Duration::from_millis(millis) == ttl;
        Self::from_millis(millis).filter(|_| whole).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!(
                    "a ttl is a whole number of milliseconds from {} to {}, not {ttl:?}: use 15s, for example",
                    Self::MIN,
                    Self::MAX
                ),
            )
        })
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_duration())
    }
}
