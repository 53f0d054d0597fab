//! Names of objects.
//!
//! The object of the key `billing/nightly` is called `billing/nightly.record`, below the prefix of the store. Nearly
//! every character of a key stands for itself, so that an operator finds the object.
//!
//! * The suffix has two reasons. An object without it is not a Tenure record. And servers that keep objects in a file
//!   system cannot have both `a` and `a/b`: one is a file, the other is in a directory of the same name. So no
//!   directory may have the name of a file: a segment that ends in `.record`, followed by any number of `_`, gets one
//!   more `_` where it is a directory.
//! * `\` is written as `%5C`, because SeaweedFS treats it as `/`, and two keys would share one object. U+FFFE and
//!   U+FFFF are escaped too: listings are XML, which cannot represent them. `%` is escaped so that no two keys have the
//!   same name.
//! * Azure ignores dots at the end of a directory, so there the last one is written as `%2E`.
//!
//! A store with exact names has none of this: the key is the name. Its objects are those that users name themselves.

use percent_encoding::percent_decode_str;
use tenure_store::{Key, Prefix};

/// Location of all objects of a store: the top of the bucket, or below a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Empty, or ends with a slash.
    base: String,
    /// True if a dot at the end of a directory is written as `%2E`.
    escapes_final_dots: bool,
    /// True if a key is the name of its object.
    exact: bool,
}

impl Names {
    pub(crate) fn below(prefix: &str) -> Self {
        let base = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Self { base, escapes_final_dots: false, exact: false }
    }

    /// Names without suffix and escapes: the key is the name, below the prefix.
    pub(crate) fn exact(self, exact: bool) -> Self {
        Self { exact, ..self }
    }

    /// Names for a server that ignores dots at the end of a directory: `a./b` and `a/b` would share one object.
    pub(crate) fn escaping_final_dots(self) -> Self {
        Self { escapes_final_dots: true, ..self }
    }

    /// The name of the object that holds this key.
    pub(crate) fn of(&self, key: &Key) -> String {
        if self.exact {
            return format!("{}{key}", self.base);
        }
        format!("{}{ENDING}", self.stem(key.as_str()))
    }

    /// The key of an object; `None` if the object is not a Tenure record.
    pub(crate) fn key(&self, name: &str) -> Option<Key> {
        if self.exact {
            return Key::from_stored(name.strip_prefix(&self.base)?).ok();
        }
        let inside = name.strip_prefix(&self.base)?.strip_suffix(ENDING)?;
        let (directories, last) = match inside.rsplit_once('/') {
            Some((directories, last)) => (Some(directories), last),
            None => (None, inside),
        };
        let mut key = String::with_capacity(inside.len());
        for directory in directories.into_iter().flat_map(|directories| directories.split('/')) {
            key.push_str(if looks_like_a_file(directory) {
                directory.strip_suffix(DIRECTORY_MARK)?
            } else {
                directory
            });
            key.push('/');
        }
        key.push_str(last);
        let key = Key::from_stored(&percent_decode_str(&key).decode_utf8().ok()?).ok()?;
        // Another program may write the same key differently.
        (self.of(&key) == name).then_some(key)
    }

    /// Common prefix of the names of all objects whose keys the prefix covers. Other objects may have it too.
    pub(crate) fn prefix_of(&self, prefix: &Prefix) -> String {
        if self.exact {
            return format!("{}{prefix}", self.base);
        }
        let mut name = self.stem(prefix.as_str());
        // The key itself ends here with the dot, and the names below it with its escape.
        if self.escapes_final_dots && name.ends_with('.') {
            name.pop();
        }
        name
    }

    /// The name without its suffix.
    fn stem(&self, key: &str) -> String {
        let mut name = self.base.clone();
        let mut segments = key.split('/').peekable();
        while let Some(segment) = segments.next() {
            for character in segment.chars() {
                match ESCAPED.iter().find(|(escaped, _)| *escaped == character) {
                    Some((_, escape)) => name.push_str(escape),
                    None => name.push(character),
                }
            }
            if segments.peek().is_some() {
                // One dot is enough: the name no longer ends with one.
                if self.escapes_final_dots && name.ends_with('.') {
                    name.pop();
                    name.push_str("%2E");
                }
                if looks_like_a_file(segment) {
                    name.push(DIRECTORY_MARK);
                }
                name.push('/');
            }
        }
        name
    }
}

/// True if a prefix of a store can be part of names without escapes.
pub(crate) fn is_plain(prefix: &str) -> bool {
    ESCAPED.iter().all(|(escaped, _)| *escaped == '%' || !prefix.contains(*escaped))
}

fn looks_like_a_file(directory: &str) -> bool {
    directory.trim_end_matches(DIRECTORY_MARK).ends_with(ENDING)
}

const ENDING: &str = ".record";

const DIRECTORY_MARK: char = '_';

const ESCAPED: [(char, &str); 4] =
    [('%', "%25"), ('\\', "%5C"), ('\u{fffe}', "%EF%BF%BE"), ('\u{ffff}', "%EF%BF%BF")];

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
        assert_eq!(names.of(&key("billing/nightly")), "prod/locks/billing/nightly.record");
        assert_eq!(names.of(&Key::scratch()), "prod/locks/.tenure/scratch.record");
        assert_eq!(Names::below("").of(&key("with space/#?+~")), "with space/#?+~.record");
        assert_eq!(Names::below("").of(&key("100%/a\\b\u{ffff}")), "100%25/a%5Cb%EF%BF%BF.record");
    }

    #[test]
    fn no_directory_has_the_name_of_a_file() {
        let names = Names::below("");
        assert_eq!(names.of(&key("a")), "a.record");
        assert_eq!(names.of(&key("a.record/b")), "a.record_/b.record");
        assert_eq!(names.of(&key("a.record_/b")), "a.record__/b.record");
        assert_eq!(names.of(&key("a.record_")), "a.record_.record");
    }

    #[test]
    fn a_final_dot_is_escaped_where_the_server_would_ignore_it() {
        let names = Names::below("locks").escaping_final_dots();
        for (of, name) in [
            ("a./b.", "locks/a%2E/b..record"),
            ("a../b", "locks/a.%2E/b.record"),
            ("a/b", "locks/a/b.record"),
        ] {
            assert_eq!(names.of(&key(of)), name);
            assert_eq!(names.key(name), Some(key(of)));
        }
        assert_eq!(names.key("locks/a./b.record"), None);
        assert_eq!(names.prefix_of(&Prefix::parse("a./b").unwrap()), "locks/a%2E/b");
    }

    #[test]
    fn an_exact_name_is_the_key_below_the_prefix() {
        let names = Names::below("data").exact(true);
        for name in ["reports/today.csv", "100%/a\\b", "a.record", "a./b", "with space/#?+~"] {
            assert_eq!(names.of(&key(name)), format!("data/{name}"));
            assert_eq!(names.key(&format!("data/{name}")), Some(key(name)));
        }
        for foreign in ["data", "data/", "data/a//b", "other/a", "database/a"] {
            assert_eq!(names.key(foreign), None, "{foreign}");
        }
        assert_eq!(names.prefix_of(&Prefix::parse("reports/").unwrap()), "data/reports");
        assert_eq!(names.prefix_of(&Prefix::all()), "data/");
    }

    #[test]
    fn a_foreign_object_has_no_key() {
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
            "locks/a%20b.record",
            "locks/a%5cb.record",
            "locks/a%2Fb.record",
            "locks/100%.record",
            "locks/a\\b.record",
        ] {
            assert_eq!(names.key(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_prefix_lists_its_own_key_and_what_lies_below() {
        let names = Names::below("locks");
        assert_eq!(names.prefix_of(&Prefix::all()), "locks/");
        assert_eq!(names.prefix_of(&Prefix::parse("jobs/").unwrap()), "locks/jobs");
        assert_eq!(names.prefix_of(&Prefix::parse("a.record/b").unwrap()), "locks/a.record_/b");
    }

    fn keys() -> impl Strategy<Value = Key> {
        let segment = "(\\PC{0,6}|a|b|%|%5C|\\\\|\u{ffff})(\\.record)?_{0,2}";
        prop::collection::vec(segment, 1..5)
            .prop_filter_map("not a key", |segments| Key::parse(&segments.join("/")).ok())
    }

    proptest! {
        #[test]
        fn every_key_comes_back_and_no_two_share_a_name_or_a_directory(
            a in keys(),
            b in keys(),
            dots in any::<bool>(),
        ) {
            let names = Names { escapes_final_dots: dots, ..Names::below("locks") };
            let (of_a, of_b) = (names.of(&a), names.of(&b));
            prop_assert_eq!(names.key(&of_a), Some(a.clone()));
            prop_assert_eq!(of_a == of_b, a == b);
            let (inside_a, inside_b) = (format!("{of_a}/"), format!("{of_b}/"));
            prop_assert!(!of_a.starts_with(&inside_b) && !of_b.starts_with(&inside_a));
            let covers = Prefix::of(&a).covers(&b);
            prop_assert!(!covers || of_b.starts_with(&names.prefix_of(&Prefix::of(&a))));
        }
    }
}
