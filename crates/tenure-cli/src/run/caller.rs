use nix::sys::signal::{SigHandler, SigSet};

use super::fork::set_child_action;

/// Attributes of this process that a run changes and that an exec keeps.
///
/// They are the caller's, and CMD gets them. A process that executes itself again for the next run sets them back first.
#[derive(Debug)]
pub(crate) struct CallerAttributes {
    mask: Option<SigSet>,
    child_action: Option<SigHandler>,
    nice: Option<i32>,
}

impl CallerAttributes {
    /// The present ones, before a run.
    pub(crate) fn now() -> Self {
        let child_action = set_child_action(SigHandler::SigDfl).ok();
        let attributes = Self {
            mask: SigSet::thread_get_mask().ok(),
            child_action,
            nice: rustix::process::getpriority_process(None).ok(),
        };
        attributes.restore_child_action();
        attributes
    }

    /// Sets them back. A signal that is pending takes effect.
    pub(crate) fn restore(&self) {
        self.restore_child_action();
        if let Some(nice) = self.nice {
            let _ = rustix::process::setpriority_process(None, nice);
        }
        if let Some(mask) = &self.mask {
            let _ = mask.thread_set_mask();
        }
    }

    fn restore_child_action(&self) {
        if let Some(action) = self.child_action {
            let _ = set_child_action(action);
        }
    }
}
