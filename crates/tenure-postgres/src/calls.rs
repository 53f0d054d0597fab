use std::sync::atomic::{AtomicU64, Ordering};

/// Number of calls that a store has sent since it was opened. Each is one round trip, except a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Opened connections. Each takes several round trips: for TLS, for the password, and to read the settings of the
    /// server.
    pub connections: u64,
    /// Reads of a key.
    pub reads: u64,
    /// Conditional writes.
    pub writes: u64,
    /// Pages of a listing.
    pub pages: u64,
    /// Everything else: the creation of tables, and deletions of Tenure's own keys.
    pub others: u64,
}

/// The counters behind [`Calls`].
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    pub(crate) connections: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) pages: AtomicU64,
    pub(crate) others: AtomicU64,
}

impl CallCounters {
    pub(crate) fn calls(&self) -> Calls {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Calls {
            connections: read(&self.connections),
            reads: read(&self.reads),
            writes: read(&self.writes),
            pages: read(&self.pages),
            others: read(&self.others),
        }
    }
}

/// Counts one call.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
