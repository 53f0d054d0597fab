use std::fmt;
use std::str::FromStr;

use crate::key::{self, Key, KeyError};

/// The keys to list: all keys, or one key and all keys below it.
///
/// It matches complete segments: `jobs` covers `jobs` and `jobs/a`, but not `jobs-old`. A trailing `/` is allowed and
/// changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prefix(Option<String>);

impl Prefix {
    /// Every key.
    pub const fn all() -> Self {
        Self(None)
    }

    /// Parses a prefix; the empty one is [`all`](Self::all).
    pub fn parse(name: &str) -> Result<Self, KeyError> {
        let trimmed = name.strip_suffix('/').unwrap_or(name);
        if name.is_empty() {
            return Ok(Self::all());
        }
        key::check(trimmed)?;
        Ok(Self(Some(trimmed.to_owned())))
    }

    /// Exactly this key and the keys below it.
    pub fn of(key: &Key) -> Self {
        Self(Some(key.as_str().to_owned()))
    }

    /// The keys of all groups of slots.
    pub fn slots() -> Self {
        Self(Some(key::SLOTS.to_owned()))
    }

    /// The keys of one group of slots.
    pub fn of_group(group: &Key) -> Result<Self, KeyError> {
        Ok(Self(Some(key::group_segments(group)?)))
    }

    /// True if the prefix covers `key`.
    pub fn covers(&self, key: &Key) -> bool {
        let Some(prefix) = &self.0 else { return true };
        match key.as_str().strip_prefix(prefix.as_str()) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// The text that every covered key begins with. Stores may list by it and then filter with
    /// [`covers`](Self::covers).
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl FromStr for Prefix {
    type Err = KeyError;

    fn from_str(name: &str) -> Result<Self, KeyError> {
        Self::parse(name)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(prefix: &str, key: &str) -> bool {
        Prefix::parse(prefix).unwrap().covers(&Key::parse(key).unwrap())
    }

    #[test]
    fn a_prefix_goes_by_whole_segments() {
        assert!(covers("jobs", "jobs"));
        assert!(covers("jobs", "jobs/a"));
        assert!(covers("jobs/", "jobs/a/b"));
        assert!(!covers("jobs", "jobs-old"));
        assert!(!covers("jobs/a", "jobs"));
    }

    #[test]
    fn the_prefix_of_a_group_covers_its_keys_and_not_those_of_a_group_below() {
        let (group, below) = (Key::parse("a").unwrap(), Key::parse("a/b").unwrap());
        let prefix = Prefix::of_group(&group).unwrap();
        for (of, covered) in [(&group, true), (&below, false)] {
            for key in [Key::group_size(of).unwrap(), Key::group_slot(of, 3).unwrap()] {
                assert_eq!(prefix.covers(&key), covered);
                assert!(Prefix::slots().covers(&key));
            }
        }
        assert!(!prefix.covers(&group) && !Prefix::slots().covers(&Key::scratch()));
    }

    #[test]
    fn the_empty_prefix_covers_everything_and_hostile_ones_are_refused() {
        assert!(covers("", "anything/at/all"));
        for hostile in ["/", "//", "../", "a//", "a\0"] {
            assert!(Prefix::parse(hostile).is_err(), "{hostile:?}");
        }
    }
}
