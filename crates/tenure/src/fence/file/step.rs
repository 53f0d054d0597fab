//! The steps of a fenced write. Tests end the process at each of them, or let it fail.

use rustix::io::Errno;

/// A point between two calls of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Before the new content is written beside the file.
    WriteBeside,
    /// Before the new content is put on the disk.
    SyncBeside,
    /// Before a new mark gets its name.
    NameMark,
    /// The lock is held, and the token is admitted.
    Admitted,
    /// Before the mark is written.
    WriteMark,
    /// Before the mark is put on the disk.
    SyncMark,
    /// Before the new content gets the name of the file.
    Rename,
    /// Before the new name is put on the disk.
    SyncDirectory,
    /// Before the end of a torn append is cut off.
    Truncate,
    /// Before the appended bytes are written.
    Append,
    /// In the middle of the appended bytes.
    #[cfg(test)]
    AppendRest,
    /// Before the appended bytes are put on the disk.
    SyncLog,
    /// Before the mark says that the append is complete.
    Settle,
    /// Before the lock is released.
    Unlock,
}

/// Passes a step. Outside of tests, nothing happens here.
#[cfg(not(test))]
#[inline(always)]
pub(super) fn pass(_: Step) -> Result<(), Errno> {
    Ok(())
}

#[cfg(test)]
pub(super) use faults::pass;

#[cfg(test)]
pub(super) mod faults {
    use std::cell::Cell;

    use rustix::process::Signal;

    use super::{Errno, Step};

    /// All steps.
    pub(in super::super) const ALL: [Step; 14] = [
        Step::WriteBeside,
        Step::SyncBeside,
        Step::NameMark,
        Step::Admitted,
        Step::WriteMark,
        Step::SyncMark,
        Step::Rename,
        Step::SyncDirectory,
        Step::Truncate,
        Step::Append,
        Step::AppendRest,
        Step::SyncLog,
        Step::Settle,
        Step::Unlock,
    ];

    /// What happens at a step.
    #[derive(Clone, Copy, Debug)]
    pub(in super::super) enum StepFault {
        /// This process is killed, as by `kill -9`.
        Kill,
        /// This process is stopped, as by `kill -STOP`.
        Stop,
        /// The call of the kernel fails.
        Fail(Errno),
    }

    thread_local! {
        static PLANNED: Cell<Option<(Step, StepFault)>> = const { Cell::new(None) };
    }

    /// Lets this happen the next time that this thread comes to this step.
    pub(in super::super) fn plan(step: Step, fault: StepFault) {
        PLANNED.set(Some((step, fault)));
    }

    /// True if the planned fault has not happened. Forgets it.
    pub(in super::super) fn is_left() -> bool {
        PLANNED.take().is_some()
    }

    pub(in super::super) fn pass(step: Step) -> Result<(), Errno> {
        let Some((_, fault)) = PLANNED.get().filter(|(planned, _)| *planned == step) else { return Ok(()) };
        PLANNED.set(None);
        let signal = match fault {
            StepFault::Kill => Signal::KILL,
            StepFault::Stop => Signal::STOP,
            StepFault::Fail(errno) => return Err(errno),
        };
        rustix::process::kill_process(rustix::process::getpid(), signal)?;
        // Another thread may receive the signal first, and stop this one a moment later.
        crate::host::pause::pause(std::time::Duration::from_millis(100));
        Ok(())
    }
}
