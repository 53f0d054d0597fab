use std::fmt;

/// A random number that is fresh for every write: the only proof that a write of unknown outcome was the writer's own.
///
/// The nonce of a grant is the id of its term.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Nonce(u128);

impl Nonce {
    /// No nonce: the term of a key that was never granted.
    pub const ZERO: Self = Self(0);

    /// A nonce of these bits, which come from the kernel's randomness.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Parses the output of `Display`, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let nonce = u128::from_str_radix(text, 16).ok().map(Self)?;
        (nonce.to_string() == text).then_some(nonce)
    }

    /// The bits.
    pub const fn to_bits(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nonce({self})")
    }
}
