use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::runtime::Id;
use tokio::task::AbortHandle;
use tokio_postgres::Client;

use super::connected::Connected;
use super::notices::ServerNotices;

/// A connection that several calls use, one after the other, without waiting for each other's answers.
pub(crate) struct OpenConnection {
    pub(super) client: Client,
    notices: Arc<ServerNotices>,
    driver: AbortHandle,
    /// The runtime that drives the connection.
    runtime: Id,
    /// Calls in flight that may wait for a lock, and everything behind them waits, too.
    waiting: AtomicUsize,
    /// All calls in flight.
    calls: AtomicUsize,
    /// True if a call was given up: the server may be stopped, and no other call may wait behind it.
    suspect: AtomicBool,
}

impl OpenConnection {
    pub(super) fn new(connected: Connected, runtime: Id) -> Self {
        let Connected { client, notices, driver, .. } = connected;
        Self {
            client,
            notices,
            driver: driver.abort_handle(),
            runtime,
            waiting: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            suspect: AtomicBool::new(false),
        }
    }

    /// True if a call on this runtime may use the connection.
    pub(super) fn is_usable(&self, runtime: Id) -> bool {
        self.runtime == runtime && !self.is_lost()
    }

    /// True if no call may use the connection any more.
    pub(super) fn is_lost(&self) -> bool {
        self.suspect.load(Ordering::Relaxed) || self.client.is_closed()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.calls.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn notices(&self) -> &ServerNotices {
        &self.notices
    }

    pub(super) fn begin(&self, may_wait: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.waiting.fetch_add(usize::from(may_wait), Ordering::Relaxed);
    }

    /// Ends a call. Without an answer, no other call uses the connection.
    pub(super) fn end(&self, may_wait: bool, is_answered: bool) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
        self.waiting.fetch_sub(usize::from(may_wait), Ordering::Relaxed);
        if !is_answered {
            self.suspect.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // A good connection says goodbye by itself. A stopped server would keep the driver waiting for its answers.
        if self.suspect.load(Ordering::Relaxed) {
            self.driver.abort();
        }
    }
}
