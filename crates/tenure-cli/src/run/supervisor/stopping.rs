//! How the tree is ended, by the watchdog or without it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, kill_process};
use tenure::clock::{BootClock, Clock, Instant};

use super::{Phase, SILENCE, Supervisor};
use crate::run::cgroup::Cgroup;
use crate::run::order::Order;
use crate::run::tree::Tree;
use crate::run::why::Why;

impl Supervisor<'_> {
    /// In order: TERM, and KILL after the grace.
    pub(super) fn stop(&mut self, why: Why) {
        if self.phase != Phase::Running {
            return;
        }
        self.why.get_or_insert(why.clone());
        self.terminate();
        self.say_stopping(&why);
    }

    pub(super) fn terminate(&mut self) {
        let kill_at = self.times.kill_at.min(BootClock::new().now() + self.timing.grace());
        self.tree().terminate();
        self.phase = Phase::Stopping(kill_at);
        self.order(Order::Stopping { kill_at });
    }

    pub(super) fn kill(&mut self) {
        if let Phase::Killing(_) = self.phase {
            return;
        }
        let now = BootClock::new().now();
        self.phase = Phase::Killing(now);
        self.replace_at = Some(now + SILENCE);
        self.order(Order::Kill);
        self.sweep(now, now);
    }

    /// Again and again: what was forked during a sweep is found by the next.
    pub(super) fn sweep(&mut self, since: Instant, now: Instant) {
        if let Some(cgroup) = Cgroup::find(self.charges.cgroup) {
            cgroup.kill();
        }
        let swept = self.tree().kill();
        let (anybody, denied) = (swept.reached > 0, !swept.denied.is_empty());
        if denied && !anybody && since + PATIENCE <= now {
            self.left = Some(swept.denied);
        }
        // Those who run as somebody else may be hidden (`hidepid`): then there are children, and none to be seen.
        if self.watched || anybody || denied {
            self.unseen_since = None;
        } else if *self.unseen_since.get_or_insert(now) + PATIENCE <= now {
            self.left = Some(Vec::new());
        }
    }

    /// The watchdog does not do its work, most likely because it is stopped: it is ended, and what was below it is below
    /// this process.
    pub(super) fn replace_watchdog(&mut self) {
        self.replace_at = None;
        if !self.watchdog_is_reaped {
            // A child that was not reaped has its number for itself.
            let _ = kill_process(self.charges.watchdog, Signal::KILL);
        }
    }

    pub(super) fn watchdog_is_gone(&mut self) {
        self.watched = false;
        self.replace_at = None;
        self.reap();
        if !self.started {
            // The stub ends with its watchdog, and its code is not the program's.
            self.why.get_or_insert(Why::Unwatched);
        }
        if self.alone {
            return;
        }
        if self.status.is_some() || self.child_is_dead {
            if self.phase == Phase::Running {
                self.terminate();
            }
        } else if let Phase::Stopping(_) = self.phase {
            // Whoever was below it when TERM was sent, and below this process a moment later, may have got none.
            self.tree().terminate();
        } else {
            self.stop(Why::Unwatched);
        }
    }

    /// Takes in those who ended: the watchdog, and after it those whom it leaves to this process.
    pub(super) fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.charges.child => {
                    self.ended(ExitStatus::from_raw(status.as_raw()))
                }
                Ok(Some((pid, _))) => self.watchdog_is_reaped |= pid == self.charges.watchdog,
                Err(Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    // What the watchdog said before it ended is heard first.
                    self.alone |= !self.watched;
                    return;
                }
            }
        }
    }

    /// What is below the watchdog, and below this process once that is gone. Not more: a shell that became this process
    /// by `exec` may have left it children of its own, such as the logger of `exec > >(logger)`.
    pub(super) fn tree(&self) -> Tree {
        match self.watched && !self.watchdog_is_reaped {
            true => Tree::below(self.charges.watchdog),
            false => Tree::below(rustix::process::getpid()).without(self.charges.watchdog),
        }
    }
}

/// How long those who may not be signalled have to end by themselves, as those who watch over others do.
const PATIENCE: Duration = Duration::from_secs(1);
