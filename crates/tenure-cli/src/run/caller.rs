use nix::sys::signal::{SigHandler, SigSet, Signal};

use super::fork::set_child_action;

/// Attributes of this process that a run changes and that an exec keeps.
///
/// They are the caller's, and CMD gets them. A process that executes itself again for the next run sets them back first,
/// except the signal mask: a signal for CMD that arrives between two runs must not kill this process.
#[derive(Debug)]
pub(crate) struct CallerAttributes {
    mask: Option<SigSet>,
    child_action: Option<SigHandler>,
    nice: Option<i32>,
}

impl CallerAttributes {
    /// The present ones, before a run. `blocked` are the signals that this process has blocked itself, before it executed
    /// itself again.
    pub(crate) fn now(blocked: &[Signal]) -> Self {
        let child_action = set_child_action(SigHandler::SigDfl).ok();
        let mask = SigSet::thread_get_mask().ok().map(|mut mask| {
            blocked.iter().for_each(|signal| mask.remove(*signal));
            mask
        });
        let attributes = Self { mask, child_action, nice: rustix::process::getpriority_process(None).ok() };
        attributes.restore_child_action();
        attributes
    }

    /// The signals that are blocked now, and are not in the caller's mask.
    pub(crate) fn blocked_since(&self) -> Vec<Signal> {
        let (Some(mask), Ok(now)) = (&self.mask, SigSet::thread_get_mask()) else { return Vec::new() };
        now.iter().filter(|signal| !mask.contains(*signal)).collect()
    }

    /// Sets the caller's signal mask, in a child.
    pub(super) fn restore_mask(&self) {
        if let Some(mask) = &self.mask {
            let _ = mask.thread_set_mask();
        }
    }

    /// Sets back all but the signal mask.
    pub(crate) fn restore(&self) {
        self.restore_child_action();
        if let Some(nice) = self.nice {
            let _ = rustix::process::setpriority_process(None, nice);
        }
    }

    fn restore_child_action(&self) {
        if let Some(action) = self.child_action {
            let _ = set_child_action(action);
        }
    }
}
