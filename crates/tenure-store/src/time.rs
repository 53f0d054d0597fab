use std::fmt;

/// The store's own wall clock, in microseconds since 1970.
///
/// It raises the floor of tokens, and messages show it. It is never compared with a clock of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreTime {
    micros: u64,
}

impl StoreTime {
    /// The given number of microseconds after the beginning of 1970.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros }
    }

    /// Microseconds since the beginning of 1970.
    pub const fn as_micros(self) -> u64 {
        self.micros
    }
}

impl fmt::Display for StoreTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} µs", self.micros)
    }
}
