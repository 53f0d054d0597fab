use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Reason, StoreError};

/// A name in a store, such as `billing/nightly`.
///
/// `/` separates segments and has no other meaning: `a` and `a/b` may both be keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// The reason why a name is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The name is empty.
    #[error("a key must not be empty: give it a name such as billing/nightly")]
    Empty,
    /// The name is longer than [`Key::MAX_BYTES`].
    #[error("a key has at most {max} bytes, and this one has {bytes}: shorten {start:?}…", max = Key::MAX_BYTES)]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// Its first characters.
        start: String,
    },
    /// The name begins or ends with `/`, or has `//` in it.
    #[error(
        "a key must not begin or end with '/' nor contain '//': write it like billing/nightly, not {0:?}"
    )]
    EmptySegment(String),
    /// A segment is `.` or `..`.
    #[error("a key must not have '.' or '..' between its slashes: write it like billing/nightly, not {0:?}")]
    DotSegment(String),
    /// The name contains a control character.
    #[error("a key must not contain control characters: take them out of {0:?}")]
    Control(String),
    /// The first segment is `.tenure`.
    #[error("keys under .tenure/ are Tenure's own: choose another name than {0:?}")]
    Reserved(String),
}

impl Key {
    /// Maximum length of a key, in bytes: every store accepts it, also file systems with their limit of 255.
    pub const MAX_BYTES: usize = 200;

    /// Parses a name.
    pub fn parse(name: &str) -> Result<Self, KeyError> {
        check(name)?;
        if name.split('/').next() == Some(RESERVED) {
            return Err(KeyError::Reserved(name.to_owned()));
        }
        Ok(Self(name.into()))
    }

    /// The fixed key of the safety check. No user's key can be equal to it, and listings hide it.
    pub fn scratch() -> Self {
        Self(format!("{RESERVED}/scratch").into())
    }

    /// Turns a stored name back into a key, [`scratch`](Self::scratch) included. For stores that list their names.
    pub fn from_stored(name: &str) -> Result<Self, KeyError> {
        check(name)?;
        Ok(Self(name.into()))
    }

    /// True for one of Tenure's own keys, which listings hide.
    pub fn is_reserved(&self) -> bool {
        self.0.split('/').next() == Some(RESERVED)
    }

    /// True if [`Scratch::sweep`](crate::Scratch::sweep) may remove it: one of Tenure's own keys, but not
    /// [`scratch`](Self::scratch), which every safety check uses.
    pub fn may_be_swept(&self) -> bool {
        self.is_reserved() && *self != Self::scratch()
    }

    /// Refuses a sweep of a key that [may not be swept](Self::may_be_swept). Stores call it before they send anything.
    pub fn must_be_sweepable(&self) -> Result<(), StoreError> {
        if self.may_be_swept() {
            return Ok(());
        }
        let why = format!("{self} may contain data of a lease, and is not removed");
        Err(StoreError::refused(Reason::Invalid, why))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks the rules that keys and prefixes share.
pub(crate) fn check(name: &str) -> Result<(), KeyError> {
    if name.is_empty() {
        return Err(KeyError::Empty);
    }
    if name.len() > Key::MAX_BYTES {
        let start = name.chars().take(24).collect();
        return Err(KeyError::TooLong { bytes: name.len(), start });
    }
    if name.chars().any(char::is_control) {
        return Err(KeyError::Control(name.to_owned()));
    }
    for segment in name.split('/') {
        match segment {
            "" => return Err(KeyError::EmptySegment(name.to_owned())),
            "." | ".." => return Err(KeyError::DotSegment(name.to_owned())),
            _ => {}
        }
    }
    Ok(())
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(name: &str) -> Result<Self, KeyError> {
        Self::parse(name)
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", &*self.0)
    }
}

/// The first segment of Tenure's own keys.
const RESERVED: &str = ".tenure";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_keys_and_a_key_may_lie_below_another() {
        for name in
            ["a", "a/b", "billing/nightly", "Ünïcødé/键", "with space", ".hidden", "...", &"x".repeat(200)]
        {
            assert_eq!(Key::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn hostile_names_are_refused_each_with_its_reason() {
        assert_eq!(Key::parse(""), Err(KeyError::Empty));
        for name in ["/a", "a/", "/", "a//b"] {
            assert_eq!(Key::parse(name), Err(KeyError::EmptySegment(name.to_owned())));
        }
        for name in [".", "..", "../etc/passwd", "a/../b", "a/."] {
            assert_eq!(Key::parse(name), Err(KeyError::DotSegment(name.to_owned())));
        }
        for name in ["a\0b", "line\nbreak", "\u{7f}", "\u{85}"] {
            assert_eq!(Key::parse(name), Err(KeyError::Control(name.to_owned())));
        }
        assert_eq!(Key::parse(".tenure/scratch"), Err(KeyError::Reserved(".tenure/scratch".to_owned())));
    }

    #[test]
    fn a_ten_kilobyte_name_is_refused_without_being_repeated_in_full() {
        let error = Key::parse(&"k".repeat(10_240)).unwrap_err();
        assert!(matches!(error, KeyError::TooLong { bytes: 10_240, .. }));
        assert!(error.to_string().len() < 120);
    }

    #[test]
    fn the_limit_counts_bytes_and_never_cuts_a_character() {
        assert!(Key::parse(&"é".repeat(100)).is_ok());
        assert!(Key::parse(&"é".repeat(101)).is_err());
    }

    #[test]
    fn a_stored_name_comes_back_even_when_it_is_ours() {
        assert_eq!(Key::from_stored(".tenure/scratch").unwrap(), Key::scratch());
        assert!(Key::scratch().is_reserved());
        assert!(!Key::parse(".tenured").unwrap().is_reserved());
    }

    #[test]
    fn nothing_that_a_lease_rests_on_may_be_swept() {
        assert!(Key::from_stored(".tenure/probe/1/a").unwrap().may_be_swept());
        for kept in [Key::scratch(), Key::parse("backup").unwrap(), Key::parse(".tenured/probe").unwrap()] {
            let refused = kept.must_be_sweepable().unwrap_err();
            assert!(
                matches!(refused, StoreError::Refused(refused) if refused.reason == Reason::Invalid),
                "{kept}"
            );
        }
    }
}
