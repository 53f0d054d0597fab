use std::fmt;
use std::str::FromStr;

use tenure_core::Token;

use crate::{Error, ErrorKind};

/// Revision of an entry of a plain key: a whole number that grows with every change of the key.
///
/// A renewal keeps it. It grows across release and run-out and, where the store has a clock, across the deletion of the
/// record, to the resolution of that clock.
///
/// ```
/// use tenure::Revision;
///
/// let revision: Revision = "1762000000000001".parse()?;
/// assert!(revision > Revision::ABSENT);
/// assert!("9007199254740992".parse::<Revision>().is_err(), "at most 2^53 - 1");
/// # Ok::<(), tenure::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(Token);

impl Revision {
    /// Revision zero, which no entry has: it stands for a key without an entry.
    pub const ABSENT: Self = Self(Token::ZERO);

    /// The revision with this number; `None` beyond 2^53 - 1.
    pub const fn new(number: u64) -> Option<Self> {
        match Token::new(number) {
            Some(token) => Some(Self(token)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    pub(super) const fn of(token: Token) -> Self {
        Self(token)
    }

    pub(super) const fn token(self) -> Token {
        self.0
    }
}

impl FromStr for Revision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse().ok().and_then(Self::new).ok_or_else(|| {
            let max = Token::MAX;
            let sentence = format!("{text:?} is not a revision: a revision is a whole number up to {max}");
            Error::new(ErrorKind::Invalid, sentence)
        })
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
