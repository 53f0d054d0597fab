//! The names of objects.
//!
//! The object of the key `billing/nightly` is called `billing/nightly.record`, below the prefix of the store. Everything
//! in a key is itself, so that people find it. The ending is there for two reasons: what does not have it is not ours;
//! and servers that keep objects in a file system cannot have `a` and `a/b`, of which one is a file and the other is in a
//! folder of the same name. So no folder may ever be called like a file: a segment that ends in `.record`, however many
//! `_` follow, gets one `_` more where it is a folder.

use tenure_store::{Key, Prefix};

/// Where all objects of a store are: at the top of the bucket, or below a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Empty, or ends with a slash.
    base: String,
}

impl Names {
    pub(crate) fn below(prefix: &str) -> Self {
        let base = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Self { base }
    }

    /// The name of the object that holds this key; `None` if no listing could ever show it.
    pub(crate) fn of(&self, key: &Key) -> Option<String> {
        if !can_be_listed(key.as_str()) {
            return None;
        }
        Some(format!("{}{ENDING}", self.folders(key.as_str())))
    }

    /// The key of an object; `None` if it is not one of ours.
    pub(crate) fn key(&self, name: &str) -> Option<Key> {
        let name = name.strip_prefix(&self.base)?.strip_suffix(ENDING)?;
        let (folders, last) = match name.rsplit_once('/') {
            Some((folders, last)) => (Some(folders), last),
            None => (None, name),
        };
        let mut key = String::with_capacity(name.len());
        for folder in folders.into_iter().flat_map(|folders| folders.split('/')) {
            let looks_like_a_file = folder.trim_end_matches(MORE).ends_with(ENDING);
            key.push_str(if looks_like_a_file { folder.strip_suffix(MORE)? } else { folder });
            key.push('/');
        }
        key.push_str(last);
        Key::from_stored(&key).ok()
    }

    /// What the names of all objects begin with whose keys are covered by the prefix. Others may too.
    pub(crate) fn begin(&self, prefix: &Prefix) -> String {
        self.folders(prefix.as_str())
    }

    /// The name without its ending.
    fn folders(&self, key: &str) -> String {
        let mut name = self.base.clone();
        let mut segments = key.split('/').peekable();
        while let Some(segment) = segments.next() {
            name.push_str(segment);
            if segments.peek().is_some() {
                if segment.trim_end_matches(MORE).ends_with(ENDING) {
                    name.push(MORE);
                }
                name.push('/');
            }
        }
        name
    }
}

/// Listings are XML, which has no way to write these two.
pub(crate) fn can_be_listed(name: &str) -> bool {
    !name.contains(['\u{fffe}', '\u{ffff}'])
}

const ENDING: &str = ".record";

const MORE: char = '_';

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> Key {
        Key::from_stored(name).unwrap()
    }

    #[test]
    fn a_name_is_the_key_with_an_ending_below_the_prefix() {
        let names = Names::below("prod/locks");
        assert_eq!(names.of(&key("billing/nightly")).unwrap(), "prod/locks/billing/nightly.record");
        assert_eq!(names.of(&Key::scratch()).unwrap(), "prod/locks/.tenure/scratch.record");
        assert_eq!(Names::below("").of(&key("with space/#?%+~")).unwrap(), "with space/#?%+~.record");
    }

    #[test]
    fn no_folder_is_called_like_a_file() {
        let names = Names::below("");
        assert_eq!(names.of(&key("a")).unwrap(), "a.record");
        assert_eq!(names.of(&key("a.record/b")).unwrap(), "a.record_/b.record");
        assert_eq!(names.of(&key("a.record_/b")).unwrap(), "a.record__/b.record");
        assert_eq!(names.of(&key("a.record_")).unwrap(), "a.record_.record");
    }

    #[test]
    fn what_is_not_ours_has_no_key() {
        let names = Names::below("locks");
        for foreign in [
            "locks",
            "locks/",
            "locks/readme.txt",
            "locks/.record",
            "locks/a//b.record",
            "locks/../b.record",
            "locksmith/a.record",
            "other/a.record",
            "locks/a.record/b.record",
        ] {
            assert_eq!(names.key(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_prefix_lists_its_own_key_and_what_lies_below() {
        let names = Names::below("locks");
        assert_eq!(names.begin(&Prefix::all()), "locks/");
        assert_eq!(names.begin(&Prefix::parse("jobs/").unwrap()), "locks/jobs");
        assert_eq!(names.begin(&Prefix::parse("a.record/b").unwrap()), "locks/a.record_/b");
    }

    fn keys() -> impl Strategy<Value = Key> {
        let segment = "(\\PC{0,6}|a|b)(\\.record)?_{0,2}";
        prop::collection::vec(segment, 1..5)
            .prop_filter_map("not a key", |segments| Key::parse(&segments.join("/")).ok())
    }

    proptest! {
        #[test]
        fn every_key_comes_back_and_no_two_share_a_name_or_a_folder(a in keys(), b in keys()) {
            let names = Names::below("locks");
            let (Some(of_a), Some(of_b)) = (names.of(&a), names.of(&b)) else { return Ok(()) };
            prop_assert_eq!(names.key(&of_a), Some(a.clone()));
            prop_assert_eq!(of_a == of_b, a == b);
            let (inside_a, inside_b) = (format!("{of_a}/"), format!("{of_b}/"));
            prop_assert!(!of_a.starts_with(&inside_b) && !of_b.starts_with(&inside_a));
            let covers = Prefix::of(&a).covers(&b);
            prop_assert!(!covers || of_b.starts_with(&names.begin(&Prefix::of(&a))));
        }
    }
}
