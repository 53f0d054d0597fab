//! The process that stops the tree when the supervisor cannot.
//!
//! It is the parent of the child and a sub-reaper like the supervisor: the surviving one finds every process of the
//! tree below itself. It has its own session, so that no key on the user's terminal reaches it, and it has no file of
//! the user open.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::process::exit;
use std::time::Duration;

use nix::sys::signal::{SigHandler, SigSet};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Timing, WitnessPart};

use super::cgroup::{self, Cgroup};
use super::fork::{Side, fork, fork_into};
use super::ladder::{Action, Guard, Input, Ladder, Phase};
use super::lateness::LatenessMeter;
use super::link::{Link, Received};
use super::report::Report;
use super::title;
use super::tree::Tree;
use super::watchdog_command::WatchdogCommand;
use super::{schedule, stub};
use crate::descriptors;

/// Parameters of a watchdog.
#[derive(Clone, Debug)]
pub(super) struct WatchdogSetup {
    pub(super) timing: Timing,
    /// Method of a guard for measuring its lateness.
    pub(super) lateness_meter: LatenessMeter,
    /// Path of the child's cgroup, if there can be one.
    pub(super) cgroup: cgroup::CgroupPath,
    /// The caller's disposition of SIGCHLD, which the program gets back.
    pub(super) child_action: SigHandler,
}

/// Starts the stub, watches it, and never returns.
pub(super) fn run(setup: WatchdogSetup, control: Link, command: &[OsString]) -> ! {
    match Watchdog::start(setup, control, command) {
        Ok(watchdog) => watchdog.watch(),
        // The supervisor sees the end of the link.
        Err(_) => exit(1),
    }
}

struct Watchdog {
    setup: WatchdogSetup,
    /// The supervisor, while it lives.
    control: Option<Link>,
    /// The stub, until it executes the program.
    gate: Link,
    signals: SignalFd,
    timer: OwnedFd,
    /// The instant for which the timer is set.
    due: Option<Instant>,
    ladder: Ladder,
    tree: Tree,
    cgroup: Option<Cgroup>,
    child: Pid,
    /// Held until the tree is reaped.
    witness: Option<OwnedFd>,
    /// True if the supervisor knows about an unkillable process.
    told_left: bool,
    told_overrun: bool,
}

impl Watchdog {
    fn start(setup: WatchdogSetup, control: Link, command: &[OsString]) -> io::Result<Self> {
        let (gate, stubs) = Link::pair()?;
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own))?;
        let (forked, cgroup) = match Cgroup::make(&setup.cgroup) {
            None => (fork(), None),
            Some(cgroup) => match fork_into(cgroup.as_fd()) {
                Ok(side) => (Ok(side), Some(cgroup)),
                Err(_) => {
                    cgroup.remove();
                    (fork(), None)
                }
            },
        };
        let child = match forked? {
            Side::Child => {
                // Only the watchdog keeps this side of the gate: when it exits, the stub sees the gate closed and exits.
                drop((control, gate));
                stub::run(own, stubs, setup.child_action, command)
            }
            Side::Parent { child } => child,
        };
        drop(stubs);
        // After the stub, which stays in the session of the terminal.
        rustix::process::setsid()?;
        title::set(TITLE);
        // After the stub too: the command keeps the priority of its caller.
        schedule::raise_priority();
        let all = SigSet::all();
        all.thread_block()?;
        let signals = SignalFd::with_flags(&all, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Boottime,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let mut kept =
            HashSet::from([control.as_raw_fd(), gate.as_raw_fd(), signals.as_raw_fd(), timer.as_raw_fd()]);
        kept.extend(cgroup.iter().flat_map(Cgroup::descriptors));
        close_all_but(&kept)?;
        control.send(&Report::Ready { stub: child.as_raw_nonzero().get() }.into_bytes(), &[])?;
        Ok(Self {
            ladder: Ladder::new(Guard::Watchdog, setup.timing, BootClock::new().now()),
            setup,
            control: Some(control),
            gate,
            signals,
            timer,
            due: None,
            tree: Tree::below(own),
            cgroup,
            child,
            witness: None,
            told_left: false,
            told_overrun: false,
        })
    }

    fn watch(mut self) -> ! {
        loop {
            // The clock first: a watchdog that was stopped itself processes the renewals before it acts on the clock.
            let now = BootClock::new().now();
            self.measure(now);
            self.read_commands(now);
            self.reap(now);
            self.act(now);
            self.sleep();
        }
    }

    /// Takes the signals off the queue, and measures how late the timer was. A watchdog that was stopped is not late.
    fn measure(&mut self, now: Instant) {
        let mut continued = false;
        while let Ok(Some(signal)) = self.signals.read_signal() {
            continued |= signal.ssi_signo == Signal::CONT.as_raw() as u32;
        }
        let Some(due) = self.due.take_if(|due| *due <= now) else { return };
        if continued {
            return;
        }
        self.ladder.note_wakeup(due, now, || self.setup.lateness_meter.of(&self.tree, now));
    }

    fn read_commands(&mut self, now: Instant) {
        while let Some(control) = &self.control {
            match control.receive() {
                Received::Message(message, descriptors) => {
                    if let Some(command) = WatchdogCommand::from_bytes(&message) {
                        self.obey(command, descriptors, now);
                    }
                }
                Received::Nothing => return,
                // No process renews any more.
                Received::End => {
                    self.control = None;
                    self.step(now, Input::Kill);
                }
            }
        }
    }

    fn obey(&mut self, command: WatchdogCommand, descriptors: Vec<OwnedFd>, now: Instant) {
        match command {
            WatchdogCommand::Start { until, witnessed, message } => {
                // The watchdog ends only after the tree, so it locks both parts; the child locks that of the tree.
                let witness = descriptors.first();
                let own = witness.and_then(|witness| WitnessPart::Both.lock(witness).ok());
                let childs = witness.and_then(|witness| WitnessPart::Tree.lock(witness).ok());
                if witnessed && (own.is_none() || childs.is_none()) {
                    // No free descriptor. Without the witness no work may run: the gate closes with this process.
                    exit(1);
                }
                self.step(now, Input::Held(until));
                self.witness = own;
                let _ = self.gate.send(&message.to_bytes(), childs.as_ref().map(AsFd::as_fd).as_slice());
                self.report(Report::Started);
            }
            WatchdogCommand::Until(until) => self.step(now, Input::Held(until)),
            WatchdogCommand::Stopping { kill_at } => self.step(now, Input::TermSent { kill_at }),
            WatchdogCommand::Kill => self.step(now, Input::Kill),
        }
    }

    /// Passes on the error of a stub that cannot execute the program.
    fn hear_stub(&self) {
        if let Received::Message(message, _) = self.gate.receive()
            && let Ok(error) = message.try_into().map(i32::from_ne_bytes)
        {
            self.report(Report::NotStarted { error });
        }
    }

    /// Reaps processes that have ended. When none is left, the work is done.
    fn reap(&mut self, now: Instant) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child => {
                    self.step(now, Input::ChildEnded);
                    self.hear_stub();
                    self.report(Report::Ended { status: status.as_raw() });
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // A process that left for another pid namespace is not a child any more, but still in the cgroup.
                Err(_) if self.cgroup.as_ref().is_some_and(Cgroup::is_populated) => break,
                Err(_) => self.finish(now),
            }
        }
        // The child has ended and others have not: they get TERM.
        if self.ladder.child_is_dead() {
            self.step(BootClock::new().now(), Input::Stop);
        }
    }

    /// Ends this process: the tree is dead.
    fn finish(&self, now: Instant) -> ! {
        if self.told_overrun {
            self.report_overrun(now);
        }
        self.report(Report::Alone);
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
            cgroup.remove_leftovers();
        }
        exit(0)
    }

    fn step(&mut self, now: Instant, input: Input) {
        for action in self.ladder.step(now, input) {
            match action {
                Action::Term { .. } => {
                    if input == Input::Time {
                        let late = self.ladder.late(now).unwrap_or_default();
                        self.report(Report::Terminating { late_ms: millis(late) });
                    }
                    self.terminate();
                }
                Action::Kill | Action::KillAgain => self.kill(now),
            }
        }
    }

    fn terminate(&self) {
        let swept = self.tree.terminate();
        // A child that `/proc` hides is signalled by its process id, which is not reused until it is reaped.
        if !self.ladder.child_is_dead() && !swept.reached.contains(&self.child) {
            let _ = kill_process(self.child, Signal::TERM);
        }
    }

    /// The child first, by its process id: that needs neither `/proc` nor a new descriptor.
    fn kill(&mut self, now: Instant) {
        if !self.ladder.child_is_dead() {
            let _ = kill_process(self.child, Signal::KILL);
        }
        self.cgroup.as_ref().inspect(|cgroup| cgroup.kill());
        let swept = self.tree.kill();
        // The rest may not be signalled, or not even be seen. It is watched as long as it lives: the witness of this
        // process keeps the next command from starting on this machine.
        if self.ladder.note_sweep(now, !swept.reached.is_empty()) && !self.told_left {
            self.told_left = true;
            let pid = swept.denied.first().map_or(0, |pid| pid.as_raw_nonzero().get());
            self.report(Report::Left { pid });
        }
    }

    fn act(&mut self, now: Instant) {
        if self.ladder.overrun(now).is_some() && !self.told_overrun {
            self.told_overrun = true;
            self.report_overrun(now);
        }
        self.step(now, Input::Time);
    }

    fn sleep(&mut self) {
        let now = BootClock::new().now();
        let longest = match self.ladder.phase() {
            Phase::Running => self.setup.lateness_meter.pause,
            // The kernel sends no signal when a process of another pid namespace leaves the cgroup.
            Phase::Stopping { .. } if self.cgroup.is_some() => CGROUP_LOOK,
            Phase::Stopping { .. } | Phase::Killing => Duration::MAX,
        };
        let next = self.ladder.next(now).map(|next| next.min(now + longest));
        self.due = next;
        let nanos = next.map_or(0, |next| next.as_nanos().max(1));
        let it_value =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = rustix::time::timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec { it_interval, it_value },
        );
        let mut events =
            vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        events.extend(self.control.as_ref().map(|control| PollFd::new(control, PollFlags::IN)));
        let _ = poll(&mut events, None);
    }

    fn report_overrun(&self, now: Instant) {
        let overrun = self.ladder.overrun(now).unwrap_or_default();
        self.report(Report::Overrun { millis: millis(overrun) });
    }

    fn report(&self, report: Report) {
        if let Some(control) = &self.control {
            let _ = control.send(&report.into_bytes(), &[]);
        }
    }
}

/// Closes all descriptors of the user. A pipe whose reader waits for its end, a terminal that should hang up, a
/// directory that should be unmounted: none of them may wait for the watchdog.
fn close_all_but(kept: &HashSet<RawFd>) -> io::Result<()> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    drop(nothing);
    rustix::process::chdir("/")?;
    descriptors::close_others(kept)
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

/// Time until the cgroup is checked again.
const CGROUP_LOOK: Duration = Duration::from_millis(50);

/// The name in `ps`. It differs from the name of the command: `pkill tenure` ends the supervisor, and the watchdog then
/// stops the tree.
const TITLE: &str = "lease-watchdog";
