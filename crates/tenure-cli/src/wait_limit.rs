use std::future::pending;
use std::time::Duration;

use tenure::clock::{BootClock, Clock, Instant};

use crate::duration;

/// Limit of the wait for a lease. It counts from the start of the command, so connecting to the store is part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitLimit {
    began: Instant,
    limit: Option<Duration>,
}

impl WaitLimit {
    /// Begins to count. `None` means no limit; zero means no wait for another holder, and does not limit any call.
    pub(crate) fn from_now(limit: Option<Duration>) -> Self {
        Self { began: BootClock::new().now(), limit }
    }

    /// The limit as the user gave it; `None` means no limit.
    pub(crate) fn given(&self) -> Option<Duration> {
        self.limit
    }

    /// The limit in words.
    pub(crate) fn words(&self) -> String {
        words(self.limit)
    }

    /// True if the command waits while another holder has the lease.
    pub(crate) fn allows_waiting(&self) -> bool {
        self.limit != Some(Duration::ZERO)
    }

    /// True if there is no time left.
    pub(crate) fn is_over(&self) -> bool {
        self.remaining() == Some(Duration::ZERO)
    }

    /// Time left; `None` means no limit.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let elapsed = BootClock::new().now().since(self.began);
        self.limit.map(|limit| limit.saturating_sub(elapsed))
    }

    /// Completes with the limit when the wait is over, and never if there is no limit or no wait.
    pub(crate) async fn over(&self) -> Duration {
        match self.limit.filter(|limit| !limit.is_zero()) {
            Some(limit) => {
                BootClock::new().sleep_until(self.began + limit).await;
                limit
            }
            None => pending().await,
        }
    }
}

/// A limit of a wait in words; `None` means no limit.
pub(crate) fn words(limit: Option<Duration>) -> String {
    match limit {
        Some(limit) => format!("for at most {}", duration::exact(limit)),
        None => "without limit".to_owned(),
    }
}
