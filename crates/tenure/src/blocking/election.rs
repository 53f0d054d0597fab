use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Holder, Timing};
use tenure_store::Key;

use super::Campaign;
use crate::Error;

/// An election, for blocking threads: see [`tenure::Election`](crate::Election). Cheap to clone.
///
/// ```
/// use tenure::blocking::Coordinator;
/// use tenure::store::Memory;
///
/// # fn main() -> Result<(), tenure::Error> {
/// let coordinator = Coordinator::connect(Memory::new())?;
/// let election = coordinator.election("billing")?;
/// let mut campaign = election.campaign()?;
/// let term = campaign.next()?; // blocks until this node leads
/// assert!(election.is_leader());
/// term.check()?; // at the top of every step
/// term.resign()
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until its campaign is used"]
pub struct Election(pub(super) crate::Election);

impl Election {
    same! { choices of Election:
        ttl(ttl: Duration);
        timing(timing: Timing);
        holder(holder: Holder);
        value(value: &str);
        strict();
    }

    /// Couples leadership to the health of this node: see [`Election::health_check`](crate::Election::health_check).
    pub fn health_check(self, limit: Duration, check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(self.0.health_check(limit, check))
    }

    /// A campaign of this node. Fails if the durations or the value cannot be used on this store.
    pub fn campaign(&self) -> Result<Campaign, Error> {
        self.0.campaign().map(Campaign)
    }

    same! { answers of Election:
        name() -> &Key;
        is_leader() -> bool;
        last_error() -> Option<Arc<str>>;
    }

    same! { waits of Election:
        resign() -> Result<bool, Error>;
    }
}
