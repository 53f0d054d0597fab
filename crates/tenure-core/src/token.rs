use std::fmt;

/// A whole number that is strictly greater for every new grant of a key, for ever.
///
/// Send it with every write. A resource that remembers the greatest token it has seen, and refuses smaller ones
/// atomically with the write, is safe from a holder that was paused and acts late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl Token {
    /// The token of a key that was never granted.
    pub const ZERO: Self = Self(0);

    /// The greatest token: what JSON and Lua numbers hold exactly. As microseconds since 1970 it is the year 2255.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The token with this number; `None` beyond [`MAX`](Self::MAX).
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next greater token; `None` at the top of the range.
    pub const fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
