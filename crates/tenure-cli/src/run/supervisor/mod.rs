//! Holds the lease, and has the tree dead before the lease is over.

mod stopping;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::StreamExt;
use nix::sys::signal::Signal as Heard;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, pidfd_send_signal};
use rustix::time::Timespec;
use serde_json::json;
use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Lease, LeaseState, Lost, Timing, WorkGuard};
use tokio::io::unix::AsyncFd;

use crate::progress::{Importance, Notice, ProgressOutput};
use crate::run::cgroup::Cgroup;
use crate::run::ladder::{Action, Guard, Input, Ladder, Phase};
use crate::run::lateness::LatenessMeter;
use crate::run::link::LinkListener;
use crate::run::renewal_messages::RenewalMessages;
use crate::run::report::Report;
use crate::run::start_message::StartMessage;
use crate::run::stop_reason::StopReason;
use crate::run::until::Until;
use crate::run::watchdog_command::WatchdogCommand;
use crate::signals::{ReceivedSignal, Signals};

/// The child and the watchdog, as the supervisor sees them.
#[derive(Debug)]
pub(super) struct Processes {
    pub(super) watchdog: Pid,
    /// The cgroup of the child, if it has one.
    pub(super) cgroup: Option<Cgroup>,
    pub(super) control: LinkListener,
    pub(super) child: Pid,
    /// Still refers to the child when its process id is reused.
    pub(super) child_fd: AsyncFd<OwnedFd>,
    /// The witness, of which a supervisor locks the guards' part alone: when it is stopped after its tree has died, no
    /// part of the tree is locked any more.
    pub(super) witness: Option<OwnedFd>,
    /// Children of this process that do not belong to the tree.
    pub(super) strangers: Vec<Pid>,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub(super) struct RunEnd {
    /// Status of the child; `None` if it could not be waited for.
    pub(super) status: Option<ExitStatus>,
    /// Reason why the child was stopped, or why the lease was over when it ended; `None` if it ended by itself under the
    /// lease.
    pub(super) stop_reason: Option<StopReason>,
    /// True if the child ended by itself, and the lease was over when a guard saw that. It is unknown which came first.
    pub(super) ended_unseen: bool,
    /// Reason why the program was not started: the error number, or zero if it was too late.
    pub(super) not_started: Option<i32>,
    /// Least time that a process of the tree was alive after the deadline; `None` if none was seen.
    pub(super) overrun: Option<Duration>,
    /// True if the record was kept while an unkillable process was alive.
    pub(super) kept: bool,
    /// True if a signal asked this process to end.
    pub(super) asked_to_end: bool,
}

/// Event that wakes the supervisor.
enum Wakeup {
    Signal(ReceivedSignal),
    Report(Option<Report>),
    Lost(Lost),
    Renewed,
    StateChanged(LeaseState),
    ChildDied,
    Time,
}

/// The loop around a running child.
pub(super) struct Supervisor<'a> {
    progress: &'a ProgressOutput,
    lease: &'a Lease,
    timing: Timing,
    /// True if the first failed renewal ends the lease.
    strict: bool,
    lateness_meter: LatenessMeter,
    processes: Processes,
    work_guard: WorkGuard,
    ladder: Ladder,
    watched: bool,
    watchdog_is_reaped: bool,
    /// True if this process has killed the watchdog.
    replaced: bool,
    /// True if the watchdog has reported that the gate of the stub is open.
    started: bool,
    status: Option<ExitStatus>,
    alone: bool,
    stop_reason: Option<StopReason>,
    ended_unseen: bool,
    /// True if the watchdog stopped the child by itself, which it does before the deadline.
    stopped_by_watchdog: bool,
    /// Instant at which this process takes over the work of the watchdog.
    replace_at: Option<Instant>,
    /// Instant at which this process was continued after a stop.
    continued_at: Option<Instant>,
    /// Sentence about unkillable processes, once they are known.
    cannot_end: Option<String>,
    overrun: Option<Duration>,
    /// Held in place of a dead watchdog, until the tree is reaped.
    tree_witness: Option<OwnedFd>,
    not_started: Option<i32>,
    asked_to_end: bool,
    renewal_messages: RenewalMessages<'a>,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(
        progress: &'a ProgressOutput,
        lease: &'a Lease,
        work_guard: WorkGuard,
        timing: Timing,
        strict: bool,
        lateness_meter: LatenessMeter,
        processes: Processes,
    ) -> Self {
        Self {
            progress,
            lease,
            timing,
            strict,
            lateness_meter,
            processes,
            work_guard,
            ladder: Ladder::new(Guard::Supervisor, timing, BootClock::new().now()),
            watched: true,
            watchdog_is_reaped: false,
            replaced: false,
            started: false,
            status: None,
            alone: false,
            stop_reason: None,
            ended_unseen: false,
            stopped_by_watchdog: false,
            replace_at: None,
            continued_at: None,
            cannot_end: None,
            overrun: None,
            tree_witness: None,
            not_started: None,
            asked_to_end: false,
            renewal_messages: RenewalMessages::new(progress, lease),
        }
    }

    /// Starts the child through an armed watchdog. The watchdog locks the parts of the witness that it and the child
    /// need.
    pub(super) fn start(&mut self, environment: Vec<(String, String)>) {
        let until = Until::of(self.lease, self.timing);
        self.step(BootClock::new().now(), Input::Held(until), None);
        let term_at = until.times(self.timing.grace(), self.timing.margin()).term_at;
        let message = StartMessage { before: term_at, environment };
        let witness = self.processes.witness.as_ref().map(AsFd::as_fd);
        let start = WatchdogCommand::Start { until, witnessed: witness.is_some(), message };
        // A watchdog that does not start the child in time is stopped, and would keep the lease for nothing.
        self.replace_at = Some(term_at);
        if self.processes.control.link().send(&start.to_bytes(), witness.as_slice()).is_err() {
            self.replace_watchdog();
        }
    }

    /// Watches until the complete tree is dead, and returns the work guard.
    pub(super) async fn watch(mut self, signals: &Signals) -> (RunEnd, WorkGuard) {
        let lease = self.lease;
        let mut renewals = std::pin::pin!(lease.renewals());
        let mut states = std::pin::pin!(lease.states());
        let mut lost = false;
        // Renewals before this subscription.
        self.renewed();
        while !self.alone {
            let next = self.next_wakeup();
            let wakeup = tokio::select! {
                biased;
                came = signals.next() => Wakeup::Signal(came),
                report = Report::next(&self.processes.control), if self.watched => Wakeup::Report(report),
                why = lease.lost(), if !lost => Wakeup::Lost(why),
                Some(_) = renewals.next() => Wakeup::Renewed,
                Some(state) = states.next() => Wakeup::StateChanged(state),
                _ = self.processes.child_fd.readable(), if !self.ladder.child_is_dead() => Wakeup::ChildDied,
                () = BootClock::new().sleep_until(next) => Wakeup::Time,
            };
            // Signals first: a stop of this process explains everything that follows.
            while let Some(came) = signals.pending() {
                self.signalled(came);
            }
            self.check_overrun();
            match wakeup {
                Wakeup::Signal(came) => self.signalled(came),
                Wakeup::Report(Some(report)) => self.report_came(report),
                Wakeup::Report(None) => self.watchdog_is_gone(),
                Wakeup::Lost(why) => {
                    lost = true;
                    self.lost(why);
                }
                Wakeup::Renewed => {
                    self.renewed();
                    self.renewal_messages.succeeded();
                }
                Wakeup::StateChanged(state) => self.state_changed(&state),
                Wakeup::ChildDied => self.child_died(),
                Wakeup::Time => self.timer_came(next, BootClock::new().now()),
            }
        }
        if !self.watched
            && let Some(cgroup) = &self.processes.cgroup
        {
            // The watchdog exited before it could remove the cgroup.
            cgroup.remove();
        }
        let kept = self.cannot_end.is_some() && !self.has_lost_for_good();
        // Both guards were stopped, and the child was dead when they continued.
        let no_guard_ran = self.stop_reason == Some(StopReason::Stopped) && !self.stopped_by_watchdog;
        let ended_unseen = self.ended_unseen || (no_guard_ran && self.overrun.is_none());
        let ending = RunEnd {
            status: self.status,
            stop_reason: self.stop_reason,
            ended_unseen,
            not_started: self.not_started,
            overrun: self.overrun,
            kept,
            asked_to_end: self.asked_to_end,
        };
        (ending, self.work_guard)
    }

    // ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────

    fn report_came(&mut self, report: Report) {
        match report {
            Report::Ready { .. } => {}
            Report::Started => {
                self.started = true;
                self.replace_at = None;
            }
            Report::NotStarted { error } => self.not_started = Some(error),
            Report::Terminating { late_ms } => self.stopped_by_watchdog(late_ms),
            Report::Ended { status } => self.child_ended(ExitStatus::from_raw(status)),
            Report::Left { pid } => self.cannot_end(&Pid::from_raw(pid).into_iter().collect::<Vec<_>>()),
            Report::Overrun { millis } => {
                self.note_overrun(Duration::from_millis(millis.unsigned_abs().into()))
            }
            Report::Alone => self.alone = true,
        }
    }

    fn child_ended(&mut self, status: ExitStatus) {
        let now = BootClock::new().now();
        self.status = Some(status);
        self.step(now, Input::ChildEnded, None);
        if self.stop_reason.is_none() && self.lease.check().is_err() {
            self.ended_unseen = true;
            self.stop_reason =
                Some(if self.was_stopped() { StopReason::Stopped } else { StopReason::Lost(Lost::Expired) });
        }
        // The watchdog stops the leftovers of the child, and has its time for it.
        self.replace_at = Some(now + self.timing.grace() + 2 * WATCHDOG_SILENCE_MAX);
    }

    /// The child is dead, and the watchdog should report so soon.
    fn child_died(&mut self) {
        let now = BootClock::new().now();
        self.step(now, Input::ChildEnded, None);
        self.replace_at.get_or_insert(now + WATCHDOG_SILENCE_MAX);
    }

    fn stopped_by_watchdog(&mut self, late_ms: i32) {
        self.stopped_by_watchdog = true;
        if self.ladder.phase() == Phase::Running {
            let why = match self.why_not_renewed() {
                StopReason::Risk if late_ms > 0 => {
                    StopReason::Late(Duration::from_millis(late_ms.unsigned_abs().into()))
                }
                why => why,
            };
            self.stop_reason.get_or_insert(why);
            let now = BootClock::new().now();
            self.step(now, Input::TermSent { kill_at: now + self.timing.grace() }, None);
        }
    }

    fn renewed(&mut self) {
        let until = Until::of(self.lease, self.timing);
        if self.lease.check().is_ok() {
            self.step(BootClock::new().now(), Input::Held(until), None);
            self.send(WatchdogCommand::Until(until));
        }
    }

    fn state_changed(&mut self, state: &LeaseState) {
        if *state == LeaseState::AtRisk {
            self.say_renewal_failed();
        }
    }

    fn say_renewal_failed(&mut self) {
        // A strict lease is lost with the first failure.
        if self.ladder.phase() == Phase::Running && !self.strict {
            let now = BootClock::new().now();
            let stop_in = self.ladder.times().map_or(Duration::ZERO, |times| times.term_at.since(now));
            self.renewal_messages.failed(stop_in);
        }
    }

    fn lost(&mut self, why: Lost) {
        let in_order = matches!(why, Lost::Revoked { .. } | Lost::RenewalFailed);
        let why = if self.was_stopped() && why == Lost::Expired {
            StopReason::Stopped
        } else {
            StopReason::Lost(why)
        };
        // A contender that revokes waits for the acknowledgement or the ttl, and a strict lease is still in the record:
        // there is time for TERM and grace. Every other cause means that another holder may act already.
        if in_order {
            self.stop(why);
        } else {
            self.stop_reason.get_or_insert(why.clone());
            self.step(BootClock::new().now(), Input::Kill, None);
            self.say_stopping(&why);
        }
    }

    fn signalled(&mut self, ReceivedSignal { signal, by_terminal }: ReceivedSignal) {
        // A hang-up that a process sent, such as `systemctl reload`, is for the command.
        self.asked_to_end |= match signal {
            Heard::SIGTERM | Heard::SIGINT | Heard::SIGQUIT => true,
            Heard::SIGHUP => by_terminal,
            _ => false,
        };
        match signal {
            Heard::SIGCHLD => self.reap(),
            Heard::SIGCONT => self.continued_at = Some(BootClock::new().now()),
            // The kernel has sent it to the child as well. Only a hang-up goes to the leader of the session alone,
            // which is this process if there is no shell around it (`ssh -t host tenure run …`).
            _ if by_terminal && !(signal == Heard::SIGHUP && leads_its_session()) => {}
            _ => {
                if let Some(sentence) = &self.cannot_end {
                    self.say_lease_kept(sentence.clone());
                }
                if let Some(signal) = Signal::from_named_raw(signal as i32) {
                    let _ = pidfd_send_signal(self.processes.child_fd.get_ref(), signal);
                }
            }
        }
    }

    /// A timer that was due at `due` has fired.
    fn timer_came(&mut self, due: Instant, now: Instant) {
        if !self.was_stopped() {
            let tree = self.tree();
            self.ladder.note_wakeup(due, now, || self.lateness_meter.of(&tree, now));
        }
        self.step(now, Input::Time, Some(self.why_not_renewed()));
        if self.replace_at.is_some_and(|at| at <= now) {
            self.replace_watchdog();
        }
        if self.repeat_at(now).is_some_and(|at| at <= now) {
            self.say_renewal_failed();
        }
        if !self.watched {
            self.reap();
        }
    }

    fn next_wakeup(&self) -> Instant {
        let now = BootClock::new().now();
        let adopted = (!self.watched).then(|| self.ladder.sweep_at(now));
        let due = [self.ladder.next(now), adopted, self.replace_at, self.repeat_at(now)];
        due.into_iter().flatten().fold(now + self.lateness_meter.pause, Instant::min)
    }

    /// The time to report again that renewals fail, while the command runs.
    fn repeat_at(&self, now: Instant) -> Option<Instant> {
        self.renewal_messages.due(now).filter(|_| self.ladder.phase() == Phase::Running)
    }

    // ── processes that outlive the deadline ─────────────────────────────────────────────────────────────────────────

    /// KILL has no effect, and a process of the tree is left: the lease is kept until that process exits by itself.
    fn cannot_end(&mut self, left: &[Pid]) {
        // The watchdog watches the rest, and is not late.
        self.replace_at = None;
        if self.cannot_end.is_some() {
            return;
        }
        let numbers: Vec<_> = left.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
        let who = match numbers.join(", ") {
            none if none.is_empty() => "a process that /proc does not show".to_owned(),
            list => format!("process {list}"),
        };
        self.work_guard.cannot_stop(&format!("{who} runs as another user"));
        let what = format!(
            "{} of {} (token {})",
            self.lease.key().titled(),
            self.lease.holder(),
            self.lease.token()
        );
        let who = format!("{who} of its command runs as another user and could not be killed");
        let sentence = if self.has_lost_for_good() {
            format!("{what} is lost, but {who}. Kill it: another holder may act at the same time")
        } else {
            format!("{what} is kept: {who}. Kill it: tenure then releases the lease")
        };
        self.say_lease_kept(sentence.clone());
        self.cannot_end = Some(sentence);
    }

    /// True if the record does not belong to this holder any more, so that it cannot be kept.
    fn has_lost_for_good(&self) -> bool {
        self.stop_reason.as_ref().is_some_and(StopReason::is_definite)
    }

    fn say_lease_kept(&self, sentence: String) {
        self.progress.say(&Notice {
            name: "kept",
            fields: json!({ "message": sentence }),
            sentence,
            importance: Importance::Trouble,
        });
    }

    /// Records that the child is alive after the deadline, if it is: both guards were stopped, or woke up late.
    fn check_overrun(&mut self) {
        let now = BootClock::new().now();
        if let Some(by) = self.ladder.overrun(now).filter(|_| self.child_lives()) {
            self.note_overrun(by);
        }
    }

    /// A process of the tree was alive this long after the deadline.
    fn note_overrun(&mut self, by: Duration) {
        self.overrun = self.overrun.max(Some(by));
    }

    /// As the kernel reports it now.
    fn child_lives(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut readable = [PollFd::new(self.processes.child_fd.get_ref(), PollFlags::IN)];
        poll(&mut readable, Some(&at_once)) == Ok(0)
    }

    // ── helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// True if this process continues after a stop. A loss during the stop is found at once.
    fn was_stopped(&self) -> bool {
        self.continued_at.is_some_and(|at| BootClock::new().now().since(at) < WATCHDOG_SILENCE_MAX)
    }

    /// Reason why no renewal came before the time to stop.
    fn why_not_renewed(&self) -> StopReason {
        if self.was_stopped() {
            return StopReason::Stopped;
        }
        self.ladder.late(BootClock::new().now()).map_or(StopReason::Risk, StopReason::Late)
    }

    fn send(&mut self, command: WatchdogCommand) {
        if !self.watched {
            return;
        }
        match self.processes.control.link().send(&command.to_bytes(), &[]) {
            // It has not read for so long that it counts as dead, and its end will kill the child.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stop(StopReason::Unwatched),
            _ => {}
        }
    }

    fn say_stopping(&self, why: &StopReason) {
        self.progress.say(&Notice {
            name: "stopping",
            fields: json!({ "why": why.word() }),
            sentence: format!("stopping the command: {}", why.sentence()),
            importance: Importance::News,
        });
    }
}

fn leads_its_session() -> bool {
    rustix::process::getsid(None) == Ok(rustix::process::getpid())
}

/// Longest silence of a watchdog that has something to report: under heavy load it is late by a tenth of this.
const WATCHDOG_SILENCE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;

    use rustix::process::{PidfdFlags, pidfd_open};
    use tenure::Coordinator;
    use tenure::clock::ManualClock;
    use tenure::store::Memory;

    use super::*;
    use crate::progress::Verbosity;
    use crate::ready::when_readable;
    use crate::run::cgroup_texts::CgroupTexts;
    use crate::run::link::Link;
    use crate::run::schedule::Schedule;

    /// Reason for which a supervisor stops a child, if it learns of its end this long after the grant.
    async fn reason_after(span: Duration) -> Option<StopReason> {
        let timing = Timing::new(Duration::from_secs(15)).unwrap();
        let clock = Arc::new(ManualClock::new());
        let coordinator = Coordinator::builder().clock(clock.clone()).connect(Memory::new()).await.unwrap();
        let lease = coordinator.lease("x").unwrap().timing(timing).acquire().await.unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (control, _theirs) = Link::pair().unwrap();
        let processes = Processes {
            watchdog: pid,
            cgroup: None,
            control: LinkListener::new(control).unwrap(),
            child: pid,
            child_fd: when_readable(pidfd_open(pid, PidfdFlags::empty()).unwrap()).unwrap(),
            witness: None,
            strangers: Vec::new(),
        };
        let lateness_meter = LatenessMeter::new(timing, Schedule::of_the_guards(&CgroupTexts::read()));
        let work_guard = lease.work_guard().unwrap();
        let progress = ProgressOutput::new(Verbosity::Quiet, false, "x", "memory:");
        let mut supervisor =
            Supervisor::new(&progress, &lease, work_guard, timing, false, lateness_meter, processes);
        clock.advance(span);
        supervisor.report_came(Report::Ended { status: 0 });
        child.wait().unwrap();
        supervisor.stop_reason
    }

    #[tokio::test]
    async fn a_child_that_ends_just_after_the_end_of_the_lease_was_not_in_time() {
        assert_eq!(reason_after(Duration::ZERO).await, None);
        assert_eq!(reason_after(Duration::from_secs(15)).await, Some(StopReason::Lost(Lost::Expired)));
    }
}
