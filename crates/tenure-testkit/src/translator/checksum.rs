//! CRC-32C, a checksum of content that Google and S3 use.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// The checksum as both write it: the four bytes, most significant first, in base64.
pub(crate) fn crc32c(content: &[u8]) -> String {
    let sum = content.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (POLYNOMIAL * (sum & 1)))
    });
    BASE64_STANDARD.encode((!sum).to_be_bytes())
}

/// Castagnoli's, reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

#[cfg(test)]
mod tests {
    #[test]
    fn a_checksum_is_the_one_that_google_documents() {
        assert_eq!(super::crc32c(b"hello"), "mnG7TA==");
    }
}
