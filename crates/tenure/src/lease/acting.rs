use std::sync::Arc;

use super::Lease;
use super::shared::Shared;
use crate::Error;
use crate::drive::{Command, KeeperHandle, LeaseId};

/// Somebody acts under a lease, where [`Lease::run`] cannot see it: a child process, a thread, another machine's work.
///
/// As long as it lives the lease is not vacated, whatever else happens: after a loss, the next holder waits for the old
/// ttl to run out, and not for less. It does not keep the lease held. Drop it when nobody acts any more.
///
/// ```no_run
/// # async fn example(lease: &tenure::Lease) -> Result<(), Box<dyn std::error::Error>> {
/// let acting = lease.acting()?;
/// let mut child = std::process::Command::new("backup").spawn()?;
/// let why = lease.lost().await;
/// child.kill()?;
/// child.wait()?;
/// drop(acting); // only now may the record say that nobody holds it
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "when it is dropped, the lease may be vacated"]
pub struct Acting {
    id: LeaseId,
    keeper: KeeperHandle,
    shared: Arc<Shared>,
}

impl Acting {
    pub(super) fn begin(lease: &Lease) -> Result<Self, Error> {
        let acting = Self { id: lease.id, keeper: lease.keeper.clone(), shared: Arc::clone(&lease.shared) };
        // First counted in, then looked at: either this sees the loss, or whoever latched it sees the work.
        acting.shared.begin_work();
        if acting.shared.is_held() { Ok(acting) } else { Err(acting.shared.lost_error()) }
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        if self.shared.end_work() {
            self.keeper.send(Command::Drained { id: self.id });
        }
    }
}
