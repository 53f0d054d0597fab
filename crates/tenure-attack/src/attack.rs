use std::fmt;
use std::time::Duration;

use crate::arena::Arena;
use crate::verdict::AttackOutcome;

/// One attack: the promise that it tests, and how.
pub(crate) struct Attack {
    /// `family/what happens`.
    pub(crate) name: String,
    /// The promise of README or the documentation, in one sentence.
    pub(crate) promise: &'static str,
    pub(crate) limit: Duration,
    pub(crate) company: Company,
    pub(crate) run: Box<dyn Fn(&Arena) -> AttackOutcome + Send + Sync>,
}

/// Whether other attacks run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Others,
    /// It needs the processors for itself.
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

    /// Gives it another limit than 40 seconds.
    pub(crate) fn seconds(mut self, limit: u64) -> Self {
        self.limit = Duration::from_secs(limit);
        self
    }

    /// Runs it after all others, by itself.
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
