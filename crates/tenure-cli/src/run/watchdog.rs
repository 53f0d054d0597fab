//! The process that ends the tree when the supervisor cannot.
//!
//! It is the parent of the child and a sub-reaper like the supervisor: whichever of the two is left finds every process of
//! the tree below itself. It has a session of its own, so that no key on the user's terminal reaches it, and nothing of
//! the user's is open in it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::process::exit;
use std::time::Duration;
use std::{fs, io};

use nix::sys::signal::{SigHandler, SigSet};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tenure::clock::{BootClock, Clock, Instant};

use super::cgroup::{self, Cgroup};
use super::fork::{Side, fork, fork_into};
use super::link::{Link, Received};
use super::order::{Order, Times};
use super::report::Report;
use super::stub;
use super::tree::Tree;

/// What a watchdog is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// How long descendants that outlive the child have between TERM and KILL.
    pub(super) grace: Duration,
    /// How long after the time for KILL the lease has lapsed for certain.
    pub(super) margin: Duration,
    /// How the cgroup of the child is called, if there can be one.
    pub(super) cgroup: cgroup::Name,
    /// What the caller does when a child of its own ends, and so shall the program.
    pub(super) when_a_child_ends: SigHandler,
}

/// Starts the stub, watches over it, and never returns.
pub(super) fn run(terms: Terms, control: Link, command: &[OsString]) -> ! {
    match Watchdog::start(terms, control, command) {
        Ok(watchdog) => watchdog.watch(),
        // The supervisor sees the end of the link.
        Err(_) => exit(1),
    }
}

struct Watchdog {
    terms: Terms,
    /// The supervisor, while it lives.
    control: Option<Link>,
    /// The stub, until it is the program.
    gate: Link,
    signals: SignalFd,
    timer: OwnedFd,
    tree: Tree,
    cgroup: Option<Cgroup>,
    child: Pid,
    ended: bool,
    /// Held until the tree is reaped.
    witness: Option<OwnedFd>,
    phase: Phase,
    /// When the tree must be dead but for the margin, by the lease; `None` before it is granted.
    kill_at: Option<Instant>,
    /// When those to whom TERM was sent have had their grace.
    grace_ends: Option<Instant>,
    /// Since when KILL reaches nobody although somebody is left, and whether the supervisor knows.
    stuck_since: Option<Instant>,
    told_left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// All is well; TERM at this instant.
    Watching { term_at: Option<Instant> },
    /// TERM was sent.
    Stopping,
    /// KILL is sent again and again: what was just forked is not missed for long.
    Killing,
}

impl Watchdog {
    fn start(terms: Terms, control: Link, command: &[OsString]) -> io::Result<Self> {
        let (gate, stubs) = Link::pair()?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let (forked, cgroup) = match Cgroup::make(terms.cgroup) {
            None => (fork(), None),
            Some(cgroup) => match cgroup.open().and_then(|opened| fork_into(opened.as_fd())) {
                Ok(side) => (Ok(side), Some(cgroup)),
                Err(_) => {
                    cgroup.remove();
                    (fork(), None)
                }
            },
        };
        let child = match forked? {
            Side::Child => {
                // The gate's own end lives in the watchdog alone: its end is the stub's.
                drop((control, gate));
                stub::run(stubs, terms.when_a_child_ends, command)
            }
            Side::Parent { child } => child,
        };
        drop(stubs);
        // After the stub, which stays in the terminal's session.
        rustix::process::setsid()?;
        let _ = rustix::thread::set_name(c"tenure-watchdog");
        let all = SigSet::all();
        all.thread_block()?;
        let signals = SignalFd::with_flags(&all, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Boottime,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let kept = [control.as_raw_fd(), gate.as_raw_fd(), signals.as_raw_fd(), timer.as_raw_fd()];
        let_go_of_everything_but(&kept.into())?;
        control.send(&Report::Ready { stub: child.as_raw_nonzero().get() }.into_bytes(), &[])?;
        Ok(Self {
            terms,
            control: Some(control),
            gate,
            signals,
            timer,
            tree: Tree::below(rustix::process::getpid()),
            cgroup,
            child,
            ended: false,
            witness: None,
            phase: Phase::Watching { term_at: None },
            kill_at: None,
            grace_ends: None,
            stuck_since: None,
            told_left: false,
        })
    }

    fn watch(mut self) -> ! {
        loop {
            // The clock first: a watchdog that was stopped itself, wherever that was, hears of the renewals before it acts
            // on what the clock says.
            let now = BootClock::new().now();
            self.hear();
            self.reap();
            self.act(now);
            self.sleep();
        }
    }

    fn hear(&mut self) {
        while let Some(control) = &self.control {
            match control.receive() {
                Received::Message(message, descriptors) => {
                    if let Some(order) = Order::from_bytes(&message) {
                        self.obey(order, descriptors);
                    }
                }
                Received::Nothing => return,
                // Nobody renews any more.
                Received::End => {
                    self.control = None;
                    self.phase = Phase::Killing;
                }
            }
        }
    }

    fn obey(&mut self, order: Order, descriptors: Vec<OwnedFd>) {
        match order {
            Order::Start { times, witnessed, go } => {
                let mut witnesses = descriptors.into_iter();
                let (own, childs) = (witnesses.next(), witnesses.next());
                if witnessed && childs.is_none() {
                    // No descriptor could be had. Without the witness, nobody may act: the gate goes with this process.
                    exit(1);
                }
                // A late timer is what the margin is for. Where it is allowed, the timer is not late.
                let _ = rustix::process::setpriority_process(None, -20);
                self.hold_on(times);
                self.witness = own;
                let _ = self.gate.send(&go.to_bytes(), childs.as_ref().map(AsFd::as_fd).as_slice());
                self.report(Report::Started);
            }
            Order::Until(times) => self.hold_on(times),
            Order::Stopping { kill_at } => {
                self.grace_ends = Some(kill_at);
                if self.phase != Phase::Killing {
                    self.phase = Phase::Stopping;
                }
            }
            Order::Kill => self.phase = Phase::Killing,
        }
    }

    fn hold_on(&mut self, times: Times) {
        self.kill_at = Some(times.kill_at);
        if let Phase::Watching { .. } = self.phase {
            self.phase = Phase::Watching { term_at: Some(times.term_at) };
        }
    }

    /// Passes on what the stub says if it cannot become the program.
    fn hear_stub(&self) {
        if let Received::Message(message, _) = self.gate.receive()
            && let Ok(error) = message.try_into().map(i32::from_ne_bytes)
        {
            self.report(Report::NotStarted { error });
        }
    }

    /// Reaps whoever has ended. When nobody is left, the work is done.
    fn reap(&mut self) {
        while let Ok(Some(_)) = self.signals.read_signal() {}
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child => {
                    self.ended = true;
                    self.hear_stub();
                    self.report(Report::Ended { status: status.as_raw() });
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => {
                    self.report(Report::Alone);
                    if let Some(cgroup) = &self.cgroup {
                        cgroup.remove();
                        cgroup.tidy();
                    }
                    exit(0)
                }
            }
        }
        // The child has ended and others have not: they are told to, as the child would be.
        if self.ended && matches!(self.phase, Phase::Watching { .. }) {
            self.terminate(BootClock::new().now());
        }
    }

    fn terminate(&mut self, now: Instant) {
        self.tree.terminate();
        self.grace_ends = Some(now + self.terms.grace);
        self.phase = Phase::Stopping;
    }

    /// When those who were told to end are killed.
    fn patience_ends(&self) -> Option<Instant> {
        self.kill_at.into_iter().chain(self.grace_ends).min()
    }

    fn act(&mut self, now: Instant) {
        if let Phase::Watching { term_at: Some(term_at) } = self.phase
            && term_at + SLACK <= now
        {
            self.report(Report::Terminating);
            self.terminate(now);
        }
        if self.phase == Phase::Stopping && self.patience_ends().is_none_or(|end| end <= now) {
            self.phase = Phase::Killing;
        }
        if self.phase == Phase::Killing {
            self.cgroup.as_ref().inspect(|cgroup| cgroup.kill());
            let swept = self.tree.kill();
            if swept.reached > 0 {
                self.stuck_since = None;
                return;
            }
            // Whoever is left may not be signalled, or not even be seen.
            let since = *self.stuck_since.get_or_insert(now);
            if since + PATIENCE <= now && !self.told_left {
                self.told_left = true;
                self.report(Report::Left {
                    pid: swept.denied.first().map_or(0, |pid| pid.as_raw_nonzero().get()),
                });
            }
            if self.kill_at.is_none_or(|kill_at| kill_at + self.terms.margin <= now) {
                // And the lease has lapsed: there is nothing more to protect.
                exit(1);
            }
        }
    }

    fn sleep(&mut self) {
        let next = match self.phase {
            Phase::Watching { term_at } => term_at.map(|term_at| term_at + SLACK),
            Phase::Stopping => self.patience_ends(),
            Phase::Killing => Some(BootClock::new().now() + AGAIN),
        };
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

    fn report(&self, report: Report) {
        if let Some(control) = &self.control {
            let _ = control.send(&report.into_bytes(), &[]);
        }
    }
}

/// A pipe whose reader waits for its end, a terminal that shall hang up, a folder that shall be unmounted: nothing of
/// that may wait for the watchdog.
fn let_go_of_everything_but(kept: &HashSet<RawFd>) -> io::Result<()> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    drop(nothing);
    rustix::process::chdir("/")?;
    let numbers: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers {
        if number > 2 && !kept.contains(&number) {
            // One of them was the listing itself, which is closed already.
            let _ = nix::unistd::close(number);
        }
    }
    Ok(())
}

/// The supervisor sends TERM itself, if it can. The watchdog lets it go first, so that the child gets one TERM, not two.
const SLACK: Duration = Duration::from_millis(30);

/// How soon KILL is sent again.
const AGAIN: Duration = Duration::from_millis(10);

/// How long those who may not be signalled have to end by themselves, as those who watch over others do.
const PATIENCE: Duration = Duration::from_millis(500);
