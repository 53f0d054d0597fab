use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use tenure_store::{Key, Version};

use super::name;
use crate::clock::{Domain, Instant};
use crate::host::checksum::checksum;

/// The content of an entry file: a line about the value, and the value.
///
/// ```text
/// tenure-entry 1 5f0c…9a 0f3c…,time:[4026531834] 8123456789 712 91b2c3d4e5f60718 billing+nightly
/// {"crit":[], …
/// ```
///
/// Format, version, clock domain (or `-`) and boot-time nanoseconds of the write, length of the value, checksum of
/// everything else, escaped key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) key: Key,
    pub(super) version: Version,
    pub(super) stamp: Stamp,
    pub(super) value: Bytes,
}

/// Time of a write, on the boot-time clock of its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) domain: Option<Domain>,
    pub(super) at: Instant,
}

/// The reason why a file is not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    #[error("it is empty")]
    Empty,
    #[error("it does not begin like one")]
    NotOurs,
    #[error("it was written by a later version of Tenure")]
    Later,
    #[error("it is cut off")]
    CutOff,
    #[error("something is behind its end")]
    TooLong,
    #[error("its checksum does not match")]
    Checksum,
    #[error("its first line cannot be understood")]
    Malformed,
    #[error("it is the entry of another key")]
    AnotherKey,
}

impl Envelope {
    /// Upper limit of the length of the first line.
    pub(super) const HEAD_MAX: usize = 2048;

    pub(super) fn encode(&self) -> Vec<u8> {
        let domain = self.stamp.domain.as_ref().map_or_else(|| "-".to_owned(), Domain::to_string);
        let (at, length) = (self.stamp.at.as_nanos(), self.value.len());
        let key = name::escape(&self.key);
        let facts = format!("{} {domain} {at} {length}", self.version);
        let mut head = format!("{MAGIC} {FORMAT} {facts} ");
        let checksum = checksum(&[facts.as_bytes(), key.as_bytes(), &self.value]);
        let _ = writeln!(head, "{checksum:016x} {key}");
        let mut bytes = head.into_bytes();
        debug_assert!(bytes.len() <= Self::HEAD_MAX);
        bytes.extend_from_slice(&self.value);
        bytes
    }

    /// Trusts nothing: every byte is covered by the checksum or compared.
    pub(super) fn decode(bytes: Bytes) -> Result<Self, Flaw> {
        if bytes.is_empty() {
            return Err(Flaw::Empty);
        }
        let Some(rest) = bytes.strip_prefix(MAGIC.as_bytes()).and_then(|rest| rest.strip_prefix(b" ")) else {
            return Err(Flaw::NotOurs);
        };
        let Some(end) = rest.iter().take(Self::HEAD_MAX).position(|byte| *byte == b'\n') else {
            return Err(Flaw::CutOff);
        };
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| Flaw::Malformed)?;
        let words: Vec<&str> = line.split(' ').collect();
        if words.first().is_some_and(|format| *format != FORMAT) {
            return Err(Flaw::Later);
        }
        let [_, version, domain, at, length, sum, escaped] = words[..] else { return Err(Flaw::Malformed) };
        let value = bytes.slice(bytes.len() - rest.len() + end + 1..);
        match value.len().cmp(&length.parse().map_err(|_| Flaw::Malformed)?) {
            std::cmp::Ordering::Less => return Err(Flaw::CutOff),
            std::cmp::Ordering::Greater => return Err(Flaw::TooLong),
            std::cmp::Ordering::Equal => {}
        }
        let facts = format!("{version} {domain} {at} {length}");
        if sum != format!("{:016x}", checksum(&[facts.as_bytes(), escaped.as_bytes(), &value])) {
            return Err(Flaw::Checksum);
        }
        let key = name::unescape(escaped).ok_or(Flaw::Malformed)?;
        let at = Instant::from_nanos(at.parse().map_err(|_| Flaw::Malformed)?);
        let stamp = Stamp { domain: Domain::parse(domain), at };
        Ok(Self { key, version: Version::new(version), stamp, value })
    }

    /// As [`decode`](Self::decode), for this key: a file that was renamed or copied is an error.
    pub(super) fn decode_of(key: &Key, bytes: Bytes) -> Result<Self, Flaw> {
        let envelope = Self::decode(bytes)?;
        if envelope.key == *key { Ok(envelope) } else { Err(Flaw::AnotherKey) }
    }
}

impl Stamp {
    /// Time since the write, if reader and writer have the same clock. An instant in the future belongs to another
    /// clock, even if the domain is the same.
    pub(super) fn age(&self, here: Option<&Domain>, now: Instant) -> Option<Duration> {
        let same = here.is_some() && self.domain.as_ref() == here;
        (same && now >= self.at).then(|| now.since(self.at))
    }
}

const MAGIC: &str = "tenure-entry";
const FORMAT: &str = "1";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn envelope(value: &'static [u8]) -> Envelope {
        Envelope {
            key: Key::parse("billing/Nightly").unwrap(),
            version: Version::new("00000000000000000000000000000abc"),
            stamp: Stamp { domain: Domain::here(), at: Instant::from_nanos(12_345_678_901) },
            value: Bytes::from_static(value),
        }
    }

    fn decode(bytes: impl Into<Vec<u8>>) -> Result<Envelope, Flaw> {
        Envelope::decode(Bytes::from(bytes.into()))
    }

    #[test]
    fn a_written_entry_reads_back_and_is_human_readable() {
        for value in [&b""[..], b"{\"state\":\"vacant\"}", b"\n\n\0\xff tenure-entry"] {
            let envelope = envelope(value);
            let bytes = envelope.encode();
            assert!(bytes.starts_with(b"tenure-entry 1 00000000000000000000000000000abc "));
            assert_eq!(decode(bytes), Ok(envelope));
        }
    }

    #[test]
    fn each_kind_of_invalid_entry_has_its_own_message() {
        let good = envelope(b"value").encode();
        let text = String::from_utf8(good.clone()).unwrap();
        assert_eq!(decode(""), Err(Flaw::Empty));
        assert_eq!(decode("hello"), Err(Flaw::NotOurs));
        assert_eq!(decode(vec![0; 4096]), Err(Flaw::NotOurs));
        assert_eq!(decode("tenure-entry 2 whatever\n"), Err(Flaw::Later));
        assert_eq!(decode("tenure-entry 1 what\n"), Err(Flaw::Malformed));
        assert_eq!(decode(&good[..good.len() - 1]), Err(Flaw::CutOff));
        assert_eq!(decode(&good[..40]), Err(Flaw::CutOff));
        assert_eq!(decode([&good[..], b"!"].concat()), Err(Flaw::TooLong));
        assert_eq!(decode(text.replace("value", "eulav")), Err(Flaw::Checksum));
        let other = Key::parse("another").unwrap();
        assert_eq!(Envelope::decode_of(&other, good.into()), Err(Flaw::AnotherKey));
    }

    #[test]
    fn an_age_is_reported_only_on_the_clock_of_the_writer() {
        let here = Domain::here();
        let stamp = Stamp { domain: here.clone(), at: Instant::from_nanos(1_000) };
        let later = Instant::from_nanos(3_500);
        assert_eq!(stamp.age(here.as_ref(), later), Some(Duration::from_nanos(2_500)));
        let elsewhere = Domain::parse("another-boot,time:[4026531834]");
        assert_eq!(stamp.age(elsewhere.as_ref(), later), None);
        assert_eq!(stamp.age(None, later), None);
        assert_eq!(
            Stamp { domain: None, ..stamp.clone() }.age(None, later),
            None,
            "two unknowns are not one place"
        );
        assert_eq!(
            stamp.age(here.as_ref(), Instant::from_nanos(999)),
            None,
            "not zero: it is not of this clock"
        );
    }

    proptest! {
        #[test]
        fn no_flipped_missing_or_doubled_byte_goes_unnoticed(
            at in any::<prop::sample::Index>(), with in 1u8.., cut in any::<prop::sample::Index>()
        ) {
            let good = envelope(b"a value of some length").encode();
            let mut flipped = good.clone();
            flipped[at.index(good.len())] ^= with;
            prop_assert!(decode(flipped).is_err());
            prop_assert!(decode(&good[..cut.index(good.len())]).is_err());
            let mut doubled = good.clone();
            doubled.insert(at.index(good.len()), good[at.index(good.len())]);
            prop_assert!(decode(doubled).is_err());
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode([b"tenure-entry 1 ".as_slice(), &bytes].concat());
        }
    }
}
