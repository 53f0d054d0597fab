use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A health check, and the longest time for which a leader may fail it.
#[derive(Clone)]
pub(super) struct HealthCheck {
    pub(super) limit: Duration,
    pub(super) check: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthCheck").field("limit", &self.limit).finish_non_exhaustive()
    }
}
