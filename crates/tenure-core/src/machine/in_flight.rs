use std::sync::Arc;

use tenure_store::{Expect, Version};

use super::{Attempt, Outcome};
use crate::record::Record;
use crate::{Instant, Token};

/// The one pending call, with the greatest token that had been seen when it was sent.
#[derive(Debug)]
pub(crate) enum InFlight {
    Read { sent: Instant, highest: Token },
    Write(SentWrite),
}

/// A write that was sent.
#[derive(Debug)]
pub(crate) struct SentWrite {
    pub(crate) attempt: Attempt,
    pub(crate) record: Arc<Record>,
    pub(crate) expect: Expect,
    pub(crate) highest: Token,
}

/// A write, and the answer to it.
pub(crate) type Answered = (SentWrite, Outcome);

impl SentWrite {
    /// The version that it left behind. Only a wrong rule reaches this without one.
    pub(crate) fn landed_version(&self, outcome: &Outcome) -> Version {
        match (outcome, &self.expect) {
            (Outcome::Applied { version, .. }, _) | (_, Expect::Version(version)) => version.clone(),
            (_, Expect::Absent) => Version::new("absent"),
        }
    }
}
