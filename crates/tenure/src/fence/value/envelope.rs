use bytes::Bytes;
use tenure_core::record;

use super::{Header, ValueFlaw};

/// A fenced value as it is stored: one line of JSON, and the content.
///
/// The mark is in the body, and not in metadata of the object. The version of an object in S3 is the MD5 of its body, and
/// metadata does not change it: equal content would give an equal version, and the conditional write of a stale holder
/// that saw this version before would pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueEnvelope {
    pub(super) header: Header,
    pub(super) content: Bytes,
}

impl ValueEnvelope {
    pub(super) fn encode(&self) -> Bytes {
        let mut bytes = self.header.encode();
        debug_assert!(bytes.len() <= Header::MAX_BYTES, "the limits of the fields keep it shorter");
        bytes.extend_from_slice(&self.content);
        bytes.into()
    }

    pub(super) fn decode(bytes: &Bytes) -> Result<Self, ValueFlaw> {
        let searched = &bytes[..bytes.len().min(Header::MAX_BYTES)];
        let Some(end) = searched.iter().position(|byte| *byte == b'\n') else {
            return Err(Self::foreign(bytes));
        };
        let header = Header::decode(&bytes[..end]).map_err(|flaw| match flaw {
            ValueFlaw::NotOurs => Self::foreign(bytes),
            flaw => flaw,
        })?;
        let content = bytes.slice(end + 1..);
        if content.len() != header.length {
            return Err(ValueFlaw::Length { says: header.length, has: content.len() });
        }
        Ok(Self { header, content })
    }

    /// The flaw of bytes that are no fenced value.
    fn foreign(bytes: &Bytes) -> ValueFlaw {
        if record::decode(bytes).is_ok() { ValueFlaw::Record } else { ValueFlaw::NotOurs }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tenure_core::Token;
    use tenure_core::record::{Nonce, Record};
    use tenure_fence::FencingToken;
    use tenure_store::Key;

    use super::*;
    use crate::clock::WallTime;

    fn mark(text: &str) -> FencingToken {
        text.parse().unwrap()
    }

    fn envelope(content: &str) -> ValueEnvelope {
        let token = mark("billing/nightly=7");
        let header =
            Header::after(None, token.clone(), Some(token.token()), Nonce::from_bits(5), content.len());
        ValueEnvelope { header, content: Bytes::copy_from_slice(content.as_bytes()) }
    }

    #[test]
    fn the_format_is_one_line_of_json_and_the_content() {
        let first = envelope("a,b\n1,2\n");
        let text = String::from_utf8(first.encode().to_vec()).unwrap();
        assert_eq!(
            text,
            "{\"format\":\"tenure-fenced-value\",\"version\":1,\"lease\":\"billing/nightly\",\"token\":7,\"written\":7,\
             \"sequence\":1,\"nonce\":\"00000000000000000000000000000005\",\"before\":[],\"length\":8}\na,b\n1,2\n"
        );
        assert_eq!(ValueEnvelope::decode(&first.encode()).unwrap(), first);
    }

    #[test]
    fn a_header_shows_the_nonces_of_the_last_nine_writes() {
        let mut header = envelope("").header;
        for nonce in 6..=20 {
            header =
                Header::after(Some(&header), header.mark.clone(), header.written, Nonce::from_bits(nonce), 0);
        }
        assert_eq!(header.sequence, 16);
        for sequence in 8..=16 {
            assert_eq!(header.nonce_of(sequence), Some(Nonce::from_bits(u128::from(sequence) + 4)));
        }
        assert_eq!((header.nonce_of(7), header.nonce_of(17)), (None, None));
        let stored = ValueEnvelope { header, content: Bytes::new() };
        assert_eq!(ValueEnvelope::decode(&stored.encode()).unwrap(), stored);
    }

    #[test]
    fn the_longest_header_is_within_the_limit() {
        let lease = Key::parse(&"\"".repeat(Key::MAX_BYTES)).unwrap();
        let token = FencingToken::new(lease, Token::MAX).unwrap();
        let nonce = Nonce::from_bits(u128::MAX);
        let (written, length) = (Some(Token::MAX), usize::MAX);
        let mut header = Header::after(None, token.clone(), written, nonce, length);
        header.sequence = (1 << 53) - 20;
        for _ in 0..10 {
            header = Header::after(Some(&header), token.clone(), written, nonce, length);
        }
        assert!(header.encode().len() <= Header::MAX_BYTES, "{}", header.encode().len());
    }

    #[test]
    fn foreign_bytes_are_no_fenced_value_each_with_its_reason() {
        let good = String::from_utf8(envelope("content").encode().to_vec()).unwrap();
        let flaw = |text: &str| ValueEnvelope::decode(&Bytes::copy_from_slice(text.as_bytes())).unwrap_err();
        for foreign in ["", "\n", "a,b\n1,2\n", "{}\n", "{\"format\":\"x\",\"version\":1}\n", "[]\n"] {
            assert_eq!(flaw(foreign), ValueFlaw::NotOurs, "{foreign:?}");
        }
        assert_eq!(flaw(&good.replace("\"version\":1", "\"version\":2,\"new\":[]")), ValueFlaw::Later(2));
        for (from, to) in [
            ("\"version\":1", "\"version\":1,\"more\":0"),
            ("\"token\":7", "\"token\":0"),
            ("\"token\":7", "\"token\":-1"),
            ("\"written\":7", "\"written\":8"),
            ("\"written\":7", "\"written\":null"),
            ("\"sequence\":1", "\"sequence\":0"),
            ("\"sequence\":1", "\"sequence\":9007199254740992"),
            ("\"before\":[]", "\"before\":[\"00000000000000000000000000000005\"]"),
            ("0000000005", "5"),
            ("billing/nightly", "../x"),
            ("\"lease\"", "\"token\":7,\"lease\""),
        ] {
            assert_eq!(flaw(&good.replace(from, to)), ValueFlaw::Malformed, "{from} {to}");
        }
        assert_eq!(flaw(&good[..good.len() - 1]), ValueFlaw::Length { says: 7, has: 6 });
        assert_eq!(flaw(&format!("{good}x")), ValueFlaw::Length { says: 7, has: 8 });
        let record = Record::new(Token::new(7).unwrap(), Nonce::from_bits(1), WallTime::default());
        assert_eq!(ValueEnvelope::decode(&record::encode(&record)).unwrap_err(), ValueFlaw::Record);
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
            let _ = ValueEnvelope::decode(&bytes.into());
        }

        #[test]
        fn no_change_of_one_byte_is_taken_for_another_mark(at in 0_usize..300, to in any::<u8>()) {
            let good = envelope("content");
            let mut bytes = good.encode().to_vec();
            if at < bytes.len() {
                bytes[at] = to;
            }
            if let Ok(read) = ValueEnvelope::decode(&bytes.into()) {
                prop_assert!(read.header.length == read.content.len());
            }
        }
    }
}
