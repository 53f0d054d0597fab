use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;

use nix::sys::signal::SigHandler;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;
use tenure::Timing;

use super::caller::CallerAttributes;
use super::cgroup::{self, Cgroup};
use super::fork::{Side, fork, may_signal, set_child_action};
use super::lateness::LatenessMeter;
use super::link::Link;
use super::tree::Tree;
use super::watchdog::{self, WatchdogSetup};

/// The watchdog, and below it the stub, before the lease is acquired.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) watchdog: Pid,
    pub(super) cgroup: cgroup::CgroupPath,
    pub(super) control: Link,
    /// Earlier children of this process: a shell that became it by `exec` may have left some.
    pub(super) strangers: Vec<Pid>,
}

impl Launch {
    /// Starts them. This process must not have a second thread yet.
    pub(super) fn start(
        timing: Timing,
        lateness_meter: LatenessMeter,
        cgroup: cgroup::CgroupPath,
        caller: &CallerAttributes,
        command: &[OsString],
    ) -> io::Result<Self> {
        let (control, theirs) = Link::pair()?;
        let strangers = Tree::own_children().unwrap_or_default();
        let child_action = set_child_action(SigHandler::SigDfl)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        match fork()? {
            Side::Child => {
                // This end must exist in the supervisor alone, or its end would never be seen.
                drop(control);
                // The stub passes it on to the command.
                caller.restore_mask();
                let setup = WatchdogSetup { timing, lateness_meter, cgroup, child_action };
                watchdog::run(setup, theirs, command)
            }
            Side::Parent { child } => Ok(Self { watchdog: child, cgroup, control, strangers }),
        }
    }

    /// Verifies that the guards' way of signalling works here.
    pub(super) fn can_signal(&self) -> io::Result<()> {
        may_signal(pidfd_open(self.watchdog, PidfdFlags::empty())?.as_fd())
    }
}

/// Reaps a watchdog whose link is closed. A watchdog that does not exit in time was stopped, and is killed: there is no
/// tree any more.
pub(super) fn reap_watchdog(watchdog: Pid, cgroup: &cgroup::CgroupPath) {
    let mut ended = rustix::process::waitpid(Some(watchdog), WaitOptions::NOHANG);
    // Otherwise it was reaped, now or earlier: its process id may be reused.
    if matches!(ended, Ok(None)) {
        if let Ok(descriptor) = pidfd_open(watchdog, PidfdFlags::empty()) {
            let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&PATIENCE));
            let _ = pidfd_send_signal(&descriptor, Signal::KILL);
        }
        ended = rustix::process::waitpid(Some(watchdog), WaitOptions::empty());
    }
    if matches!(ended, Ok(Some((_, status))) if status.signaled())
        && let Some(cgroup) = Cgroup::find(cgroup)
    {
        // It could not clean up after itself.
        cgroup.remove();
    }
}

const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::run::cgroup_texts::CgroupTexts;

    #[test]
    fn only_an_unreaped_child_of_this_process_is_killed() {
        let place =
            cgroup::CgroupPath::new(cgroup::LeaseMark::of("memory:", "x"), &CgroupTexts::read()).unwrap();
        let mut sleeper = Command::new("sleep").arg("100").spawn().unwrap();
        let number = |id: u32| Pid::from_raw(id as i32).unwrap();
        // A grandchild stands in for a process that reuses the id of the watchdog: this process reaps neither.
        let mut script = Command::new("sh");
        script
            .args(["-c", "sleep 100 >&- & echo $!; exec sleep 100 >&-"])
            .stdout(std::process::Stdio::piped());
        let mut parent = script.spawn().unwrap();
        let (parent_number, mut told) = (number(parent.id()), String::new());
        std::io::Read::read_to_string(&mut parent.stdout.take().unwrap(), &mut told).unwrap();
        let stranger = Pid::from_raw(told.trim().parse().unwrap()).unwrap();
        reap_watchdog(stranger, &place);
        assert!(rustix::process::test_kill_process(stranger).is_ok(), "a stranger lives on");
        rustix::process::kill_process(stranger, Signal::KILL).unwrap();
        for child in [parent_number, number(sleeper.id())] {
            reap_watchdog(child, &place);
            assert!(rustix::process::test_kill_process(child).is_err(), "a child that does not end is ended");
        }
        assert!(sleeper.wait().is_err() && parent.wait().is_err(), "and reaped");
    }
}
