use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;

use crate::exit::Failure;
use crate::run::fork::may_signal;

/// The process of `--pid`. The descriptor stays with it when its process id is reused.
#[derive(Debug)]
pub(super) struct WatchedProcess {
    number: i32,
    process: OwnedFd,
}

impl WatchedProcess {
    pub(super) fn open(number: i32) -> Result<Self, Failure> {
        let gone = || gone(number);
        let pid = Pid::from_raw(number).filter(|_| number > 0).ok_or_else(gone)?;
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| match error {
            Errno::SRCH => gone(),
            error => Failure::usage(format!(
                "process {number} cannot be watched: {error}. Name a process and not a thread, such as $$"
            )),
        })?;
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&now)) == Ok(1) {
            return Err(gone());
        }
        may_signal(process.as_fd()).map_err(|error| {
            Failure::usage(format!(
                "process {number} could not be signalled if the lease is lost: {error}. Name a process of this user, \
                 such as $$"
            ))
        })?;
        Ok(Self { number, process })
    }

    pub(super) fn number(&self) -> i32 {
        self.number
    }

    /// Sends the signal; true if it was sent.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.process, signal).is_ok()
    }

    /// A descriptor that becomes readable when the process ends.
    pub(super) fn ended(&self) -> io::Result<OwnedFd> {
        self.process.try_clone()
    }

    pub(super) fn as_raw_fd(&self) -> RawFd {
        self.process.as_raw_fd()
    }
}

/// Failure: there is no process with this number any more.
pub(super) fn gone(number: i32) -> Failure {
    Failure::usage(format!("there is no process {number}: name one that lives, such as $$, or use --fd"))
}
