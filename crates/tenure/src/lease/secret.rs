use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest, Sha256};

/// The secret of a handle, of which the record has only a hash. It has no `Debug`, so that it is not printed by
/// accident.
#[derive(Clone)]
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// A secret of these bytes, which come from the kernel's random number generator.
    pub(crate) const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Hash of the secret, as the record has it.
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
