//! Messages that carry the token, for any broker.
//!
//! The publisher puts the token of its lease into the message header `Fencing-Token`. The consumer takes it out, and offers
//! it to a [`Gate`](crate::fence::Gate) before it acts on the message. The broker checks nothing.
//!
//! ```
//! use std::collections::HashMap;
//!
//! use tenure::fence::{Gate, message};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let coordinator = tenure::Coordinator::connect(tenure::store::Memory::new()).await?;
//! # let lease = coordinator.lease("billing/nightly")?.acquire().await?;
//! // The publisher, for each message.
//! let mut headers = HashMap::new();
//! let (name, value) = message::header(&lease)?;
//! headers.insert(name, value);
//!
//! // The consumer.
//! let gate = Gate::new("the consumer of orders", "billing/nightly".parse()?);
//! let token = message::token(headers.get(message::HEADER))?;
//! let pass = gate.enter(&token).await?;
//! // Act on the message, and drop the pass then.
//! # drop(pass);
//! # Ok(()) }
//! ```
//!
//! **What this gives.** After the consumer has acted on a message of a newer holder, it acts on none of an earlier holder.
//! That holds also for messages that an earlier holder sent while it held the lease, if the broker delivers them later,
//! such as a redelivery. The newer holder must know what was done, and not what was sent.
//!
//! **Several consumers** of one subject or topic, each with its own gate, do not see each other's tokens. Either one
//! consumer receives all messages of a lease, or the resource that they write has a fence of its own.

mod token_header_error;

pub use token_header_error::TokenHeaderError;

use super::FencingToken;
use crate::{Error, Lease};

/// Name of the header. Brokers compare the names of headers by case: write it like this.
pub const HEADER: &str = "Fencing-Token";

/// Name and value of the header for the next message, after a check that the lease is still held. A lost lease gives no
/// header: send nothing.
pub fn header(lease: &Lease) -> Result<(&'static str, String), Error> {
    lease.check()?;
    Ok((HEADER, lease.fencing_token().to_string()))
}

/// The token of a message, from all values of its header `Fencing-Token`. There must be exactly one.
pub fn token<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Result<FencingToken, TokenHeaderError> {
    let mut values = values.into_iter();
    let value = values.next().ok_or(TokenHeaderError::Missing)?;
    if values.next().is_some() {
        return Err(TokenHeaderError::Several);
    }
    let bytes = value.as_ref();
    // Intermediaries join several headers of one name with commas. In a token, a comma is percent-encoded.
    if bytes.contains(&b',') {
        return Err(TokenHeaderError::Several);
    }
    let text = str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let text = text.ok_or_else(|| {
        let start = String::from_utf8_lossy(bytes).chars().take(80).collect();
        TokenHeaderError::NotPrintable(start)
    })?;
    Ok(text.parse::<FencingToken>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_the_token() {
        assert_eq!(token(["billing/nightly=7"]).unwrap().to_string(), "billing/nightly=7");
        assert_eq!(token([b"gr%C3%BCn=7"]).unwrap().name().as_str(), "grün");
    }

    #[test]
    fn no_value_several_values_and_joined_values_are_refused() {
        assert_eq!(token::<&str>([]), Err(TokenHeaderError::Missing));
        assert_eq!(token(["billing=7", "billing=7"]), Err(TokenHeaderError::Several));
        // Without this rule, the name of the lease would be `billing=7, billing`.
        assert_eq!(token(["billing=7, billing=9"]), Err(TokenHeaderError::Several));
        assert_eq!(token(["billing=7,payroll=9"]), Err(TokenHeaderError::Several));
    }

    #[test]
    fn a_value_that_is_no_token_is_refused_with_its_reason() {
        for bytes in [&b""[..], b"billing", b"billing=0", b"billing=x", b"billing=99999999999999999"] {
            assert!(matches!(token([bytes]), Err(TokenHeaderError::NoToken(_))), "{bytes:?}");
        }
        for bytes in [&b"gr\xc3\xbcn=7"[..], b"\xff=7", b"billing = 7", b"billing=7\n"] {
            assert!(matches!(token([bytes]), Err(TokenHeaderError::NotPrintable(_))), "{bytes:?}");
        }
    }
}
