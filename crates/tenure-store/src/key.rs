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
    /// The name of a group of slots is too long for the keys of its slots.
    #[error(
        "a group of slots has a name of at most {max} bytes, where '/' and '%' count as three, and this one has \
         {bytes}: shorten {start:?}…",
        max = Key::GROUP_MAX_BYTES
    )]
    GroupTooLong {
        /// Its length in bytes, with three for each `/` and `%`.
        bytes: usize,
        /// Its first characters.
        start: String,
    },
    /// The name of a fenced value is too long for its key.
    #[error(
        "a fenced value has a name of at most {max} bytes, and this one has {bytes}: shorten {start:?}…",
        max = Key::FENCED_MAX_BYTES
    )]
    FencedTooLong {
        /// Its length in bytes.
        bytes: usize,
        /// Its first characters.
        start: String,
    },
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

    /// Maximum length of the name of a group of slots, in bytes, where `/` and `%` count as three.
    pub const GROUP_MAX_BYTES: usize = Self::MAX_BYTES - SLOTS.len() - "//1023".len();

    /// The key of the size of a group of slots. No user's key can be equal to it, and listings hide it.
    ///
    /// The name of the group is one segment of it, so that the keys of no group are below those of another.
    pub fn group_size(group: &Self) -> Result<Self, KeyError> {
        Ok(Self(format!("{}/{SIZE}", group_segments(group)?).into()))
    }

    /// The key of one slot of a group. No user's key can be equal to it, and listings hide it.
    pub fn group_slot(group: &Self, index: u16) -> Result<Self, KeyError> {
        Ok(Self(format!("{}/{index}", group_segments(group)?).into()))
    }

    /// The group of slots that this key belongs to; `None` for every other key.
    pub fn group(&self) -> Option<Self> {
        let (encoded, _) = self.in_group()?;
        let name = encoded.replace("%2F", "/").replace("%25", "%");
        let group = Self::parse(&name).ok()?;
        // Strict: no two spellings are the same group.
        (group_segments(&group).ok()?.strip_prefix(SLOTS)?.strip_prefix('/')? == encoded).then_some(group)
    }

    /// The index of this slot; `None` if the key is not that of a slot.
    pub fn slot_index(&self) -> Option<u16> {
        let (_, last) = self.in_group()?;
        last.parse().ok().filter(|index: &u16| index.to_string() == last)
    }

    /// True for the keys of groups of slots, which contain leases, and numbers that leases depend on.
    pub fn is_of_slots(&self) -> bool {
        self.0.strip_prefix(SLOTS).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    /// Maximum length of the name of a fenced value, in bytes.
    pub const FENCED_MAX_BYTES: usize = Self::MAX_BYTES - FENCED.len() - "/".len();

    /// The key of the fenced value with this name. No user's key can be equal to it, and listings hide it.
    pub fn fenced_value(name: &Self) -> Result<Self, KeyError> {
        if name.is_reserved() {
            return Err(KeyError::Reserved(name.as_str().to_owned()));
        }
        if name.as_str().len() > Self::FENCED_MAX_BYTES {
            let start = name.as_str().chars().take(24).collect();
            return Err(KeyError::FencedTooLong { bytes: name.as_str().len(), start });
        }
        Ok(Self(format!("{FENCED}/{name}").into()))
    }

    /// The name of the fenced value that has this key; `None` for every other key.
    pub fn fenced_name(&self) -> Option<Self> {
        Self::parse(self.0.strip_prefix(FENCED)?.strip_prefix('/')?).ok()
    }

    /// True for the keys of fenced values, which contain the tokens of fences.
    pub fn is_of_fences(&self) -> bool {
        self.0.strip_prefix(FENCED).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    /// The encoded name of a group, and the last segment of the key.
    fn in_group(&self) -> Option<(&str, &str)> {
        let (encoded, last) = self.0.strip_prefix(SLOTS)?.strip_prefix('/')?.split_once('/')?;
        (!last.contains('/')).then_some((encoded, last))
    }

    /// Turns a stored name back into a key, Tenure's own names included. For stores that list their names.
    pub fn from_stored(name: &str) -> Result<Self, KeyError> {
        check(name)?;
        Ok(Self(name.into()))
    }

    /// True for one of Tenure's own keys, which listings hide.
    pub fn is_reserved(&self) -> bool {
        self.0.split('/').next() == Some(RESERVED)
    }

    /// True if [`Scratch::sweep`](crate::Scratch::sweep) may remove it: one of Tenure's own keys, but not
    /// [`scratch`](Self::scratch), which every safety check uses, not [one of slots](Self::is_of_slots), and not [one of
    /// fences](Self::is_of_fences).
    pub fn may_be_swept(&self) -> bool {
        self.is_reserved() && *self != Self::scratch() && !self.is_of_slots() && !self.is_of_fences()
    }

    /// Refuses a sweep of a key that [may not be swept](Self::may_be_swept). Stores call it before they send anything.
    pub fn must_be_sweepable(&self) -> Result<(), StoreError> {
        if self.may_be_swept() {
            return Ok(());
        }
        let why = format!("{self} may contain data of a lease or a fence, and is not removed");
        Err(StoreError::refused(Reason::Invalid, why))
    }

    /// The key as messages name it: `lease billing/nightly`, `slot 3 of gpu`, or `fenced value report`.
    pub fn titled(&self) -> String {
        if let Some(name) = self.fenced_name() {
            return format!("fenced value {name}");
        }
        match (self.group(), self.slot_index()) {
            (Some(group), Some(index)) => format!("slot {index} of {group}"),
            (Some(group), None) => format!("the size of {group}"),
            _ => format!("lease {self}"),
        }
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

/// The first segments of the keys of a group of slots.
pub(crate) fn group_segments(group: &Key) -> Result<String, KeyError> {
    if group.is_reserved() {
        return Err(KeyError::Reserved(group.as_str().to_owned()));
    }
    let encoded = group.as_str().replace('%', "%25").replace('/', "%2F");
    if encoded.len() > Key::GROUP_MAX_BYTES {
        let start = group.as_str().chars().take(24).collect();
        return Err(KeyError::GroupTooLong { bytes: encoded.len(), start });
    }
    Ok(format!("{SLOTS}/{encoded}"))
}

/// The first segment of Tenure's own keys.
const RESERVED: &str = ".tenure";

/// The first segments of the keys of all groups of slots.
pub(crate) const SLOTS: &str = ".tenure/slots";

/// The first segments of the keys of all fenced values.
pub(crate) const FENCED: &str = ".tenure/fenced";

/// The last segment of the key of a group's size.
const SIZE: &str = "size";

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::parse(name).unwrap()
    }

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
        let group = key("gpu");
        let slots = [Key::group_size(&group).unwrap(), Key::group_slot(&group, 3).unwrap()];
        let fenced = Key::fenced_value(&key("report")).unwrap();
        for kept in [Key::scratch(), key("backup"), key(".tenured/probe"), fenced].into_iter().chain(slots) {
            let refused = kept.must_be_sweepable().unwrap_err();
            assert!(
                matches!(refused, StoreError::Refused(refused) if refused.reason == Reason::Invalid),
                "{kept}"
            );
        }
    }

    #[test]
    fn the_keys_of_a_group_name_it_in_one_segment_and_come_back() {
        for (name, segment) in [
            ("gpu", "gpu"),
            ("jobs/gpu", "jobs%2Fgpu"),
            ("jobs%2Fgpu", "jobs%252Fgpu"),
            ("100%", "100%25"),
            (".hidden/size", ".hidden%2Fsize"),
            ("Ünïcødé/键", "Ünïcødé%2F键"),
        ] {
            let (size, slot) =
                (Key::group_size(&key(name)).unwrap(), Key::group_slot(&key(name), 7).unwrap());
            assert_eq!(size.as_str(), format!(".tenure/slots/{segment}/size"));
            assert_eq!(slot.as_str(), format!(".tenure/slots/{segment}/7"));
            for (own, index) in [(size, None), (slot, Some(7))] {
                assert_eq!(own.group(), Some(key(name)));
                let title =
                    index.map_or(format!("the size of {name}"), |index| format!("slot {index} of {name}"));
                assert_eq!(own.titled(), title);
                assert_eq!(own.slot_index(), index);
                assert!(own.is_reserved() && own.is_of_slots());
                assert_eq!(Key::from_stored(own.as_str()).unwrap(), own);
                assert!(Key::parse(own.as_str()).is_err(), "no user can name it");
            }
        }
    }

    #[test]
    fn the_keys_of_nesting_groups_are_different_and_never_below_one_another() {
        let names = ["a", "a/size", "a/0", "a%2Fsize", "a/0/1", "a%2F0"];
        let keys: Vec<_> = names
            .iter()
            .flat_map(|name| [Key::group_size(&key(name)).unwrap(), Key::group_slot(&key(name), 0).unwrap()])
            .collect();
        for (at, one) in keys.iter().enumerate() {
            for (other_at, other) in keys.iter().enumerate() {
                assert_eq!(at == other_at, crate::Prefix::of(one).covers(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn other_keys_belong_to_no_group() {
        for name in [
            "gpu",
            ".tenure/slots",
            ".tenure/slots/gpu",
            ".tenure/slots/gpu/size/1",
            ".tenure/slots/jobs%2fgpu/1",
            ".tenure/slots/100%/1",
            ".tenure/slots/.tenure%2Fx/1",
            ".tenure/slotsy/gpu/1",
        ] {
            assert_eq!(Key::from_stored(name).unwrap().group(), None, "{name}");
        }
        for name in ["07", "+7", "-1", "65536", "size"] {
            let slot = Key::from_stored(&format!(".tenure/slots/gpu/{name}")).unwrap();
            assert_eq!(slot.slot_index(), None, "{name}");
        }
        assert!(!Key::from_stored(".tenure/slotsy/gpu/1").unwrap().is_of_slots());
    }

    #[test]
    fn the_key_of_a_fenced_value_is_no_users_key_and_names_the_value() {
        for name in ["report", "reports/today.csv", "100%", ".tenured", "Ünïcødé/键"] {
            let own = Key::fenced_value(&key(name)).unwrap();
            assert_eq!(own.as_str(), format!(".tenure/fenced/{name}"));
            assert_eq!(own.fenced_name(), Some(key(name)));
            assert_eq!(own.titled(), format!("fenced value {name}"));
            assert!(own.is_reserved() && own.is_of_fences() && !own.is_of_slots());
            assert!(Key::parse(own.as_str()).is_err(), "no user can name it");
            assert_eq!(Key::from_stored(own.as_str()).unwrap(), own);
        }
        for other in [".tenure/fenced", ".tenure/fencedy/a", ".tenure/slots/a/1", "report"] {
            assert_eq!(Key::from_stored(other).unwrap().fenced_name(), None, "{other}");
        }
        assert!(!Key::from_stored(".tenure/fencedy/a").unwrap().is_of_fences());
    }

    #[test]
    fn a_fenced_value_whose_key_would_be_too_long_is_refused_with_the_limit() {
        let longest = key(&"x".repeat(Key::FENCED_MAX_BYTES));
        assert_eq!(Key::fenced_value(&longest).unwrap().as_str().len(), Key::MAX_BYTES);
        let error = Key::fenced_value(&key(&"x".repeat(Key::FENCED_MAX_BYTES + 1))).unwrap_err();
        assert!(error.to_string().starts_with("a fenced value has a name of at most 185 bytes"), "{error}");
        assert!(matches!(Key::fenced_value(&Key::scratch()), Err(KeyError::Reserved(_))));
    }

    #[test]
    fn a_group_whose_slots_would_have_too_long_keys_is_refused_with_the_limit() {
        let longest = key(&"x".repeat(Key::GROUP_MAX_BYTES));
        assert_eq!(Key::group_slot(&longest, 1_023).unwrap().as_str().len(), Key::MAX_BYTES);
        assert!(Key::group_size(&longest).unwrap().as_str().len() <= Key::MAX_BYTES);
        let error = Key::group_slot(&key(&"gpu/".repeat(40)[..159]), 0).unwrap_err();
        assert!(matches!(error, KeyError::GroupTooLong { bytes: 182.., .. }), "{error}");
        assert!(error.to_string().starts_with("a group of slots has a name of at most 181 bytes"), "{error}");
        assert!(matches!(Key::group_slot(&Key::scratch(), 0), Err(KeyError::Reserved(_))));
    }
}
