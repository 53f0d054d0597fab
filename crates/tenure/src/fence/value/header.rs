use serde::{Deserialize, Serialize};
use tenure_core::Token;
use tenure_core::record::Nonce;
use tenure_fence::FencingToken;
use tenure_store::Key;

use super::ValueFlaw;

/// The first line of a fenced value: the mark of the fence, and the identity of the write that left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The greatest admitted token, with the name of its lease.
    pub(super) mark: FencingToken,
    /// Token of the write that made the content; `None` if the fence was only ever sealed.
    pub(super) written: Option<Token>,
    /// Number of this write in the life of the entry, from one.
    pub(super) sequence: u64,
    /// Random number of this write. It makes the bytes of every write different, and it is the proof that a write of
    /// unknown outcome landed.
    pub(super) nonce: Nonce,
    /// Nonces of the writes before this one, the latest first. A writer finds its own write there after another one has
    /// replaced it.
    pub(super) before: Vec<Nonce>,
    /// Length of the content, in bytes.
    pub(super) length: usize,
}

impl Header {
    /// Maximum length of the first line, in bytes, with its end.
    pub(super) const MAX_BYTES: usize = 1024;

    /// The header of a write that replaces `replaced`, or creates the entry.
    pub(super) fn after(
        replaced: Option<&Self>,
        mark: FencingToken,
        written: Option<Token>,
        nonce: Nonce,
        length: usize,
    ) -> Self {
        let before =
            replaced.into_iter().flat_map(|header| [&header.nonce].into_iter().chain(&header.before));
        Self {
            mark,
            written,
            sequence: replaced.map_or(0, |header| header.sequence) + 1,
            nonce,
            before: before.copied().take(BEFORE_MAX).collect(),
            length,
        }
    }

    /// The nonce of the write with this number, if this header still shows it.
    pub(super) fn nonce_of(&self, sequence: u64) -> Option<Nonce> {
        let back = usize::try_from(self.sequence.checked_sub(sequence)?).ok()?;
        match back.checked_sub(1) {
            None => Some(self.nonce),
            Some(at) => self.before.get(at).copied(),
        }
    }

    /// The line, with its end.
    pub(super) fn encode(&self) -> Vec<u8> {
        let line = HeaderLine {
            format: FORMAT.to_owned(),
            version: VERSION,
            lease: self.mark.name().as_str().to_owned(),
            token: self.mark.token(),
            written: self.written,
            sequence: self.sequence,
            nonce: self.nonce.to_string(),
            before: self.before.iter().map(Nonce::to_string).collect(),
            length: self.length,
        };
        let mut bytes = serde_json::to_vec(&line).expect("plain fields");
        bytes.push(b'\n');
        bytes
    }

    /// Reads the line, without its end. Trusts nothing: what a later version may mean is not guessed.
    pub(super) fn decode(line: &[u8]) -> Result<Self, ValueFlaw> {
        let stated: StatedHeader = serde_json::from_slice(line).map_err(|_| ValueFlaw::NotOurs)?;
        if stated.format != FORMAT {
            return Err(ValueFlaw::NotOurs);
        }
        if stated.version != VERSION {
            return Err(ValueFlaw::Later(stated.version));
        }
        let line: HeaderLine = serde_json::from_slice(line).map_err(|_| ValueFlaw::Malformed)?;
        let lease = Key::from_stored(&line.lease).map_err(|_| ValueFlaw::Malformed)?;
        let mark = FencingToken::new(lease, line.token).map_err(|_| ValueFlaw::Malformed)?;
        let nonces = line.before.iter().map(|nonce| Nonce::parse(nonce)).collect::<Option<Vec<_>>>();
        let (Some(nonce), Some(before)) = (Nonce::parse(&line.nonce), nonces) else {
            return Err(ValueFlaw::Malformed);
        };
        let earlier = line.sequence.checked_sub(1).ok_or(ValueFlaw::Malformed)?;
        let is_right = before.len() <= BEFORE_MAX
            && before.len() as u64 <= earlier
            && line.sequence < SEQUENCE_END
            && line.written.is_none_or(|written| written <= line.token && written > Token::ZERO)
            && (line.written.is_some() || line.length == 0);
        if !is_right {
            return Err(ValueFlaw::Malformed);
        }
        let HeaderLine { written, sequence, length, .. } = line;
        Ok(Self { mark, written, sequence, nonce, before, length })
    }
}

/// The fields that every version of the format has.
#[derive(Deserialize)]
struct StatedHeader {
    format: String,
    version: u64,
}

/// The fields in their order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine {
    format: String,
    version: u64,
    lease: String,
    token: Token,
    written: Option<Token>,
    sequence: u64,
    nonce: String,
    before: Vec<String>,
    length: usize,
}

const FORMAT: &str = "tenure-fenced-value";

const VERSION: u64 = 1;

/// Number of earlier nonces. A writer whose answer was lost finds its write as long as no more writes followed it.
const BEFORE_MAX: usize = 8;

/// Beyond every number of writes that an entry can have, and exact in every JSON reader.
const SEQUENCE_END: u64 = 1 << 53;
