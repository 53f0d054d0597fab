use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use tenure_core::Token;
use tenure_core::record::Nonce;
use tenure_fence::FencingToken;
use tenure_store::Key;

/// A committed list of data objects, with the token of its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// The token of the commit.
    pub token: FencingToken,
    /// The data objects, in the order of the commit.
    pub entries: Vec<ManifestEntry>,
}

/// A data object that a manifest names.
///
/// [`FencedManifest::put`](super::FencedManifest::put) makes it, and a later commit may name it again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ManifestEntry {
    part: String,
    token: Token,
    nonce: Nonce,
    length: u64,
}

impl Manifest {
    /// The entry of this part.
    pub fn entry(&self, part: &str) -> Option<&ManifestEntry> {
        self.entries.iter().find(|entry| entry.part == part)
    }
}

impl ManifestEntry {
    pub(super) fn new(part: &str, token: Token, nonce: Nonce, length: u64) -> Self {
        Self { part: part.to_owned(), token, nonce, length }
    }

    /// Name of the part, such as `2026-01.csv`: unique in a manifest.
    pub fn part(&self) -> &str {
        &self.part
    }

    /// The token under which the object was written.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Length of the object, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Name of the object below that of the manifest: `<token>-<nonce>/<part>`.
    pub fn object(&self) -> String {
        format!("{}-{}/{}", self.token, self.nonce, self.part)
    }

    /// The token, the nonce and the part of an object, by its name below that of the manifest.
    fn parse(object: &str) -> Option<(Token, Nonce, &str)> {
        let (directory, part) = object.split_once('/')?;
        let (token, nonce) = directory.split_once('-')?;
        let parsed: Token = token.parse().ok().filter(|token| *token > Token::ZERO)?;
        (parsed.to_string() == token).then_some((parsed, Nonce::parse(nonce)?, part))
    }
}

/// The token in the name of a data object below that of the manifest; `None` for every other object.
pub(super) fn token_of(object: &str) -> Option<Token> {
    ManifestEntry::parse(object).map(|(token, _, _)| token)
}

/// The content of a manifest: JSON, one entry per line.
pub(super) fn encode(entries: &[ManifestEntry]) -> Vec<u8> {
    let mut text = format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\"entries\":[");
    for (at, entry) in entries.iter().enumerate() {
        let line = Line { part: entry.part.clone(), object: entry.object(), length: entry.length };
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&serde_json::to_string(&line).expect("plain fields"));
    }
    text.push_str("\n]}\n");
    text.into_bytes()
}

/// Reads the content of a manifest. The error says what is wrong.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<ManifestEntry>, String> {
    let not_ours = || "its content is no manifest. Choose another name".to_owned();
    let stated: Stated = serde_json::from_slice(bytes).map_err(|_| not_ours())?;
    if stated.format != FORMAT {
        return Err(not_ours());
    }
    if stated.version != VERSION {
        let version = stated.version;
        return Err(format!("a later version of Tenure wrote it, in format {version}. Use that version"));
    }
    let malformed =
        || "its entries cannot be understood. Inspect it, and restore it from a backup".to_owned();
    let body: Body = serde_json::from_slice(bytes).map_err(|_| malformed())?;
    let entries = body.entries.iter().map(|line| {
        let (token, nonce, part) = ManifestEntry::parse(&line.object)?;
        (part == line.part).then(|| ManifestEntry::new(part, token, nonce, line.length))
    });
    let entries: Vec<_> = entries.collect::<Option<_>>().ok_or_else(malformed)?;
    let parts: HashSet<_> = entries.iter().map(|entry| &entry.part).collect();
    let are_keys = entries.iter().all(|entry| Key::from_stored(&entry.part).is_ok());
    if parts.len() == entries.len() && are_keys { Ok(entries) } else { Err(malformed()) }
}

#[derive(Deserialize)]
struct Stated {
    format: String,
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    entries: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    part: String,
    object: String,
    length: u64,
}

const FORMAT: &str = "tenure-manifest";

const VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(part: &str, token: u64) -> ManifestEntry {
        ManifestEntry::new(part, Token::new(token).unwrap(), Nonce::from_bits(5), 3)
    }

    #[test]
    fn a_manifest_is_json_with_one_entry_per_line_and_comes_back() {
        let entries = [entry("a.csv", 7), entry("deep/b \"quoted\".csv", 8)];
        let text = String::from_utf8(encode(&entries)).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert!(
            text.contains(
                r#"{"part":"a.csv","object":"7-00000000000000000000000000000005/a.csv","length":3}"#
            )
        );
        assert_eq!(decode(text.as_bytes()).unwrap(), entries);
        assert_eq!(decode(&encode(&[])).unwrap(), []);
    }

    #[test]
    fn what_is_no_manifest_is_refused_with_its_reason() {
        let good = String::from_utf8(encode(&[entry("a", 7), entry("b", 7)])).unwrap();
        for (from, to, word) in [
            ("tenure-manifest", "other", "no manifest"),
            ("\"version\":1", "\"version\":2", "later version"),
            ("\"part\":\"b\"", "\"part\":\"c\"", "cannot be understood"),
            ("\"version\":1", "\"version\":1,\"more\":0", "cannot be understood"),
            ("\"7-", "\"0-", "cannot be understood"),
            ("\"7-", "\"07-", "cannot be understood"),
            ("]}", "", "no manifest"),
        ] {
            let error = decode(good.replace(from, to).as_bytes()).unwrap_err();
            assert!(error.contains(word), "{to}: {error}");
        }
        let twice = String::from_utf8(encode(&[entry("a", 7), entry("a", 8)])).unwrap();
        assert!(decode(twice.as_bytes()).is_err(), "a part has one object");
        assert!(decode(&encode(&[entry("../a", 7)])).is_err());
    }

    #[test]
    fn the_token_of_a_data_object_is_in_its_name() {
        assert_eq!(token_of(&entry("deep/b", 7).object()), Token::new(7));
        for other in
            ["manifest", "7/b", "x-5/b", "7-5/b", "readme.txt", "0-00000000000000000000000000000005/b"]
        {
            assert_eq!(token_of(other), None, "{other}");
        }
    }
}
