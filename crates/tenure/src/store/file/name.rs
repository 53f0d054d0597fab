use tenure_store::Key;

use crate::host::witness;

/// Meaning of a name in the directory. A stem is a name without its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileName<'a> {
    /// The entry of a key.
    Entry(&'a str),
    /// The lock of a key.
    Lock(&'a str),
    /// An unfinished or pending write.
    Temporary,
    /// The witness of a present or former holder: see [`witness`](crate::host::witness).
    Witness,
    /// The time of the directory.
    Mark,
    /// The note that the directory passed its trial.
    Tried,
    /// A file that does not belong to the store.
    Foreign,
}

/// The key of a stem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stem {
    /// This key.
    Of(Key),
    /// A key that is too long for a name: the file itself contains it.
    Long,
    /// No key.
    Foreign,
}

/// Name of the file that holds the entry of a key.
pub(super) fn entry(key: &Key) -> String {
    stem(key) + ENTRY
}

/// Name of the file whose lock protects a replacement of the entry.
pub(super) fn lock(key: &Key) -> String {
    stem(key) + LOCK
}

/// Name of a file to be written and then renamed to an entry.
pub(super) fn temporary(random: u128) -> String {
    format!("{random:032x}{TEMPORARY}")
}

/// Name of the entry beside a lock of this stem.
pub(super) fn entry_of(stem: &str) -> String {
    stem.to_owned() + ENTRY
}

/// Meaning of a name in the directory.
pub(super) fn parse(name: &[u8]) -> FileName<'_> {
    let Ok(name) = std::str::from_utf8(name) else { return FileName::Foreign };
    if name == MARK {
        return FileName::Mark;
    }
    if name == TRIED {
        return FileName::Tried;
    }
    if name.ends_with(TEMPORARY) {
        return FileName::Temporary;
    }
    if witness::is_name(name) {
        return FileName::Witness;
    }
    if let Some(stem) = name.strip_suffix(ENTRY) {
        return FileName::Entry(stem);
    }
    name.strip_suffix(LOCK).map_or(FileName::Foreign, FileName::Lock)
}

/// The key of a stem. Strict: no two stems have the same key.
pub(super) fn parse_stem(stem: &str) -> Stem {
    if stem.contains(LONG) {
        return Stem::Long;
    }
    match unescape(stem) {
        Some(key) if self::stem(&key) == stem => Stem::Of(key),
        _ => Stem::Foreign,
    }
}

/// The key as portable text: bytes that some file systems treat specially are written as `%xx`.
///
/// Capital letters are escaped because some file systems ignore case, and all non-ASCII bytes because some rewrite
/// them. `.` and `-` are escaped only at the start, where they hide a file or look like an option. `/` becomes `+`, so
/// that the entries of `a` and `a/b` are in the same directory.
pub(super) fn escape(key: &Key) -> String {
    let mut escaped = String::with_capacity(key.as_str().len());
    for (at, byte) in key.as_str().bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' => escaped.push(char::from(byte)),
            b'.' | b'-' if at > 0 => escaped.push(char::from(byte)),
            b'/' => escaped.push('+'),
            _ => escaped.push_str(&format!("%{byte:02x}")),
        }
    }
    escaped
}

/// Reverts [`escape`]; `None` if the text is not an escaped key. Also accepts spellings that [`escape`] does not use.
pub(super) fn unescape(escaped: &str) -> Option<Key> {
    let mut name = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.bytes();
    while let Some(byte) = bytes.next() {
        name.push(match byte {
            b'+' => b'/',
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            _ => byte,
        });
    }
    Key::from_stored(std::str::from_utf8(&name).ok()?).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// The name of a key without its suffix. A name that would be too long is cut and ends in its hash. The file contains
/// the complete key, which is compared: two keys with the same hash cause an error, and are never confused.
fn stem(key: &Key) -> String {
    let mut escaped = escape(key);
    if escaped.len() <= STEM_MAX {
        return escaped;
    }
    escaped.truncate(STEM_CUT);
    format!("{escaped}{LONG}{:032x}", hash(key.as_str().as_bytes()))
}

/// FNV-1a with 128 bits. It need not resist attacks: see [`stem`].
fn hash(bytes: &[u8]) -> u128 {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in bytes {
        hash ^= u128::from(*byte);
        hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    hash
}

/// Name of the mark, which belongs to no key: see [`Mark`](super::mark::Mark).
pub(super) const MARK: &str = "tenure.mark";
/// Name of the file that notes where the trial of the directory has passed.
pub(super) const TRIED: &str = "tenure.tried";

const ENTRY: &str = ".entry";
const LOCK: &str = ".lock";
const TEMPORARY: &str = ".tmp";

/// Precedes the hash in names of long keys, and occurs in no other name.
const LONG: char = '~';

/// With its suffix, a name stays below 255 bytes, the limit of file systems.
const STEM_MAX: usize = 200;

/// Length of the readable part of a long key.
const STEM_CUT: usize = 120;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> Key {
        Key::parse(name).unwrap()
    }

    #[test]
    fn ordinary_names_stay_readable() {
        assert_eq!(entry(&key("billing/nightly-2")), "billing+nightly-2.entry");
        assert_eq!(lock(&key("billing/nightly-2")), "billing+nightly-2.lock");
        assert_eq!(entry(&Key::scratch()), "%2etenure+scratch.entry");
        assert_eq!(entry(&key("-rf")), "%2drf.entry");
    }

    fn stem_of(name: &str) -> Stem {
        match parse(name.as_bytes()) {
            FileName::Entry(stem) => parse_stem(stem),
            named => panic!("{name} is {named:?}"),
        }
    }

    #[test]
    fn a_key_that_looks_like_a_file_of_the_store_is_a_key() {
        for name in ["a.lock", "a.tmp", "a.entry", "a.witness", "tenure.mark", "a.lock/b.tmp", "x~1"] {
            assert_eq!(stem_of(&entry(&key(name))), Stem::Of(key(name)));
            let lock = lock(&key(name));
            let FileName::Lock(stem) = parse(lock.as_bytes()) else { panic!("{lock}") };
            assert_eq!(entry_of(stem), entry(&key(name)));
        }
        assert_ne!(entry(&key("a.lock")), lock(&key("a")));
        assert_eq!(parse(temporary(7).as_bytes()), FileName::Temporary);
        assert_eq!(parse(format!("{:032x}.witness", 7).as_bytes()), FileName::Witness);
        assert_eq!(parse(b"a.witness"), FileName::Foreign);
        assert_eq!(parse(MARK.as_bytes()), FileName::Mark);
        assert_eq!(parse(b"notes.txt"), FileName::Foreign);
        assert_eq!(parse(b"\xff.entry"), FileName::Foreign);
    }

    #[test]
    fn a_name_that_no_key_has_is_foreign_even_if_it_could_be_decoded() {
        for stem in ["A", "%41%4A", "%61", "a%2fb", "%zz", "%4", "é", "", "++", "a%"] {
            assert_eq!(parse_stem(stem), Stem::Foreign, "{stem}");
        }
    }

    #[test]
    fn the_longest_keys_fit_and_differ() {
        let plain = key(&"x".repeat(200));
        assert_eq!(stem_of(&entry(&plain)), Stem::Of(plain));
        let long =
            [&"é".repeat(100), &format!("{}xy", "é".repeat(99)), &"X".repeat(200)].map(|name| key(name));
        let names: HashSet<_> = long.iter().map(entry).collect();
        assert_eq!(names.len(), long.len());
        for name in names {
            assert!(name.len() < 255, "{}", name.len());
            assert_eq!(stem_of(&name), Stem::Long);
        }
    }

    proptest! {
        #[test]
        fn every_key_decodes_and_no_two_share_a_name_even_ignoring_case(
            names in proptest::collection::hash_set("[a-cA-C.%+~é/ _-]{1,12}", 2..40)
        ) {
            let keys: Vec<Key> = names.iter().filter_map(|name| Key::parse(name).ok()).collect();
            for key in &keys {
                prop_assert_eq!(stem_of(&entry(key)), Stem::Of(key.clone()));
                prop_assert_eq!(unescape(&escape(key)), Some(key.clone()));
            }
            let folded: HashSet<_> = keys.iter().map(|key| entry(key).to_lowercase()).collect();
            prop_assert_eq!(folded.len(), keys.len());
        }
    }
}
