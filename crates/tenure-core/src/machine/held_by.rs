use std::sync::Arc;
use std::time::Duration;

use super::Remaining;
use crate::Token;
use crate::record::{Record, State};

/// The holder of a lease that was not granted, as the contender saw it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HeldBy {
    /// The record of the lease.
    pub record: Arc<Record>,
    /// Longest remaining time from the moment of the answer, unless the holder renews.
    pub remaining: Remaining,
}

impl HeldBy {
    /// The holder of a record that has run out while its work still runs.
    pub(super) fn outlived(record: &Arc<Record>) -> Self {
        Self { record: Arc::clone(record), remaining: Remaining::new(Duration::ZERO, true) }
    }

    /// The name of the holder, or of the successor for which the lease is reserved.
    pub fn holder(&self) -> &str {
        match (&self.record.state, &self.record.holder) {
            (State::Reserved(successor), _) => successor,
            (_, Some(holder)) => holder.id(),
            (_, None) => "another holder",
        }
    }

    /// The token of the holder.
    pub fn token(&self) -> Token {
        self.record.token
    }
}
