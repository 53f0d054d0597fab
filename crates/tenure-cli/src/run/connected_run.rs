use std::cell::Cell;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Coordinator, Key, Lease, Timing, WitnessPart, WorkGuard};
use tenure_core::election::TermEnd;

use super::cgroup::{self, Cgroup, LeaseMark};
use super::lateness::LatenessMeter;
use super::launch::Launch;
use super::link::LinkListener;
use super::outcome::{RunOutcome, TermOutcome};
use super::report::Report;
use super::setuid;
use super::stop_reason::StopReason;
use super::supervisor::{Processes, RunEnd, Supervisor};
use super::until::Until;
use crate::acquire::Acquisition;
use crate::args::Run;
use crate::duration;
use crate::exit::{self, Failure};
use crate::keeper_reports::KeeperReports;
use crate::outlived_commands::OutlivedCommands;
use crate::progress::{Importance, Notice, ProgressOutput};
use crate::ready::when_readable;
use crate::signals::Signals;
use crate::slots::SlotAcquisition;
use crate::store_trouble::StoreTrouble;
use crate::wait_limit::WaitLimit;

/// One `tenure run`, connected to its store.
#[derive(Debug)]
pub(super) struct ConnectedRun<'a> {
    pub(super) run: &'a Run,
    pub(super) wait: WaitLimit,
    pub(super) key: Key,
    pub(super) timing: Timing,
    pub(super) progress: &'a ProgressOutput,
    pub(super) coordinator: Coordinator,
    /// The URL of the store, for the child and for messages.
    pub(super) url: String,
    pub(super) signals: Signals,
    /// Identifies the cgroups of this lease.
    pub(super) mark: LeaseMark,
    pub(super) reports: Arc<KeeperReports>,
    pub(super) lateness_meter: LatenessMeter,
}

impl ConnectedRun<'_> {
    /// Acquires the lease, runs the command, and releases.
    pub(super) async fn acquire_and_run(&self, launch: Launch) -> Result<RunOutcome, Failure> {
        let control = LinkListener::new(launch.control).map_err(|_| self.no_watchdog())?;
        let stub = Cell::new(None);
        let lease = tokio::select! {
            granted = self.acquire() => granted?,
            signal = self.signals.ended() => return Ok(self.give_up(signal).await),
            () = wait_for_watchdog_end(&control, &stub) => {
                let _ = self.release_or_lapse().await;
                return Ok(RunOutcome::NotStarted(self.no_watchdog()));
            }
            never = self.keep_ending_leftovers() => match never {},
        };
        let granted_at = BootClock::new().now();
        let child = match stub.get() {
            Some(child) => Some(child),
            // A stopped watchdog does not answer, and would keep the lease for nothing.
            None => tokio::select! {
                child = ready_stub(&control) => child,
                signal = self.signals.ended() => return Ok(self.give_up(signal).await),
                () = BootClock::new().sleep_until(self.start_before(&lease)) => None,
            },
        };
        let Launch { watchdog, cgroup, strangers, .. } = launch;
        let begun = self.start_child(&lease, watchdog, cgroup, strangers, control, child);
        let supervisor = match begun {
            Ok(supervisor) => supervisor,
            Err(failure) => {
                let _ = self.release_or_lapse().await;
                return Ok(RunOutcome::NotStarted(failure));
            }
        };
        let (ending, work_guard) = supervisor.watch(&self.signals).await;
        let lasted = BootClock::new().now().since(granted_at);
        Ok(RunOutcome::Term(self.finish(&lease, &ending, work_guard, lasted).await))
    }

    /// Kills leftovers as long as this process waits: guards may be killed at any time.
    async fn keep_ending_leftovers(&self) -> Infallible {
        let mut pause = LEFTOVERS_FIRST;
        loop {
            BootClock::new().sleep_until(BootClock::new().now() + pause).await;
            self.end_leftovers();
            pause = (pause * 2).min(LEFTOVERS_MAX);
        }
    }

    /// Kills the leftovers of earlier runs of this lease in their cgroups.
    fn end_leftovers(&self) {
        if cgroup::end_leftovers(self.mark) {
            self.progress.say(&Notice {
                name: "leftovers_ended",
                fields: json!({}),
                sentence: format!(
                    "an earlier command of {} was still running after its supervisor and watchdog were killed: tenure \
                     has killed it",
                    self.title()
                ),
                importance: Importance::News,
            });
        }
    }

    /// The instant from which it is too late to start.
    fn start_before(&self, lease: &Lease) -> Instant {
        Until::of(lease, self.timing).times(self.timing.grace(), self.timing.margin()).term_at
    }

    /// The lease, with a witness to pass on, if it has one.
    async fn acquire(&self) -> Result<Lease, Failure> {
        if !self.wait.allows_waiting() {
            // A run that does not wait cannot check later.
            self.end_leftovers();
        }
        let mut once_more = true;
        loop {
            let (lease, waited) = match self.run.slots {
                Some(slots) => self.acquire_slot(slots).await?,
                None => self.acquire_lease().await?,
            };
            match lease.witness(WitnessPart::Guards) {
                Ok(_) => {
                    self.say_granted(&lease, waited);
                    return Ok(lease);
                }
                // It was created before the wait, in a directory that was cleaned up since. The next one is new.
                Err(error) => {
                    let _ = lease.release().await;
                    if !std::mem::take(&mut once_more) {
                        return Err(error.into());
                    }
                }
            }
        }
    }

    /// One slot of the group.
    async fn acquire_slot(&self, slots: u32) -> Result<(Lease, bool), Failure> {
        let mut request = self.coordinator.slots(self.key.as_str(), slots)?.timing(self.timing);
        request = request.heed_tree(self.run.supervision.orphan_wait);
        if self.run.supervision.strict {
            request = request.strict();
        }
        if let Some(value) = &self.run.announcement.value {
            request = request.value(value);
        }
        let acquisition = SlotAcquisition {
            coordinator: &self.coordinator,
            group: &self.key,
            url: &self.url,
            progress: self.progress,
            wait: self.wait,
            quiet: self.run.quiet,
            conflict: self.run.conflict_exit_code,
            outlived: self.outlived(),
            trouble: self.trouble(),
        };
        acquisition.acquire(request).await
    }

    fn outlived(&self) -> OutlivedCommands<'_> {
        OutlivedCommands {
            coordinator: &self.coordinator,
            url: &self.url,
            progress: self.progress,
            reports: &self.reports.outlived,
            limit: self.run.supervision.orphan_wait,
        }
    }

    fn trouble(&self) -> StoreTrouble<'_> {
        StoreTrouble { progress: self.progress, errors: &self.reports.errors }
    }

    async fn acquire_lease(&self) -> Result<(Lease, bool), Failure> {
        let mut request = self.coordinator.lease(self.key.as_str())?.timing(self.timing);
        request = request.heed_tree(self.run.supervision.orphan_wait);
        if self.run.supervision.strict {
            request = request.strict();
        }
        if let Some(value) = &self.run.announcement.value {
            request = request.value(value);
        }
        if let Some(period) = self.run.once_per {
            request = request.once_per(period);
        }
        let acquisition = Acquisition {
            coordinator: &self.coordinator,
            key: &self.key,
            url: &self.url,
            progress: self.progress,
            wait: self.wait,
            taking: self.run.taking.as_ref(),
            quiet: self.run.quiet,
            conflict: self.run.conflict_exit_code,
            outlived: self.outlived(),
            trouble: self.trouble(),
        };
        acquisition.acquire(request, async |request| request.acquire().await).await
    }

    /// Starts the child.
    fn start_child<'l>(
        &'l self,
        lease: &'l Lease,
        watchdog: Pid,
        place: cgroup::CgroupPath,
        strangers: Vec<Pid>,
        control: LinkListener,
        child: Option<Pid>,
    ) -> Result<Supervisor<'l>, Failure> {
        self.end_leftovers();
        // The stub waits at its gate, so the process id is its own.
        let child = child.ok_or_else(|| self.no_watchdog())?;
        let descriptor = pidfd_open(child, PidfdFlags::empty()).map_err(|_| self.no_watchdog())?;
        let child_fd = when_readable(descriptor).map_err(|_| self.no_watchdog())?;
        let work_guard = lease.work_guard()?;
        let cgroup = Cgroup::find(&place);
        if cgroup.is_none() && place.exists() {
            // Without a lock on it, this process would not count as a living guard.
            return Err(self.no_watchdog());
        }
        // One write kills a complete cgroup, whichever users its processes run as.
        if cgroup.is_none()
            && let Some(user) = setuid::foreign_user(&self.run.command[0])
        {
            self.say_cannot_stop(lease, user);
            work_guard.cannot_stop(&format!("it runs as user {user}, and its supervisor may not kill it"));
        }
        let witness = lease.witness(WitnessPart::Guards)?;
        let processes = Processes { watchdog, cgroup, control, child, child_fd, witness, strangers };
        let mut supervisor = Supervisor::new(
            self.progress,
            lease,
            work_guard,
            self.timing,
            self.run.supervision.strict,
            self.lateness_meter,
            processes,
        );
        supervisor.start(self.environment(lease));
        self.progress.say(&Notice {
            name: "started",
            fields: json!({ "pid": child.as_raw_nonzero() }),
            sentence: format!("{} runs as process {}", self.run.command[0].display(), child.as_raw_nonzero()),
            importance: Importance::Detail,
        });
        Ok(supervisor)
    }

    /// Environment of the child.
    fn environment(&self, lease: &Lease) -> Vec<(String, String)> {
        let variables = [
            ("TENURE_NAME", self.key.to_string()),
            ("TENURE_TOKEN", lease.token().to_string()),
            ("TENURE_HOLDER", lease.holder().id().to_string()),
            ("TENURE_STORE", self.url.clone()),
        ];
        let slot = lease.key().slot_index().map(|slot| ("TENURE_SLOT", slot.to_string()));
        variables.into_iter().chain(slot).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// A signal arrived during the wait: releases the lease, if it was granted by now.
    async fn give_up(&self, signal: Signal) -> RunOutcome {
        let _ = self.release_or_lapse().await;
        RunOutcome::GaveUp(ExitCode::from(128 + signal as u8))
    }

    /// Releases the lease, unless a second signal arrives: then the lease lapses.
    async fn release_or_lapse(&self) -> Result<(), NotReleased> {
        let hurried = async {
            // The signal that ended the command often arrives twice: from the terminal that hangs up and from its
            // shell.
            BootClock::new().sleep_until(BootClock::new().now() + RELEASE_USUAL).await;
            self.signals.ended().await
        };
        tokio::select! {
            left = self.coordinator.shutdown() => {
                left.map_err(|error| NotReleased { sentence: error.to_string(), by_signal: false })
            }
            signal = hurried => {
                let sentence = format!(
                    "{} is not released but lapses within {}: {signal} arrived during the release",
                    self.title(),
                    self.timing.ttl()
                );
                Err(NotReleased { sentence, by_signal: true })
            }
        }
    }

    async fn finish(
        &self,
        lease: &Lease,
        ending: &RunEnd,
        work_guard: WorkGuard,
        lasted: Duration,
    ) -> TermOutcome {
        self.say_ended(ending);
        let what = format!(
            "{} of {} (token {}) on {}",
            lease.key().titled(),
            lease.holder(),
            lease.token(),
            self.url
        );
        if let Some(why) = &ending.stop_reason {
            self.say_lost(why);
        }
        let counts = self.counts(ending);
        let reported = if counts { lease.succeeded().await } else { Ok(()) };
        // The tree is dead.
        drop(work_guard);
        let released = self.release_or_lapse().await;
        // A release that could not record the success fails.
        if counts && (reported.is_err() || released.is_err()) {
            self.say_not_recorded(lease);
        }
        let hurried = matches!(released, Err(NotReleased { by_signal: true, .. }));
        match released {
            Ok(()) if ending.stop_reason.as_ref().is_some_and(StopReason::is_definite) => {}
            Ok(()) => self.progress.say(&Notice {
                name: "released",
                fields: json!({}),
                sentence: format!("{} is released", lease.key().titled()),
                importance: Importance::Log,
            }),
            Err(NotReleased { sentence, .. }) => self.progress.say(&Notice {
                name: "not_released",
                fields: json!({ "message": sentence }),
                sentence,
                importance: Importance::Trouble,
            }),
        }
        let (exit, sentence) = self.exit(lease, ending, &what);
        let end = ending.stop_reason.as_ref().map_or(TermEnd::Released, StopReason::term_end);
        TermOutcome { exit, end, sentence, lasted, asked_to_end: ending.asked_to_end || hurried }
    }

    /// True if the period of `--once-per` begins with this run.
    fn counts(&self, ending: &RunEnd) -> bool {
        // A command that was asked to end may exit with 0 before its work is done.
        let is_stopped = ending.stop_reason.is_some() || ending.asked_to_end;
        let Some(status) = ending.status.filter(|_| !is_stopped && ending.not_started.is_none()) else {
            return false;
        };
        self.run.once_per.is_some() && (status.success() || self.run.count_failures)
    }

    /// The exit of a command that ran once, and the end in words.
    fn exit(&self, lease: &Lease, ending: &RunEnd, what: &str) -> (Result<ExitCode, Failure>, String) {
        if let Some(why) = &ending.stop_reason {
            let over = match ending.overrun {
                None if ending.ended_unseen => format!(
                    "the command ended by itself, and {what} was over when tenure saw that, so the command may have acted \
                     after the deadline"
                ),
                None => format!("the command was stopped, and {what} is over"),
                Some(by) => overrun_sentence(what, by, ending.kept),
            };
            let mut sentence = format!("{over}: {}", why.sentence());
            if let Some(trouble) = lease.last_error().filter(|_| why.is_of_the_store()) {
                sentence = format!("{sentence} ({trouble})");
            }
            let failure = Failure::new(exit::LOST, format!("{sentence}. {}", why.next_step()));
            return (Err(failure), sentence);
        }
        let program = format!("{:?}", self.run.command[0]);
        match ending.not_started {
            None => {
                let code = exit_code(ending.status);
                (Ok(ExitCode::from(code)), format!("the command ended with {code}, and {what} is released"))
            }
            Some(0) => {
                let sentence = format!("{what} was granted too late to start {program}");
                (Err(Failure::new(exit::LOST, format!("{sentence}: try again"))), sentence)
            }
            Some(number) => {
                let error = io::Error::from_raw_os_error(number);
                let next = match error.kind() {
                    io::ErrorKind::NotFound if names_a_path(&self.run.command[0]) => {
                        "Check the path, and the interpreter if it is a script"
                    }
                    io::ErrorKind::NotFound if has_spaces(&self.run.command[0]) => {
                        "Write its arguments as separate words, or use sh -c"
                    }
                    io::ErrorKind::NotFound => "It is not on PATH: give its full path",
                    io::ErrorKind::PermissionDenied => "Name a program that this user may execute",
                    _ => "Name a program that this machine can execute",
                };
                let sentence = format!("{program} could not be started under {what}: {error}");
                let failure = Failure::new(exit_code(ending.status), format!("{sentence}. {next}"));
                (Err(failure), sentence)
            }
        }
    }

    /// Error: no command runs without a watchdog.
    fn no_watchdog(&self) -> Failure {
        Failure::unavailable(format!(
            "{:?} was not run under {}: its watchdog could not be started, or was killed. Try again",
            self.run.command[0],
            self.title()
        ))
    }

    /// The lease, or the group of which this command wants a slot.
    fn title(&self) -> String {
        match self.run.slots {
            Some(_) => format!("a slot of {}", self.key),
            None => self.key.titled(),
        }
    }

    // ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────

    fn say_granted(&self, lease: &Lease, waited: bool) {
        self.progress.grant(lease);
        self.progress.say(&Notice {
            name: "granted",
            fields: json!({ "ttl_ms": self.timing.ttl().as_millis() }),
            sentence: format!("{} is granted, with token {}", lease.key().titled(), lease.token()),
            // After a message that it waits, the user needs to know when it no longer does.
            importance: if waited { Importance::News } else { Importance::Log },
        });
    }

    fn say_ended(&self, ending: &RunEnd) {
        let status = ending.status;
        self.progress.say(&Notice {
            name: "ended",
            fields: json!({
                "code": status.and_then(|status| status.code()),
                "signal": status.and_then(|status| status.signal()),
            }),
            sentence: match status {
                Some(status) => format!("the command ended: {status}"),
                None => "the command ended".to_owned(),
            },
            importance: Importance::Detail,
        });
    }

    /// Reports the loss for programs. For people, the error at the end does.
    fn say_lost(&self, why: &StopReason) {
        let sentence = why.sentence();
        self.progress.say(&Notice {
            name: "lost",
            fields: json!({ "why": why.word(), "message": sentence }),
            sentence,
            importance: Importance::Machine,
        });
    }

    /// Reports that the end of the command is not in the record.
    fn say_not_recorded(&self, lease: &Lease) {
        self.progress.say(&Notice {
            name: "not_recorded",
            fields: json!({}),
            sentence: format!(
                "the end of the command was not recorded in {} on {}, so it may run again before --once-per is over. Check the \
                 store, and that a second run does no harm",
                lease.key().titled(),
                self.url
            ),
            importance: Importance::Trouble,
        });
    }

    /// Reports, before the command starts, that it cannot be stopped.
    fn say_cannot_stop(&self, lease: &Lease, user: u32) {
        self.progress.say(&Notice {
            name: "cannot_stop",
            fields: json!({ "user": user }),
            sentence: format!(
                "{} runs as user {user}, whose processes this user may not kill: {} is kept until all of them \
                 have ended by themselves, and cannot be stolen without --now. Start tenure as user {user} instead",
                self.run.command[0].display(),
                lease.key().titled()
            ),
            importance: Importance::News,
        });
    }
}

/// True if the command is probably a program and its arguments in one word.
fn has_spaces(command: &OsStr) -> bool {
    command.as_encoded_bytes().contains(&b' ')
}

/// True if the kernel takes the command as a path, and does not search it on PATH.
fn names_a_path(command: &OsStr) -> bool {
    command.as_encoded_bytes().contains(&b'/')
}

/// A lease that was not released, and lapses.
struct NotReleased {
    sentence: String,
    /// True if a signal cut the release short.
    by_signal: bool,
}

/// The beginning of the sentence about a command that was alive after its deadline.
fn overrun_sentence(what: &str, by: Duration, kept: bool) -> String {
    let by = duration::at_least(by);
    if kept {
        format!(
            "{what} was overrun: its command was alive for {by} after the deadline, and the record was kept during \
             that time as far as the store could be reached"
        )
    } else {
        format!(
            "{what} was overrun: its command was alive for {by} after the deadline, and another holder may have acted \
             at the same time"
        )
    }
}

/// Time until the first search for leftovers during the wait. It doubles up to the maximum: a search lists every cgroup
/// of the machine. Remaining leftovers are killed before the command starts.
const LEFTOVERS_FIRST: Duration = Duration::from_millis(100);
const LEFTOVERS_MAX: Duration = Duration::from_secs(10);

/// Time after which a signal cuts the release short: longer than a release takes on any healthy store.
const RELEASE_USUAL: Duration = Duration::from_millis(500);

/// Waits until the watchdog has exited, and stores the process id of the stub when it arrives.
async fn wait_for_watchdog_end(control: &LinkListener, stub: &Cell<Option<Pid>>) {
    while let Some(number) = ready_stub(control).await {
        stub.set(Some(number));
    }
}

/// The process id of the stub at its gate; `None` if the watchdog has exited.
async fn ready_stub(control: &LinkListener) -> Option<Pid> {
    loop {
        if let Report::Ready { stub } = Report::next(control).await? {
            return Pid::from_raw(stub);
        }
    }
}

/// The exit code of the child, or 128 and the number of the signal that killed it.
fn exit_code(status: Option<ExitStatus>) -> u8 {
    let Some(status) = status else { return exit::LOST };
    let number = status.code().or(status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(exit::LOST)
}
