use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::Purpose;
use tenure_core::{Holder, Token};
use tenure_store::Key;

use super::Event;

/// Receives a report of every call on the store, and of every grant, renewal, risk and loss. Exporters and alerts build
/// on it.
///
/// Calls come in order, on a separate thread. The recorder may block: reports then wait, and are
/// [`missed`](Self::missed) beyond a bound. Leases are not affected.
pub trait Recorder: fmt::Debug + Send + Sync + 'static {
    /// A call on the store has completed.
    fn attempt(&self, report: &AttemptReport);

    /// An event of a lease.
    fn event(&self, report: &EventReport);

    /// Number of reports that were dropped since the last one, because this recorder was too slow.
    fn missed(&self, count: u64) {
        let _ = count;
    }
}

/// One call on the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttemptReport {
    /// Name of the store.
    pub store: Arc<str>,
    /// The key.
    pub key: Key,
    /// The holder or contender that made the call.
    pub holder: Arc<Holder>,
    /// The token that was written, if any.
    pub token: Option<Token>,
    /// Purpose of the call.
    pub operation: Operation,
    /// Outcome of the call.
    pub outcome: AttemptOutcome,
    /// Error of the store, if the call failed.
    pub error: Option<Arc<str>>,
    /// Duration of the call.
    pub latency: Duration,
}

/// Purpose of a call on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A read.
    Read,
    /// A write.
    Write(Purpose),
}

/// Outcome of a call on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// The read was answered.
    Answered,
    /// The write was applied.
    Applied,
    /// The entry was not what the write expected.
    Conflict,
    /// The write may have been applied, or may be yet.
    Unknown,
    /// The store asks for patience.
    Throttled,
    /// The call certainly had no effect.
    Refused,
}

/// An event of a lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventReport {
    /// Name of the store.
    pub store: Arc<str>,
    /// The key.
    pub key: Key,
    /// The holder or contender.
    pub holder: Arc<Holder>,
    /// The token, once granted.
    pub token: Option<Token>,
    /// The event.
    pub event: Event,
}
