use std::sync::Arc;

use super::Nonce;

/// What a record says about its key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Nobody holds the key.
    Vacant,
    /// The holder of the current term holds it, until this version runs out.
    Held,
    /// Nobody holds it, and until this version runs out only the named successor may be granted.
    Reserved(Arc<str>),
    /// Somebody asked the holder to let go. It counts as held until the holder acknowledges by vacating, this version
    /// runs out, or the witness shows that nobody acts any more.
    Revoked(Arc<Revocation>),
    /// The key is retired on purpose and is never granted again.
    Closed(Arc<Closure>),
}

/// Who asks the holder to let go, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Revocation {
    /// Who asks.
    pub by: Arc<str>,
    /// Why.
    pub because: Arc<str>,
    /// The nonce of the holder's last write, which its witness lists.
    pub nonce: Nonce,
}

/// Who retired a key, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closure {
    /// Who.
    pub by: Arc<str>,
    /// Why.
    pub because: Arc<str>,
}

impl Revocation {
    /// Somebody asks, and says why. `nonce` is that of the holder's last write.
    pub fn new(by: impl Into<Arc<str>>, because: impl Into<Arc<str>>, nonce: Nonce) -> Self {
        Self { by: by.into(), because: because.into(), nonce }
    }
}

impl Closure {
    /// Somebody retires the key, and says why.
    pub fn new(by: impl Into<Arc<str>>, because: impl Into<Arc<str>>) -> Self {
        Self { by: by.into(), because: because.into() }
    }
}
