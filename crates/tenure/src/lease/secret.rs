use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest, Sha256};

/// What the holder of a handle knows and the record does not tell. Never shown but on purpose, so it has no `Debug`.
#[derive(Clone)]
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// A secret of these bytes, which come from the kernel's randomness.
    pub(crate) const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What the record has of it.
    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }

    pub(super) fn reveal(&self) -> String {
        BASE64.encode(self.0)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        BASE64.decode(text).ok()?.try_into().ok().map(Self)
    }
}
