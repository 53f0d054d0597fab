use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{Event, Purpose};
use tenure_core::{Holder, Token};
use tenure_store::Key;

/// Sees every attempt on the store and every grant, renewal, risk and loss. Exporters and alerts are built on this.
///
/// It is called on a thread of its own, in order. It may block: then reports wait, and beyond a bound they are
/// [`missed`](Self::missed); the leases do not notice.
pub trait Recorder: fmt::Debug + Send + Sync + 'static {
    /// One call on the store has ended.
    fn attempt(&self, report: &AttemptReport);

    /// Something happened to a lease.
    fn event(&self, report: &EventReport);

    /// So many reports were dropped since the last one, because this recorder was too slow.
    fn missed(&self, count: u64) {
        let _ = count;
    }
}

/// One call on the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttemptReport {
    /// The store, by name.
    pub store: Arc<str>,
    /// The key.
    pub key: Key,
    /// Who made the call.
    pub holder: Arc<Holder>,
    /// The token that was written, if any.
    pub token: Option<Token>,
    /// What the call was for.
    pub operation: Operation,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// What the store said, if it failed.
    pub error: Option<Arc<str>>,
    /// How long it took.
    pub latency: Duration,
}

/// What a call on the store was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// To look.
    Read,
    /// To write.
    Write(Purpose),
}

/// How a call on the store ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// The read was answered.
    Answered,
    /// The write happened.
    Applied,
    /// The key was not what the write expected.
    Conflict,
    /// Nobody knows.
    Unknown,
    /// The store wants it later.
    Throttled,
    /// Certainly nothing happened.
    Refused,
}

/// Something that happened to a lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventReport {
    /// The store, by name.
    pub store: Arc<str>,
    /// The key.
    pub key: Key,
    /// Whose lease.
    pub holder: Arc<Holder>,
    /// The token, once there is one.
    pub token: Option<Token>,
    /// What happened.
    pub event: Event,
}
