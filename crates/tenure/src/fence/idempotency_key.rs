use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::FencingToken;

/// A key for a request to a system that has no fence, but drops a second request with the same key: mail, a payment, a
/// third party's API.
///
/// It is made from the name of the lease, its token and a sequence number that the holder chooses. So a holder that sends
/// the same request again sends the same key, also if the answer was lost, and two holders never send the same key.
///
/// **It does not replace a fence.** The key of the next holder is another one, because its token is. A paused holder and
/// its successor that do the same work send two requests with different keys, and both count. If the work has an identity
/// of its own, such as the number of an invoice, make the key from that instead: then the second request is dropped, too.
///
/// # Format
///
/// `NAME=TOKEN.SEQUENCE`, where `NAME=TOKEN` is the text of the [`FencingToken`]: printable ASCII, at most
/// [`MAX_BYTES`](Self::MAX_BYTES). If the encoded name has more than 26 bytes, it is replaced by `/` and the first 25
/// characters (150 bits) of the unpadded URL-safe Base64 of its SHA-256. No name begins with `/`, so the two forms have no
/// key in common. The format is stable: another version makes the same key.
///
/// ```
/// use tenure::fence::{FencingToken, IdempotencyKey};
///
/// let token: FencingToken = "billing/nightly=1762000000000001".parse()?;
/// assert_eq!(IdempotencyKey::new(&token, 42).as_str(), "billing/nightly=1762000000000001.42");
/// # Ok::<(), tenure::fence::FencingTokenError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Maximum length, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// The key of one request under this token. Every request of a term needs a sequence number of its own, and every
    /// repetition of it the same one.
    pub fn new(token: &FencingToken, sequence: u64) -> Self {
        let text = token.to_string();
        let name = text.strip_suffix(&format!("={}", token.token())).unwrap_or(&text);
        if name.len() <= MAX_NAME {
            return Self(format!("{text}.{sequence}"));
        }
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(token.name().as_str()));
        Self(format!("/{}={}.{sequence}", &hash[..HASH], token.token()))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for IdempotencyKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<IdempotencyKey> for String {
    fn from(key: IdempotencyKey) -> Self {
        key.0
    }
}

/// Longest encoded name that is written out. A token has at most 16 digits and a sequence number 20; two bytes separate
/// them.
const MAX_NAME: usize = IdempotencyKey::MAX_BYTES - 16 - 20 - 2;

/// Characters of the hash. `/` is before them.
const HASH: usize = MAX_NAME - 1;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use tenure_core::Token;
    use tenure_store::Key;

    use super::*;

    fn token(name: &str, number: u64) -> FencingToken {
        FencingToken::new(Key::parse(name).unwrap(), Token::new(number).unwrap()).unwrap()
    }

    #[test]
    fn the_format_is_stable() {
        for (name, expected) in [
            ("billing/nightly", "billing/nightly=7.42"),
            ("grün", "gr%C3%BCn=7.42"),
            ("a=7.1", "a=7.1=7.42"),
            ("exactly-26-characters-long", "exactly-26-characters-long=7.42"),
            ("this-has-27-characters-long", "/GC_bOQS6KyAD6G5-KBXx4i4lq=7.42"),
        ] {
            assert_eq!(IdempotencyKey::new(&token(name, 7), 42).as_str(), expected);
        }
    }

    #[test]
    fn the_longest_key_has_64_bytes() {
        for name in ["x".repeat(26), "x".repeat(200), "ü".repeat(100)] {
            let key = IdempotencyKey::new(&token(&name, Token::MAX.get()), u64::MAX);
            assert_eq!(key.as_str().len(), IdempotencyKey::MAX_BYTES);
        }
    }

    proptest! {
        #[test]
        fn different_requests_have_different_keys(
            requests in prop::collection::hash_set(("[ab=./0-9]{1,4}|[ab=./]{26,28}", 1..30_u64, 0..30_u64), 2..200)
        ) {
            let mut keys = HashMap::new();
            for (name, number, sequence) in requests {
                if Key::parse(&name).is_ok() {
                    let key = IdempotencyKey::new(&token(&name, number), sequence);
                    prop_assert!(key.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
                    prop_assert_eq!(&IdempotencyKey::new(&token(&name, number), sequence), &key);
                    let other = keys.insert(key, (name, number, sequence));
                    prop_assert_eq!(other, None);
                }
            }
        }
    }
}
