//! Stopping the tree, with the watchdog or without it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, kill_process, pidfd_send_signal};
use tenure::WitnessPart;
use tenure::clock::{BootClock, Clock, Instant};

use super::{Action, Input, Phase, Supervisor, WATCHDOG_SILENCE_MAX};
use crate::run::cgroup::Cgroup;
use crate::run::stop_reason::StopReason;
use crate::run::tree::Tree;
use crate::run::watchdog_command::WatchdogCommand;

impl Supervisor<'_> {
    /// Stops it with TERM, and KILL after the grace.
    pub(super) fn stop(&mut self, why: StopReason) {
        self.step(BootClock::new().now(), Input::Stop, Some(why));
    }

    /// Takes a step of the ladder. `why` is the reason for TERM, if that is due; `None` if the child has ended by
    /// itself.
    pub(super) fn step(&mut self, now: Instant, input: Input, why: Option<StopReason>) {
        for action in self.ladder.step(now, input) {
            match action {
                Action::Term { kill_at } => {
                    self.stop_reason = self.stop_reason.take().or(why.clone());
                    self.signal_term();
                    self.send(WatchdogCommand::Stopping { kill_at });
                    why.iter().for_each(|why| self.say_stopping(why));
                }
                Action::Kill => {
                    self.replace_at = Some(now + WATCHDOG_SILENCE_MAX);
                    self.send(WatchdogCommand::Kill);
                    self.sweep(now);
                }
                Action::KillAgain => self.sweep(now),
            }
        }
    }

    /// TERM to the complete tree. A child that `/proc` hides gets it through its descriptor.
    fn signal_term(&self) {
        let swept = self.tree().terminate();
        if !self.ladder.child_is_dead() && !swept.reached.contains(&self.processes.child) {
            let _ = pidfd_send_signal(self.processes.child_fd.get_ref(), Signal::TERM);
        }
    }

    /// Repeats KILL: the next sweep finds a process that was forked during this one.
    ///
    /// The child first, through a descriptor that is open since the start: that needs neither `/proc` nor a new one.
    fn sweep(&mut self, now: Instant) {
        let child = pidfd_send_signal(self.processes.child_fd.get_ref(), Signal::KILL);
        if let Some(cgroup) = &self.processes.cgroup {
            cgroup.kill();
        }
        let swept = self.tree().kill();
        let reached = !swept.reached.is_empty() || (child.is_ok() && !self.ladder.child_is_dead());
        let stuck = self.ladder.note_sweep(now, reached);
        // While the watchdog lives, an empty sweep means that it has not reaped yet. Without it, there are children
        // that `/proc` does not show (`hidepid`).
        if stuck && (!swept.denied.is_empty() || !self.watched) {
            self.cannot_end(&swept.denied);
        }
    }

    /// The watchdog does not work, most likely because it is stopped: it is killed, and its children become those of
    /// this process.
    pub(super) fn replace_watchdog(&mut self) {
        self.replace_at = None;
        self.replaced = true;
        if !self.watchdog_is_reaped {
            // The process id of an unreaped child is not reused.
            let _ = kill_process(self.processes.watchdog, Signal::KILL);
        }
    }

    pub(super) fn watchdog_is_gone(&mut self) {
        self.watched = false;
        self.replace_at = None;
        // The watchdog held the tree's part of the witness.
        self.tree_witness =
            self.processes.witness.as_ref().and_then(|witness| WitnessPart::Tree.lock(witness).ok());
        self.reap();
        if !self.started {
            // The stub dies with its watchdog, and its code is not that of the program.
            self.stop_reason.get_or_insert(StopReason::Unwatched);
        }
        if self.alone {
            return;
        }
        if self.ladder.child_is_dead() {
            self.step(BootClock::new().now(), Input::Stop, None);
        } else if let Phase::Stopping { .. } = self.ladder.phase() {
            // A process that was below the watchdog at TERM, and below this process a moment later, may not have got
            // it.
            self.signal_term();
        } else {
            self.stop(StopReason::Unwatched);
        }
    }

    /// Reaps processes that have exited: the watchdog, and after it the processes that it leaves to this process.
    pub(super) fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.processes.child => {
                    let status = ExitStatus::from_raw(status.as_raw());
                    // A killed watchdog took the child with it, and left it to this process.
                    if !self.replaced && status.signal() == Some(Signal::KILL.as_raw()) {
                        self.stop_reason.get_or_insert(StopReason::Unwatched);
                    }
                    self.child_ended(status);
                }
                Ok(Some((pid, _))) => {
                    self.watchdog_is_reaped |= pid == self.processes.watchdog;
                    self.processes.strangers.retain(|stranger| *stranger != pid);
                }
                Err(Errno::INTR) => {}
                Ok(None) if !self.has_only_strangers() => return,
                // A process that left for another pid namespace is not a child any more, but still in the cgroup.
                Ok(None) | Err(_) if self.processes.cgroup.as_ref().is_some_and(Cgroup::is_populated) => {
                    return;
                }
                Ok(None) | Err(_) => {
                    // Messages that the watchdog sent before its end come first.
                    self.alone |= !self.watched;
                    return;
                }
            }
        }
    }

    /// Everything below the watchdog, and below this process once the watchdog has exited. Not more: a shell that
    /// became this process by `exec` may have left it children, such as the logger of `exec > >(logger)`.
    pub(super) fn tree(&self) -> Tree {
        if self.watched && !self.watchdog_is_reaped {
            Tree::below(self.processes.watchdog)
        } else {
            Tree::below(rustix::process::getpid())
                .without(self.processes.watchdog)
                .without_strangers(&self.processes.strangers)
        }
    }

    /// True if this process has children, and all of them are earlier ones.
    fn has_only_strangers(&self) -> bool {
        let strangers = &self.processes.strangers;
        !strangers.is_empty()
            && Tree::own_children()
                .is_some_and(|children| children.iter().all(|child| strangers.contains(child)))
    }
}
