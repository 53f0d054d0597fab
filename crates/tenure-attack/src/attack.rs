use std::fmt;
use std::time::Duration;

use crate::arena::Arena;
use crate::verdict::AttackOutcome;

/// One attack, and the promise that it tests.
pub(crate) struct Attack {
    /// `family/event`.
    pub(crate) name: String,
    /// Promise of the README or the documentation, in one sentence.
    pub(crate) promise: &'static str,
    pub(crate) limit: Duration,
    pub(crate) company: Company,
    pub(crate) run: Box<dyn Fn(&Arena) -> AttackOutcome + Send + Sync>,
}

/// Decides if other attacks run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Others,
    /// The attack needs all processors.
    Alone,
}

impl Attack {
    pub(crate) fn new(
        name: impl Into<String>,
        promise: &'static str,
        run: impl Fn(&Arena) -> AttackOutcome + Send + Sync + 'static,
    ) -> Self {
        let limit = Duration::from_secs(40);
        Self { name: name.into(), promise, limit, company: Company::Others, run: Box::new(run) }
    }

    /// Replaces the default limit of 40 seconds.
    pub(crate) fn seconds(mut self, limit: u64) -> Self {
        self.limit = Duration::from_secs(limit);
        self
    }

    /// Runs the attack by itself, after those that run in parallel.
    pub(crate) fn alone(mut self) -> Self {
        self.company = Company::Alone;
        self
    }
}

impl fmt::Debug for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
