use std::fmt;
use std::str::FromStr;

/// A whole number that is strictly greater for every new grant of a key.
///
/// Send it with every write. A resource that remembers the greatest token it has seen, and refuses smaller ones
/// atomically with the write, is safe from a holder that was paused and acts late.
///
/// ```
/// # extern crate tenure_store as tenure;
/// use tenure::Token;
///
/// let token: Token = "1762000000000001".parse()?;
/// assert_eq!(token.to_string(), "1762000000000001");
/// assert!("-1".parse::<Token>().is_err());
/// # Ok::<(), tenure::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u64", into = "u64"))]
pub struct Token(u64);

/// Error of a text or a number that is not a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a token: a token is a whole number up to {max}", max = Token::MAX)]
pub struct TokenError(String);

impl Token {
    /// The token of a key that was never granted.
    pub const ZERO: Self = Self(0);

    /// The greatest token: the largest integer that JSON and Lua numbers represent exactly. As microseconds since 1970
    /// it is in the year 2255.
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

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        text.parse().ok().and_then(Self::new).ok_or_else(|| TokenError(format!("{text:?}")))
    }
}

impl TryFrom<u64> for Token {
    type Error = TokenError;

    fn try_from(number: u64) -> Result<Self, TokenError> {
        Self::new(number).ok_or_else(|| TokenError(number.to_string()))
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        token.0
    }
}

/// A signed number, for SQL: `bigint` has no unsigned form.
impl TryFrom<i64> for Token {
    type Error = TokenError;

    fn try_from(number: i64) -> Result<Self, TokenError> {
        u64::try_from(number).ok().and_then(Self::new).ok_or_else(|| TokenError(number.to_string()))
    }
}

/// The parameter of an SQL statement. No token is too great for it.
impl From<Token> for i64 {
    fn from(token: Token) -> Self {
        token.0 as Self
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_printed_and_nothing_else_is_one() {
        for number in [0, 1, Token::MAX.get()] {
            let token = Token::new(number).unwrap();
            assert_eq!(token.to_string().parse(), Ok(token));
            assert_eq!(serde_json::to_string(&token).unwrap(), number.to_string());
            assert_eq!(serde_json::from_str::<Token>(&number.to_string()).unwrap(), token);
        }
        let above = (Token::MAX.get() + 1).to_string();
        for text in ["", " 1", "-1", "1.0", "1e3", "0x1", &above] {
            assert!(text.parse::<Token>().is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<Token>(&above).is_err());
        assert_eq!(Token::try_from(i64::from(Token::MAX)), Ok(Token::MAX));
        assert!(Token::try_from(-1i64).is_err());
        assert_eq!(
            "seven".parse::<Token>().unwrap_err().to_string(),
            "\"seven\" is not a token: a token is a whole number up to 9007199254740991"
        );
    }
}
