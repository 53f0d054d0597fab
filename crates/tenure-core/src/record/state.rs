use std::sync::Arc;

use super::Nonce;

/// State of a key, as its record says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// No holder.
    Vacant,
    /// The holder of the current term holds it, until this version runs out.
    Held,
    /// No holder, and only the named successor may be granted until this version runs out.
    Reserved(Arc<str>),
    /// A stealer has asked the holder to release. The key counts as held until the holder acknowledges by vacating,
    /// this version runs out, or the witness shows that no process acts any more.
    Revoked(Arc<Revocation>),
    /// The key is retired and is never granted again.
    Closed(Arc<Closure>),
}

/// The request to a holder to release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Revocation {
    /// The process that asks.
    pub by: Arc<str>,
    /// The stated reason.
    pub because: Arc<str>,
    /// The nonce of the holder's last write, which its witness lists.
    pub nonce: Nonce,
}

/// The retirement of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closure {
    /// The process that retired it.
    pub by: Arc<str>,
    /// The stated reason.
    pub because: Arc<str>,
}

impl Revocation {
    /// A request by `by` for this reason. `nonce` is that of the holder's last write.
    pub fn new(by: impl Into<Arc<str>>, because: impl Into<Arc<str>>, nonce: Nonce) -> Self {
        Self { by: by.into(), because: because.into(), nonce }
    }
}

impl Closure {
    /// A retirement by `by` for this reason.
    pub fn new(by: impl Into<Arc<str>>, because: impl Into<Arc<str>>) -> Self {
        Self { by: by.into(), because: because.into() }
    }
}
