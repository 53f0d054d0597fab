use std::sync::Arc;

use tenure_core::record::Unstoppable;

use super::Lease;
use crate::Error;
use crate::keeper::{Command, HeldLease, KeeperHandle, LeaseId};

/// Somebody acts under a lease, where [`Lease::run`] cannot see it: a child process, a thread, another machine's work.
///
/// As long as it lives the lease is not vacated, whatever else happens: after a loss, the next holder waits for the old
/// ttl to run out, and not for less. It does not keep the lease held. Drop it when nobody acts any more.
///
/// ```no_run
/// # async fn example(lease: &tenure::Lease) -> Result<(), Box<dyn std::error::Error>> {
/// let acting = lease.work_guard()?;
/// let mut child = std::process::Command::new("backup").spawn()?;
/// let why = lease.lost().await;
/// child.kill()?;
/// child.wait()?;
/// drop(acting); // only now may the record say that nobody holds it
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "when it is dropped, the lease may be vacated"]
pub struct WorkGuard {
    id: LeaseId,
    keeper: KeeperHandle,
    shared: Arc<HeldLease>,
}

impl WorkGuard {
    pub(super) fn begin(lease: &Lease) -> Result<Self, Error> {
        let acting = Self { id: lease.id, keeper: lease.keeper.clone(), shared: Arc::clone(&lease.shared) };
        // First counted in, then looked at: either this sees the loss, or whoever latched it sees the work.
        acting.shared.begin_work();
        if acting.shared.is_held() { Ok(acting) } else { Err(acting.shared.lost_error()) }
    }

    /// Says that the work cannot be stopped, such as a process of another user that may not be signalled, and why.
    ///
    /// The record says so from now on, and a stealer that asks is told instead of revoking the lease. When belief is over,
    /// for whatever reason but that another holder was granted, the keeper goes on renewing the record without belief until
    /// this is dropped, as long as the store allows it and the record is still that of this term. So no contender is granted
    /// while the work goes on. Belief never comes back.
    ///
    /// It may be called at any time, also after the loss, and again: the first reason stays. A reason has at most 200 bytes
    /// on one line; what is more is cut off.
    pub fn cannot_stop(&self, because: &str) {
        self.keeper.send(Command::CannotStop { id: self.id, because: Unstoppable::reason(because) });
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        if self.shared.end_work() {
            self.keeper.send(Command::Drained { id: self.id });
        }
    }
}
