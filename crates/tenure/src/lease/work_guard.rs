use std::sync::Arc;

use tenure_core::record::Unstoppable;

use super::Lease;
use crate::Error;
use crate::keeper::{Command, HeldLease, KeeperHandle, LeaseId};

/// Work under a lease that [`Lease::run`] cannot see: a child process, a thread, or work on another machine.
///
/// As long as the guard exists, the lease is not vacated. After a loss, the next holder waits for the complete old ttl.
/// The guard does not keep the lease held. Drop it when the work has ended.
///
/// ```no_run
/// # async fn example(lease: &tenure::Lease) -> Result<(), Box<dyn std::error::Error>> {
/// let acting = lease.work_guard()?;
/// let mut child = std::process::Command::new("backup").spawn()?;
/// let why = lease.lost().await;
/// child.kill()?;
/// child.wait()?;
/// drop(acting); // only now may the record say that it is vacant
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
        // Counted in first, then checked: either this sees the loss, or the latching thread sees the work.
        acting.shared.begin_work();
        if acting.shared.is_held() { Ok(acting) } else { Err(acting.shared.lost_error()) }
    }

    /// Declares that the work cannot be stopped, and why: for example, a process of another user that may not be
    /// signalled.
    ///
    /// The record says so from then on, and a contender that tries to revoke the lease gets that answer instead. After
    /// the belief has ended for any cause but the grant of another holder, the keeper keeps renewing the record without
    /// belief until the guard is dropped. It does so as long as the store allows it and the record belongs to this
    /// term. So no contender is granted while the work runs. The belief never comes back.
    ///
    /// May be called at any time, also after the loss, and repeatedly: the first reason stays. A reason has at most 200
    /// bytes on one line; the rest is cut off.
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
