//! Names of Redis keys.
//!
//! The record of the key `billing/nightly` is the hash `tenure:{billing/nightly}`, where `tenure:` is the prefix of the
//! store. The braces are a hash tag: in a cluster, other Redis keys with the same tag are in the same slot as the record.
//! The record is one Redis key, so a brace inside the key can change its slot, but never split it.
//!
//! The mark of the fence of the resource `ledger` is the hash `tenure:fence:{ledger}`, and that of `{7}:ledger` is
//! `tenure:fence:{7}:ledger`: the mark has the hash tag of the resource.

use tenure_store::{Key, OpenError, Prefix};

/// Names of all Redis keys of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn with(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// The name of the record of this key.
    pub(crate) fn of(&self, key: &Key) -> String {
        format!("{}{{{key}}}", self.prefix)
    }

    /// The key of a record; `None` if the name is not that of a record.
    pub(crate) fn key(&self, name: &[u8]) -> Option<Key> {
        let inside = std::str::from_utf8(name).ok()?.strip_prefix(&self.prefix)?;
        Key::from_stored(inside.strip_prefix('{')?.strip_suffix('}')?).ok()
    }

    /// A pattern that matches the name of every record that the prefix covers. It may match others too.
    pub(crate) fn pattern(&self, prefix: &Prefix) -> String {
        let mut pattern = String::new();
        for character in self.prefix.chars().chain(['{']).chain(prefix.as_str().chars()) {
            if SPECIAL.contains(&character) {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern + "*"
    }

    /// The channel for hints about the keys that this prefix covers. An ACL can allow it by name, unlike a pattern.
    pub(crate) fn channel(&self, prefix: &Prefix) -> String {
        format!("{}{{{prefix}}}", self.prefix)
    }

    /// The channels of the prefixes that cover this key: the key itself, the keys above it, and all keys.
    pub(crate) fn channels(&self, key: &Key) -> Vec<String> {
        let key = key.as_str();
        let above = key.rmatch_indices('/').map(|(at, _)| &key[..at]).take(ABOVE_MAX);
        [key].into_iter().chain(above).chain([""]).map(|name| format!("{}{{{name}}}", self.prefix)).collect()
    }

    /// The name of the mark of a resource.
    pub(crate) fn mark(&self, resource: &str) -> Result<String, OpenError> {
        let is_plain = !resource.contains(['{', '}']);
        let has_tag = resource
            .split_once('{')
            .is_some_and(|(before, rest)| !before.contains('}') && rest.find('}').is_some_and(|at| at > 0));
        let is_name = (1..=RESOURCE_MAX).contains(&resource.len()) && !resource.contains(char::is_control);
        if !is_name || !(is_plain || has_tag) {
            return Err(OpenError::invalid(format!(
                "{resource:?} is not the name of a resource: it has 1 to {RESOURCE_MAX} bytes, no control characters, and either \
                 no braces or a hash tag, as in ledger or {{7}}:ledger"
            )));
        }
        let prefix = &self.prefix;
        Ok(if is_plain {
            format!("{prefix}{FENCE}{{{resource}}}")
        } else {
            format!("{prefix}{FENCE}{resource}")
        })
    }

    /// True if this is the name of a record, of the restart record, or of a mark.
    pub(crate) fn is_own(&self, name: &[u8]) -> bool {
        let behind = name.strip_prefix(self.prefix.as_bytes());
        let is_mark = behind.is_some_and(|behind| behind.starts_with(FENCE.as_bytes()));
        behind.is_some() && (is_mark || name == self.restart().as_bytes() || self.key(name).is_some())
    }

    /// The name of the restart record. It has no brace behind the prefix, so it is not the name of a record.
    pub(crate) fn restart(&self) -> String {
        format!("{}restart", self.prefix)
    }
}

/// The marks of fences are behind this, behind the prefix.
const FENCE: &str = "fence:";

/// Longest name of a resource, in bytes.
const RESOURCE_MAX: usize = 512;

/// Limit of the hints for one write. Hints may be missing.
const ABOVE_MAX: usize = 8;

/// Characters with a meaning in a pattern.
const SPECIAL: [char; 6] = ['*', '?', '[', ']', '^', '\\'];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> Key {
        Key::from_stored(name).unwrap()
    }

    #[test]
    fn a_record_is_named_after_its_key_in_braces() {
        let names = Names::with("tenure:");
        assert_eq!(names.of(&key("billing/nightly")), "tenure:{billing/nightly}");
        assert_eq!(names.of(&key("{a}b}")), "tenure:{{a}b}}");
        assert_eq!(names.key(b"tenure:{{a}b}}"), Some(key("{a}b}")));
        assert_eq!(names.restart(), "tenure:restart");
        assert_eq!(names.key(names.restart().as_bytes()), None);
    }

    #[test]
    fn a_write_is_published_on_the_channel_of_each_prefix_that_covers_its_key() {
        let names = Names::with("t:");
        let key = key("a/b/c");
        assert_eq!(names.channels(&key), ["t:{a/b/c}", "t:{a/b}", "t:{a}", "t:{}"]);
        for prefix in
            [Prefix::of(&key), Prefix::parse("a/b").unwrap(), Prefix::parse("a").unwrap(), Prefix::all()]
        {
            assert!(prefix.covers(&key) && names.channels(&key).contains(&names.channel(&prefix)));
        }
    }

    #[test]
    fn the_mark_of_a_resource_has_its_hash_tag() {
        let names = Names::with("tenure:");
        assert_eq!(names.mark("ledger").unwrap(), "tenure:fence:{ledger}");
        assert_eq!(names.mark("{7}:ledger").unwrap(), "tenure:fence:{7}:ledger");
        assert_eq!(names.mark("a{7}").unwrap(), "tenure:fence:a{7}");
        for (resource, key) in [("ledger", "ledger"), ("ledger", "x{ledger}"), ("{7}:ledger", "{7}")] {
            let mark = names.mark(resource).unwrap();
            assert_eq!(crate::cluster::hash_slot(mark.as_bytes()), crate::cluster::hash_slot(key.as_bytes()));
            assert!(names.is_own(mark.as_bytes()) && !names.is_own(key.as_bytes()));
            assert_eq!(names.key(mark.as_bytes()), None, "it is no record");
        }
        assert!(names.is_own(b"tenure:{ledger}") && names.is_own(b"tenure:restart"));
        for resource in ["", "a}b", "{}a", "a{b", "}{a}", "a\nb", &"x".repeat(513)] {
            assert!(names.mark(resource).is_err(), "{resource}");
        }
    }

    #[test]
    fn a_foreign_name_has_no_key() {
        let names = Names::with("tenure:");
        for foreign in [
            &b"tenure:"[..],
            b"tenure:{}",
            b"tenure:{a",
            b"tenure:a}",
            b"other:{a}",
            b"tenure:{a//b}",
            b"tenure:{\xff}",
        ] {
            assert_eq!(names.key(foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn special_characters_of_a_pattern_match_themselves() {
        let pattern = Names::with("a*b:").pattern(&Prefix::parse("x?[y]^\\").unwrap());
        assert_eq!(pattern, "a\\*b:{x\\?\\[y\\]\\^\\\\*");
    }

    proptest! {
        #[test]
        fn every_key_comes_back(name in "[a-z{}*?\\[\\]\\\\]{1,12}(/[a-z{}]{1,4})?") {
            let (names, key) = (Names::with("t:"), key(&name));
            prop_assert_eq!(names.key(names.of(&key).as_bytes()), Some(key));
        }
    }
}
