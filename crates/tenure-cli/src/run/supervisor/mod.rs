//! Holds the lease, and has the tree dead before the lease is over.

mod stopping;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::StreamExt;
use nix::sys::signal::Signal as Heard;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use serde_json::json;
use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Acting, Lease, LeaseState, Lost, Timing};
use tokio::io::unix::AsyncFd;

use crate::duration;
use crate::run::cgroup::{self, Cgroup};
use crate::run::go::Go;
use crate::run::link::Listening;
use crate::run::order::{Order, Times};
use crate::run::report::Report;
use crate::run::why::Why;
use crate::signals::{Came, Signals};
use crate::voice::{Event, Voice, Weight};

/// The child and the watchdog as the supervisor has them.
#[derive(Debug)]
pub(super) struct Charges {
    pub(super) watchdog: Pid,
    pub(super) cgroup: cgroup::Name,
    pub(super) control: Listening,
    pub(super) child: Pid,
    /// Stays the child's when its number is somebody else's.
    pub(super) child_fd: AsyncFd<OwnedFd>,
}

/// How it ended.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// The child's status; `None` if it could not be waited for.
    pub(super) status: Option<ExitStatus>,
    /// Why the child was stopped; `None` if it ended by itself.
    pub(super) why: Option<Why>,
    /// Why the program was not started: the number of the error, or zero if it was too late.
    pub(super) not_started: Option<i32>,
    /// Those who live on, because they run as somebody else and may not be signalled.
    /// Empty if not even their numbers can be seen.
    pub(super) left: Option<Vec<Pid>>,
    /// Whether the watchdog lives, and with it somebody else who holds the witness.
    pub(super) watched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// TERM was sent; KILL at this instant.
    Stopping(Instant),
    /// KILL is sent until nobody is left; since this instant.
    Killing(Instant),
}

/// What wakes the supervisor.
enum Happened {
    Signal(Came),
    Report(Option<Report>),
    Lost(Lost),
    Renewed,
    Stands(LeaseState),
    ChildDied,
    Time,
}

/// The loop around a running child.
pub(super) struct Supervisor<'a> {
    voice: Voice,
    lease: &'a Lease,
    timing: Timing,
    charges: Charges,
    acting: Option<Acting>,
    phase: Phase,
    /// When to send TERM and KILL, by the lease.
    times: Times,
    watched: bool,
    watchdog_is_reaped: bool,
    /// Whether the gate of the stub was opened, as the watchdog said.
    started: bool,
    status: Option<ExitStatus>,
    child_is_dead: bool,
    alone: bool,
    why: Option<Why>,
    /// When the watchdog has had its time, and its work is done here.
    replace_at: Option<Instant>,
    /// When this process was continued after somebody had stopped it.
    continued_at: Option<Instant>,
    left: Option<Vec<Pid>>,
    /// Since when there are children that nobody can see.
    unseen_since: Option<Instant>,
    not_started: Option<i32>,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(
        voice: Voice,
        lease: &'a Lease,
        acting: Acting,
        timing: Timing,
        charges: Charges,
    ) -> Self {
        Self {
            voice,
            lease,
            timing,
            charges,
            acting: Some(acting),
            phase: Phase::Running,
            times: Times::of(lease, timing),
            watched: true,
            watchdog_is_reaped: false,
            started: false,
            status: None,
            child_is_dead: false,
            alone: false,
            why: None,
            replace_at: None,
            continued_at: None,
            left: None,
            unseen_since: None,
            not_started: None,
        }
    }

    /// Has the child let go, by a watchdog that is armed. Both get a hold of the witness that is their own: what one of them
    /// unlocks, the other has still locked.
    pub(super) fn start(&mut self, environment: Vec<(String, String)>, witnesses: Option<[OwnedFd; 2]>) {
        let go = Go { before: self.times.term_at, environment };
        let start = Order::Start { times: self.times, witnessed: witnesses.is_some(), go };
        let descriptors: Vec<_> = witnesses.iter().flatten().map(AsFd::as_fd).collect();
        // A watchdog that does not start the child in time is stopped, and would keep the lease for nothing.
        self.replace_at = Some(self.times.term_at);
        if self.charges.control.link().send(&start.to_bytes(), &descriptors).is_err() {
            self.replace_watchdog();
        }
    }

    /// Watches until the whole tree is gone, and gives back the promise not to vacate with it.
    pub(super) async fn watch(mut self, signals: &Signals) -> (Ending, Option<Acting>) {
        let lease = self.lease;
        let mut renewals = std::pin::pin!(lease.renewals());
        let mut states = std::pin::pin!(lease.states());
        let mut lost = false;
        // What was renewed before this listened.
        self.renewed();
        while !self.alone && self.left.is_none() {
            let next = self.next();
            let happened = tokio::select! {
                biased;
                came = signals.next() => Happened::Signal(came),
                report = Report::next(&self.charges.control), if self.watched => Happened::Report(report),
                why = lease.lost(), if !lost => Happened::Lost(why),
                Some(_) = renewals.next() => Happened::Renewed,
                Some(state) = states.next() => Happened::Stands(state),
                _ = self.charges.child_fd.readable(), if !self.child_is_dead => Happened::ChildDied,
                () = BootClock::new().sleep_until(next) => Happened::Time,
            };
            // Signals before anything else: that this process was stopped explains whatever follows.
            while let Some(came) = signals.pending() {
                self.signalled(came);
            }
            match happened {
                Happened::Signal(came) => self.signalled(came),
                Happened::Report(Some(report)) => self.hear(report),
                Happened::Report(None) => self.watchdog_is_gone(),
                Happened::Lost(why) => {
                    lost = true;
                    self.lost(why);
                }
                Happened::Renewed => self.renewed(),
                Happened::Stands(state) => self.stands(&state),
                Happened::ChildDied => self.child_died(),
                Happened::Time => self.act(BootClock::new().now()),
            }
        }
        if !self.watched
            && let Some(cgroup) = Cgroup::find(self.charges.cgroup)
        {
            // The watchdog ended before it could.
            cgroup.remove();
        }
        let ending = Ending {
            status: self.status,
            why: self.why,
            not_started: self.not_started,
            left: self.left,
            watched: self.watched,
        };
        (ending, self.acting.take())
    }

    // ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────

    fn hear(&mut self, report: Report) {
        match report {
            Report::Ready { .. } => {}
            Report::Started => {
                self.started = true;
                self.replace_at = None;
            }
            Report::NotStarted { error } => self.not_started = Some(error),
            Report::Terminating => self.stopped_by_watchdog(),
            Report::Ended { status } => self.ended(ExitStatus::from_raw(status)),
            Report::Left { pid } => self.left = Some(Pid::from_raw(pid).into_iter().collect()),
            Report::Alone => self.alone = true,
        }
    }

    fn ended(&mut self, status: ExitStatus) {
        self.status = Some(status);
        self.child_is_dead = true;
        if self.why.is_none() && self.lease.check().is_err() {
            self.why = Some(if self.was_stopped() { Why::Stopped } else { Why::Lost(Lost::Expired) });
        }
        // What the child leaves behind is ended in order; the watchdog does it, and has its time for it.
        self.replace_at = Some(BootClock::new().now() + self.timing.grace() + SILENCE);
    }

    /// The child is dead, and the watchdog should say so soon.
    fn child_died(&mut self) {
        self.child_is_dead = true;
        self.replace_at.get_or_insert(BootClock::new().now() + SILENCE);
    }

    fn stopped_by_watchdog(&mut self) {
        if self.phase == Phase::Running {
            self.why.get_or_insert(if self.was_stopped() { Why::Stopped } else { Why::Risk });
            self.phase = Phase::Stopping(self.times.kill_at);
        }
    }

    fn renewed(&mut self) {
        self.times = Times::of(self.lease, self.timing);
        if self.lease.check().is_ok() {
            self.order(Order::Until(self.times));
        }
    }

    fn stands(&self, state: &LeaseState) {
        if *state == LeaseState::AtRisk && self.phase == Phase::Running {
            let left = self.times.term_at.since(BootClock::new().now());
            self.voice.say(&Event {
                name: "at_risk",
                fields: json!({ "stop_in_ms": duration::millis_up(left) }),
                sentence: format!(
                    "lease {} could not be renewed: the command is stopped in {} unless that succeeds before",
                    self.lease.key(),
                    duration::at_least(left)
                ),
                weight: Weight::Chat,
            });
        }
    }

    fn lost(&mut self, why: Lost) {
        let in_order = matches!(why, Lost::Revoked { .. } | Lost::RenewalFailed);
        let why = if self.was_stopped() && why == Lost::Expired { Why::Stopped } else { Why::Lost(why) };
        // Whoever revokes waits for the acknowledgement or the ttl, and a strict lease is still in the record: there is
        // time to stop in order. Everything else means that somebody else may act already.
        if in_order {
            self.stop(why);
        } else {
            self.why.get_or_insert(why.clone());
            self.kill();
            self.say_stopping(&why);
        }
    }

    fn signalled(&mut self, Came { signal, by_terminal }: Came) {
        match signal {
            Heard::SIGCHLD => self.reap(),
            Heard::SIGCONT => self.continued_at = Some(BootClock::new().now()),
            // The child has got it from the kernel, as this process has. Only of a hang-up the kernel tells the leader of
            // the session alone, which is this process where no shell is around it (`ssh -t host tenure run …`).
            _ if by_terminal && !(signal == Heard::SIGHUP && leads_its_session()) => {}
            _ => {
                if let Some(signal) = Signal::from_named_raw(signal as i32) {
                    let _ = pidfd_send_signal(self.charges.child_fd.get_ref(), signal);
                }
            }
        }
    }

    fn act(&mut self, now: Instant) {
        if self.phase == Phase::Running && self.times.term_at <= now && !self.child_is_dead {
            self.stop(Why::Risk);
        }
        if let Phase::Stopping(kill_at) = self.phase
            && kill_at.min(self.times.kill_at) <= now
        {
            self.kill();
        } else if let Phase::Killing(since) = self.phase {
            self.sweep(since, now);
        }
        if self.replace_at.is_some_and(|at| at <= now) {
            self.replace_watchdog();
        }
        if !self.watched {
            self.reap();
        }
    }

    fn next(&self) -> Instant {
        let now = BootClock::new().now();
        let phase = match self.phase {
            Phase::Running if self.child_is_dead => None,
            Phase::Running => Some(self.times.term_at),
            Phase::Stopping(kill_at) => Some(kill_at.min(self.times.kill_at)),
            Phase::Killing(_) => Some(now + AGAIN),
        };
        let adopted = (!self.watched).then(|| now + AGAIN);
        let next = [phase, adopted, self.replace_at].into_iter().flatten().min();
        next.unwrap_or(now + Duration::from_secs(3600))
    }

    // ── small things ──────────────────────────────────────────────────────────────────────────────────────────────

    /// Whether this process goes on after a stop. Whatever was lost meanwhile is found at once.
    fn was_stopped(&self) -> bool {
        self.continued_at.is_some_and(|at| BootClock::new().now().since(at) < SILENCE)
    }

    fn order(&mut self, order: Order) {
        if !self.watched {
            return;
        }
        match self.charges.control.link().send(&order.to_bytes(), &[]) {
            // It has not listened for so long that it is as good as gone.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.replace_watchdog(),
            _ => {}
        }
    }

    fn say_stopping(&self, why: &Why) {
        self.voice.say(&Event {
            name: "stopping",
            fields: json!({ "why": why.word() }),
            sentence: format!("stopping the command: {}", why.sentence()),
            weight: Weight::News,
        });
    }
}

fn leads_its_session() -> bool {
    rustix::process::getsid(None) == Ok(rustix::process::getpid())
}

/// How long the watchdog may be silent when it has something to say: under heavy load it is late by a tenth of this.
const SILENCE: Duration = Duration::from_secs(1);

/// How soon KILL is sent again, and adopted processes are looked at.
const AGAIN: Duration = Duration::from_millis(20);
