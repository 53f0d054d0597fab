use std::sync::Arc;
use std::time::Duration;

/// The run of a server, as a participant saw it when it opened a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunSighting {
    /// Id of the run.
    pub run: Arc<str>,
    /// Name of the clock of `at`: times of another clock cannot be compared. On Linux, the boot id and the time
    /// namespace.
    pub clock: Arc<str>,
    /// Time on that clock *after* the answer that showed the run: the run had started by then, and every earlier run had
    /// ended.
    pub at: Duration,
    /// Time for which the server says it has run. It is by the server's wall clock, so it proves nothing.
    pub uptime: Option<Duration>,
}

impl RunSighting {
    /// A sighting of a server that does not say for how long it has run.
    pub fn new(run: impl Into<Arc<str>>, clock: impl Into<Arc<str>>, at: Duration) -> Self {
        Self { run: run.into(), clock: clock.into(), at, uptime: None }
    }

    /// Sets the time for which the server says it has run.
    #[must_use]
    pub fn with_uptime(self, uptime: Duration) -> Self {
        Self { uptime: Some(uptime), ..self }
    }
}
