use std::fmt::Write as _;

use tenure_store::Key;

use super::super::FencingToken;
use crate::Token;
use crate::host::checksum::checksum;

/// The content of a mark file: one line, padded to one sector.
///
/// ```text
/// tenure-fence 1 file 7 91b2c3d4e5f60718 billing/nightly
/// tenure-fence 1 log 7 settled 4096 91b2c3d4e5f60718 billing/nightly
/// tenure-fence 1 log 7 appending 4096 120 5f0c19b2a8d4e6f7 0f3c22d1b7a94e58 91b2c3d4e5f60718 billing/nightly
/// ```
///
/// Format, kind, greatest admitted token, the log's [`Tail`], checksum of everything else, lease.
///
/// A disk writes one sector as a whole or not at all. So a power cut leaves the mark before the write or the one after
/// it. Any other content was damaged: it is refused, and never counts as a missing mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FenceMark {
    /// The greatest admitted token.
    pub(super) token: FencingToken,
    pub(super) content: Content,
}

/// What the mark guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A file that is replaced as a whole.
    File,
    /// A file that only grows.
    Log(Tail),
}

/// The end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// All appends are complete, and the log has this length.
    Settled(u64),
    /// An append was begun. Its writer may have died since.
    Appending(Intent),
}

/// An append that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intent {
    /// Length of the log before it.
    pub(super) from: u64,
    /// Number of appended bytes.
    pub(super) length: u64,
    /// Checksum of the appended bytes.
    pub(super) checksum: u64,
    /// The boot of the writer; zero if the writer does not know it.
    pub(super) boot: u64,
}

impl FenceMark {
    /// The size of every mark file.
    pub(super) const BYTES: usize = 512;

    pub(super) fn encode(&self) -> [u8; Self::BYTES] {
        let mut facts = format!("{MAGIC} {FORMAT} ");
        match self.content {
            Content::File => write!(facts, "file {}", self.token.token()),
            Content::Log(Tail::Settled(length)) => {
                write!(facts, "log {} settled {length}", self.token.token())
            }
            Content::Log(Tail::Appending(Intent { from, length, checksum, boot })) => write!(
                facts,
                "log {} appending {from} {length} {checksum:016x} {boot:016x}",
                self.token.token()
            ),
        }
        .expect("a string takes every text");
        let name = self.token.name().as_str();
        let check = checksum(&[facts.as_bytes(), name.as_bytes()]);
        let line = format!("{facts} {check:016x} {name}\n");
        // All numbers at their greatest and the longest name are 346 bytes.
        let mut bytes = [b'\n'; Self::BYTES];
        bytes[..line.len()].copy_from_slice(line.as_bytes());
        bytes
    }

    /// The mark in these bytes, or the reason why there is none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.is_empty() {
            return Err("it is empty");
        }
        let text = str::from_utf8(bytes).map_err(|_| NOT_OURS)?;
        let mut words = text.split(' ');
        if words.next() != Some(MAGIC) {
            return Err(NOT_OURS);
        }
        match words.next().and_then(|format| format.parse::<u32>().ok()) {
            Some(FORMAT) => {}
            Some(later) if later > FORMAT => return Err("it was written by a later version of Tenure"),
            _ => return Err(DAMAGED),
        }
        let mark = Self::parse_words(text).ok_or(DAMAGED)?;
        // Strict: exactly what this version writes, checksum and padding included.
        if mark.encode() == bytes { Ok(mark) } else { Err(DAMAGED) }
    }

    fn parse_words(text: &str) -> Option<Self> {
        let (line, _) = text.split_once('\n')?;
        let mut words = line.splitn(5, ' ').skip(2);
        let kind = words.next()?;
        let token: Token = words.next()?.parse().ok()?;
        let mut rest = words.next()?;
        let content = match kind {
            "file" => Content::File,
            "log" => {
                let (tail, after) = parse_tail(rest)?;
                rest = after;
                Content::Log(tail)
            }
            _ => return None,
        };
        let (_checksum, name) = rest.split_once(' ')?;
        let token = FencingToken::new(Key::from_stored(name).ok()?, token).ok()?;
        Some(Self { token, content })
    }
}

/// The tail at the beginning of this text, and the text after it.
fn parse_tail(text: &str) -> Option<(Tail, &str)> {
    let (state, rest) = text.split_once(' ')?;
    let (first, rest) = rest.split_once(' ')?;
    let first = first.parse().ok()?;
    match state {
        "settled" => Some((Tail::Settled(first), rest)),
        "appending" => {
            let mut words = rest.splitn(4, ' ');
            let length: u64 = words.next()?.parse().ok()?;
            let checksum = u64::from_str_radix(words.next()?, 16).ok()?;
            let boot = u64::from_str_radix(words.next()?, 16).ok()?;
            first.checked_add(length)?;
            Some((Tail::Appending(Intent { from: first, length, checksum, boot }), words.next()?))
        }
        _ => None,
    }
}

const MAGIC: &str = "tenure-fence";
const FORMAT: u32 = 1;
const NOT_OURS: &str = "it does not begin like one";
const DAMAGED: &str = "its checksum or its form is wrong";

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(token: &str, content: Content) -> FenceMark {
        FenceMark { token: token.parse().unwrap(), content }
    }

    fn appending() -> Content {
        let intent = Intent { from: u64::MAX / 2, length: u64::MAX / 2, checksum: u64::MAX, boot: u64::MAX };
        Content::Log(Tail::Appending(intent))
    }

    #[test]
    fn every_mark_fits_into_its_sector_and_comes_back() {
        let longest =
            FencingToken::new(Key::parse(&"n".repeat(Key::MAX_BYTES)).unwrap(), Token::MAX).unwrap();
        for token in
            [longest.to_string(), "a=1".to_owned(), "two%20words=2".to_owned(), "gr%C3%BCn=3".to_owned()]
        {
            for content in [Content::File, Content::Log(Tail::Settled(u64::MAX)), appending()] {
                let mark = mark(&token, content);
                assert_eq!(FenceMark::parse(&mark.encode()), Ok(mark));
            }
        }
    }

    #[test]
    fn one_changed_byte_anywhere_makes_a_mark_invalid() {
        for content in [Content::File, Content::Log(Tail::Settled(4_096)), appending()] {
            let good = mark("billing/nightly=7", content).encode();
            for at in 0..good.len() {
                for flip in [1, 4, 16] {
                    let mut bad = good;
                    bad[at] ^= flip;
                    assert!(FenceMark::parse(&bad).is_err(), "byte {at}, bits {flip}");
                }
            }
        }
    }

    #[test]
    fn a_torn_or_padded_mark_is_invalid_and_says_why() {
        let (old, new) = (mark("a=7", appending()).encode(), mark("a=8", Content::File).encode());
        for at in 1..40 {
            let torn = [&new[..at], &old[at..]].concat();
            assert!(torn == old || FenceMark::parse(&torn).is_err(), "torn at {at}");
        }
        assert_eq!(FenceMark::parse(b""), Err("it is empty"));
        assert_eq!(FenceMark::parse(&[0; 512]), Err(NOT_OURS));
        assert_eq!(FenceMark::parse(&new[..511]), Err(DAMAGED));
        assert_eq!(FenceMark::parse(&[&new[..], b"\n"].concat()), Err(DAMAGED));
        let later = String::from_utf8(new.to_vec()).unwrap().replace("fence 1", "fence 2");
        assert_eq!(FenceMark::parse(later.as_bytes()), Err("it was written by a later version of Tenure"));
    }
}
