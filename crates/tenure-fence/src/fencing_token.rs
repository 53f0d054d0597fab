use std::env::VarError;
use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use tenure_store::{Key, KeyError, Token, TokenError};

use crate::FenceError;

/// A token with the name of its lease: what a fenced write carries.
///
/// Tokens of different leases have no order, so a fence stores the name, too, and refuses the token of another lease.
///
/// It prints as `NAME=TOKEN`, in printable ASCII: this is the value of the HTTP header `Fencing-Token` and of the message
/// header of that name. Every other byte of the name, and `%`, is percent-encoded.
///
/// ```
/// use tenure_fence::FencingToken;
///
/// let offered: FencingToken = "billing/nightly=1762000000000001".parse()?;
/// assert_eq!(offered.name().as_str(), "billing/nightly");
/// assert_eq!(offered.to_string(), "billing/nightly=1762000000000001");
///
/// // Zero was never granted.
/// assert!("billing/nightly=0".parse::<FencingToken>().is_err());
/// # Ok::<(), tenure_fence::FencingTokenError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct FencingToken {
    name: Key,
    token: Token,
}

/// The reason why a text is not a fencing token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FencingTokenError {
    /// There is no `=`.
    #[error(
        "{0:?} is not a fencing token: write the name of the lease and its token, as in billing/nightly=7"
    )]
    NoName(String),
    /// A character must be percent-encoded.
    #[error(
        "{text:?} is not a fencing token: {found:?} in it is not percent-encoded, or it is more than one token"
    )]
    Unencoded {
        /// The beginning of the text.
        text: String,
        /// The first such character.
        found: char,
    },
    /// The name is no key.
    #[error(transparent)]
    Name(#[from] KeyError),
    /// The name is not UTF-8.
    #[error("the name in the fencing token {0:?} is not UTF-8")]
    NotText(String),
    /// The token is no number, or too great.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The environment has a slot that is no number.
    #[error("{0:?} is not the number of a slot: TENURE_SLOT is set by tenure run --slots")]
    Slot(String),
    /// A variable of the environment is not UTF-8.
    #[error("{0} is not text")]
    Variable(&'static str),
    /// The token is zero.
    #[error("token 0 of lease {0} was never granted: use the token of a lease that is held")]
    Zero(Key),
}

impl FencingToken {
    /// The token of this lease. Fails for zero, which was never granted.
    ///
    /// A holder gets it from its lease, which checks that it is still held.
    pub fn new(name: Key, token: Token) -> Result<Self, FencingTokenError> {
        if token == Token::ZERO {
            return Err(FencingTokenError::Zero(name));
        }
        Ok(Self { name, token })
    }

    /// The token that `tenure run` gives to its command: `TENURE_NAME` and `TENURE_TOKEN`, and for a slot `TENURE_SLOT`. `None` if
    /// the process does not run under it.
    pub fn from_env() -> Result<Option<Self>, FencingTokenError> {
        let (Some(name), Some(token)) = (variable("TENURE_NAME")?, variable("TENURE_TOKEN")?) else {
            return Ok(None);
        };
        let mut key = Key::parse(&name)?;
        if let Some(slot) = variable("TENURE_SLOT")? {
            let index = slot.parse().map_err(|_| FencingTokenError::Slot(slot))?;
            key = Key::group_slot(&key, index)?;
        }
        Self::new(key, token.parse()?).map(Some)
    }

    /// The name of the lease.
    pub fn name(&self) -> &Key {
        &self.name
    }

    /// The token.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The rule of every fence: whether `resource`, which has admitted `mark` as its greatest token, admits this one.
    ///
    /// An equal token is admitted, because the same holder writes again. The caller writes, and stores this token as the
    /// new mark, in the same atomic step.
    pub fn check(&self, resource: &str, mark: Option<&Self>) -> Result<(), FenceError> {
        let Some(mark) = mark else { return Ok(()) };
        if mark.name != self.name {
            let (resource, offered, mark) = (resource.to_owned(), self.clone(), mark.clone());
            return Err(FenceError::OtherLease { resource, offered, mark });
        }
        if self.token < mark.token {
            return Err(FenceError::stale(resource, self, mark.token));
        }
        Ok(())
    }
}

/// The value of a variable of the environment; `None` if it is not set or empty.
fn variable(name: &'static str) -> Result<Option<String>, FencingTokenError> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(FencingTokenError::Variable(name)),
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", utf8_percent_encode(self.name.as_str(), ENCODED), self.token)
    }
}

impl FromStr for FencingToken {
    type Err = FencingTokenError;

    fn from_str(text: &str) -> Result<Self, FencingTokenError> {
        // Strict: a list of two tokens is not one token with a long name.
        if let Some(found) = text.chars().find(|it| !it.is_ascii_graphic() || ",;\"".contains(*it)) {
            return Err(FencingTokenError::Unencoded { text: text.chars().take(80).collect(), found });
        }
        let (name, token) = text
            .rsplit_once('=')
            .ok_or_else(|| FencingTokenError::NoName(text.chars().take(80).collect()))?;
        let decoded = percent_decode_str(name).decode_utf8();
        let name = decoded.map_err(|_| FencingTokenError::NotText(name.chars().take(80).collect()))?;
        // A slot is a lease, too, under a name that users cannot choose.
        Self::new(Key::from_stored(&name)?, token.parse()?)
    }
}

impl TryFrom<String> for FencingToken {
    type Error = FencingTokenError;

    fn try_from(text: String) -> Result<Self, FencingTokenError> {
        text.parse()
    }
}

impl From<FencingToken> for String {
    fn from(token: FencingToken) -> Self {
        token.to_string()
    }
}

/// Characters of a name that a header cannot have, or that a list of headers would split at.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b',').add(b';').add(b'"');

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(text: &str) -> FencingToken {
        text.parse().unwrap()
    }

    #[test]
    fn a_smaller_token_is_refused_and_an_equal_one_is_the_same_holder() {
        let mark = token("billing=7");
        assert!(token("billing=7").check("r", None).is_ok());
        assert!(token("billing=7").check("r", Some(&mark)).is_ok());
        assert!(token("billing=8").check("r", Some(&mark)).is_ok());
        let error = token("billing=6").check("r", Some(&mark)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "r refused token 6 of lease billing: token 7 has been there. A newer holder writes: stop for good"
        );
    }

    #[test]
    fn the_token_of_another_lease_is_refused_whatever_its_number() {
        let mark = token("billing=7");
        let error = token("payroll=900").check("r", Some(&mark)).unwrap_err();
        assert!(matches!(error, FenceError::OtherLease { .. }), "{error}");
    }

    #[test]
    fn what_is_no_fencing_token_is_refused_with_its_reason() {
        for text in [
            "",
            "billing",
            "=7",
            "billing=",
            "billing=-1",
            "billing=7.0",
            "billing=0",
            "../x=7",
            "a=1, b=2",
            "a=1;b=2",
            "grün=7",
            " a=7",
            "a//b=7",
            "%ff=7",
        ] {
            let error = text.parse::<FencingToken>().unwrap_err();
            assert!(!error.to_string().is_empty(), "{text}");
        }
    }

    #[test]
    fn a_name_with_an_equals_sign_and_one_outside_ascii_come_back() {
        assert_eq!(token("a=b=7").name().as_str(), "a=b");
        let umlaut = FencingToken::new(Key::parse("grün, %2F").unwrap(), Token::new(7).unwrap()).unwrap();
        assert_eq!(umlaut.to_string(), "gr%C3%BCn%2C%20%252F=7");
        assert_eq!(token(&umlaut.to_string()), umlaut);
        assert_eq!(
            serde_json::from_str::<FencingToken>(&serde_json::to_string(&umlaut).unwrap()).unwrap(),
            umlaut
        );
    }

    proptest! {
        #[test]
        fn every_fencing_token_is_printable_ascii_and_comes_back(name in "[^\\p{Cc}]{1,40}", number in 1..=Token::MAX.get()) {
            if let Ok(name) = Key::parse(&name) {
                let token = FencingToken::new(name, Token::new(number).unwrap()).unwrap();
                let text = token.to_string();
                prop_assert!(text.bytes().all(|byte| (0x21..0x7f).contains(&byte)), "{text}");
                prop_assert_eq!(text.parse::<FencingToken>().unwrap(), token);
            }
        }
    }
}
