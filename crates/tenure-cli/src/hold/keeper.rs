//! The process in the background that renews the lease.
//!
//! It has its own session, so that no key on the user's terminal and no hang-up ends it, and no file of the script open
//! except standard error. A signal that would end it has no effect once the lease is granted: its life is that of its
//! subject.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::exit;

use futures_util::StreamExt;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use serde::Serialize;
use serde_json::json;
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, Holder, Key, Lease, ProcessInfo, Timing, WorkGuard};
use tokio::io::unix::AsyncFd;

use super::foreground::PRINTED;
use super::keeper_message::KeeperMessage;
use super::loss::{Loss, is_definite};
use super::signal_name::name_of;
use super::subject::Subject;
use crate::acquire::Acquisition;
use crate::args::{Args, Hold};
use crate::exit::{self, Failure};
use crate::keeper_reports::KeeperReports;
use crate::outlived_commands::OutlivedCommands;
use crate::progress::{Importance, Notice, ProgressOutput, Verbosity};
use crate::ready::when_readable;
use crate::run::link::{Link, LinkListener};
use crate::run::title;
use crate::signals::{self, Blocked};
use crate::store::ChosenStore;
use crate::store_trouble::StoreTrouble;
use crate::wait_limit::WaitLimit;
use crate::{descriptors, duration, output, panics, store};

/// Parameters of a keeper.
#[derive(Debug)]
pub(super) struct KeeperSetup<'a> {
    pub(super) args: &'a Args,
    pub(super) hold: &'a Hold,
    pub(super) wait: WaitLimit,
    pub(super) key: Key,
    pub(super) timing: Timing,
    pub(super) holder: Holder,
    /// The process of the script, which the record shows.
    pub(super) process: ProcessInfo,
    pub(super) subject: Subject,
}

/// Acquires the lease, keeps it, and never returns.
pub(super) fn run(mut setup: KeeperSetup<'_>, link: Link) -> ! {
    let json = setup.hold.json;
    let done = setup.prepare(&link).and_then(|(blocked, standard_error)| {
        store::block_on(async {
            let link = LinkListener::new(link).map_err(no_keeper)?;
            let ended = setup.subject.ended().and_then(when_readable).map_err(no_keeper)?;
            let (name, chosen) = (setup.key.as_str(), store::choose(setup.args)?);
            let verbosity = Verbosity::of(setup.hold.quiet, false);
            let progress = ProgressOutput::new(verbosity, json, name, &chosen.url());
            let keeper = Keeper { setup, chosen, link, ended, standard_error, progress };
            let done = keeper.acquire_and_keep(blocked).await;
            // Before the foreground process sees the end of the link.
            if let Err(failure) = &done {
                failure.report(json);
            }
            Ok(done.unwrap_or_else(|failure| failure.number()))
        })
    });
    exit(i32::from(done.unwrap_or_else(|failure| {
        failure.report(json);
        failure.number()
    })))
}

impl KeeperSetup<'_> {
    /// Leaves the session and the files of the script. Before the first thread.
    fn prepare(&mut self, link: &Link) -> Result<(Blocked, StandardError), Failure> {
        title::set(TITLE);
        panics::abort();
        rustix::process::setsid().map_err(|error| no_keeper(error.into()))?;
        let standard_error = StandardError::detach().map_err(no_keeper)?;
        let mut kept = self.subject.detach();
        kept.insert(link.as_raw_fd());
        descriptors::close_others(&kept).map_err(no_keeper)?;
        Ok((Blocked::now().map_err(signals::no_signals)?, standard_error))
    }
}

/// A keeper at work.
struct Keeper<'a> {
    setup: KeeperSetup<'a>,
    chosen: ChosenStore,
    link: LinkListener,
    /// Readable once the subject has ended.
    ended: AsyncFd<OwnedFd>,
    standard_error: StandardError,
    progress: ProgressOutput,
}

/// The answer as JSON. The fields and their names are a contract: `docs/reference/command/hold.md`.
#[derive(Debug, Serialize)]
struct HoldAnswer<'a> {
    store: &'a str,
    name: &'a str,
    holder: &'a str,
    token: u64,
    ttl_ms: u64,
    keeper_pid: u32,
}

impl Keeper<'_> {
    /// Keeps the lease until the subject has ended or the lease is lost. Returns the exit code.
    async fn acquire_and_keep(&self, blocked: Blocked) -> Result<u8, Failure> {
        let KeeperSetup { args, hold, wait, key, timing, holder, process, subject } = &self.setup;
        let signals = blocked.take().map_err(signals::no_signals)?;
        let opened = self.chosen.open()?;
        opened.check_write_rate(timing)?;
        let url = opened.url.clone();
        let (reports, progress) = (KeeperReports::new(), &self.progress);
        let builder = store::coordinator(args).recorder(reports.clone());
        let builder = builder.holder(holder.clone()).process(process.clone());
        let coordinator = tokio::select! {
            connected = store::connect_while_waiting(builder, opened, wait, &signals, progress) => connected?,
            () = self.foreground_ended() => return Ok(0),
            () = self.subject_ended() => return Err(subject.ended_early()),
        };
        let acquisition = Acquisition {
            coordinator: &coordinator,
            key,
            url: &url,
            progress,
            wait: *wait,
            taking: None,
            quiet: hold.quiet,
            conflict: hold.conflict_exit_code,
            outlived: OutlivedCommands {
                coordinator: &coordinator,
                url: &url,
                progress,
                reports: &reports.outlived,
                limit: hold.orphan_wait,
            },
            trouble: StoreTrouble { progress, errors: &reports.errors },
        };
        // The end of the keeper is not the end of the script, so no contender may conclude anything from it.
        let request =
            coordinator.lease(key.as_str())?.timing(*timing).heed_tree(hold.orphan_wait).without_witness();
        let given_up = tokio::select! {
            granted = acquisition.acquire(request, async |request| request.acquire().await) => {
                return self.keep(&coordinator, &granted?.0, &url).await;
            }
            signal = signals.ended() => Failure::silent(128 + signal as u8),
            () = self.foreground_ended() => Failure::silent(0),
            () = self.subject_ended() => subject.ended_early(),
        };
        // Releases a lease that may have been granted in between.
        let _ = coordinator.shutdown().await;
        Err(given_up)
    }

    /// Hands the lease over to the script, and keeps it.
    async fn keep(&self, coordinator: &Coordinator, lease: &Lease, url: &str) -> Result<u8, Failure> {
        let work_guard = match self.hand_over(lease, url).await {
            Ok(work_guard) => work_guard,
            Err(failure) => {
                let _ = coordinator.shutdown().await;
                return Err(failure);
            }
        };
        self.progress.grant(lease);
        self.standard_error.keep_or_close();
        // The script may have started in a directory that is unmounted before it ends. All paths are absolute by now.
        let _ = rustix::process::chdir("/");
        let ended = tokio::select! {
            () = self.subject_ended() => None,
            loss = self.next_loss(lease) => Some(loss),
        };
        let code = match ended {
            None => 0,
            Some(loss) => {
                self.stop_script(lease, url, &loss);
                exit::LOST
            }
        };
        let has_ended = tokio::select! {
            biased;
            () = self.subject_ended() => true,
            () = self.nothing_left(lease) => false,
        };
        // A reader that waits for the end of the script's messages does not wait for the store.
        self.standard_error.close();
        if has_ended && self.setup.subject.is_whole_script() {
            drop(work_guard);
            let _ = coordinator.shutdown().await;
        }
        // Without a release: the lease lapses by its ttl, if it is still there.
        exit(i32::from(code))
    }

    /// Has the foreground process print the answer, and promises it that the lease is kept.
    async fn hand_over(&self, lease: &Lease, url: &str) -> Result<WorkGuard, Failure> {
        let work_guard = lease.work_guard()?;
        let KeeperSetup { hold, key, timing, .. } = &self.setup;
        let answer = HoldAnswer {
            store: url,
            name: key.as_str(),
            holder: lease.holder().id(),
            token: lease.token().get(),
            ttl_ms: timing.ttl().as_millis(),
            keeper_pid: std::process::id(),
        };
        let answer = if hold.json { output::json_line(&answer) } else { format!("{}\n", lease.token()) };
        self.send(&KeeperMessage::Granted { answer });
        let clock = BootClock::new();
        tokio::select! {
            printed = self.link.next() => match printed {
                Some((message, _)) if message == PRINTED => {}
                _ => return Err(Failure::silent(0)),
            },
            why = lease.lost() => {
                let what = self.lease_words(lease, url);
                let sentence = format!("{what} was lost before its token was printed: {why}. Try again");
                return Err(Failure::new(exit::LOST, sentence));
            }
            // A foreground process that is stopped (Ctrl-Z) would keep the lease for nothing.
            () = clock.sleep_until(clock.now() + timing.ttl().as_duration()) => {
                let what = self.lease_words(lease, url);
                let sentence = format!("{what} is released, because its token could not be printed in time. Try again");
                return Err(Failure::new(exit::LOST, sentence));
            }
        }
        self.send(&KeeperMessage::Kept);
        Ok(work_guard)
    }

    /// Waits until the script must stop.
    async fn next_loss(&self, lease: &Lease) -> Loss {
        let timing = self.setup.timing;
        let least = timing.grace() + timing.margin();
        let clock = BootClock::new();
        let mut renewals = std::pin::pin!(lease.renewals());
        loop {
            let stop_at = clock.now() + lease.remaining() - least;
            tokio::select! {
                biased;
                why = lease.lost() => return Loss::Lost(why),
                Some(_) = renewals.next() => {}
                () = clock.sleep_until(stop_at) => {
                    let left = lease.remaining();
                    if left <= least {
                        return Loss::NotRenewed { left };
                    }
                }
            }
        }
    }

    /// Signals the script, once, and reports it.
    fn stop_script(&self, lease: &Lease, url: &str, loss: &Loss) {
        let KeeperSetup { hold, subject, .. } = &self.setup;
        let count = subject.signal(hold.signal);
        let mut why = loss.sentence();
        if let Some(trouble) = lease.last_error().filter(|_| loss.is_of_the_store()) {
            why = format!("{why} ({trouble})");
        }
        let sent = subject.signalled_words(hold.signal, count);
        let sentence = output::plain(&format!("{} {why}. {sent}", self.lease_words(lease, url)));
        self.progress.say(&Notice {
            name: "lost",
            fields: json!({
                "why": loss.word(),
                "left_ms": duration::millis_up(loss.left()),
                "signal": name_of(hold.signal),
                "processes": count,
                "message": sentence,
            }),
            sentence,
            importance: Importance::Trouble,
        });
    }

    /// Waits until another holder may have the lease, so that there is nothing to release.
    async fn nothing_left(&self, lease: &Lease) {
        if !is_definite(&lease.lost().await) {
            // A contender that takes over waits for the release, or for the ttl.
            let clock = BootClock::new();
            clock.sleep_until(clock.now() + self.setup.timing.ttl().as_duration()).await;
        }
    }

    async fn foreground_ended(&self) {
        while self.link.next().await.is_some() {}
    }

    async fn subject_ended(&self) {
        // It stays readable. After an error of the runtime, the script may still be alive.
        if self.ended.readable().await.is_err() {
            std::future::pending().await
        }
    }

    fn send(&self, message: &KeeperMessage) {
        // The end of the link says that the foreground process has exited.
        let _ = self.link.link().send(&message.to_bytes(), &[]);
    }

    fn lease_words(&self, lease: &Lease, url: &str) -> String {
        format!("{} of {} (token {}) on {url}", lease.key().titled(), lease.holder(), lease.token())
    }
}

/// Standard error of the script, for the message about a loss.
#[derive(Clone, Copy, Debug)]
struct StandardError {
    /// False for a pipe or a socket: its reader waits for its end. If the reader has the descriptor of the script, such as
    /// `tee` behind `exec > >(tee log)`, the reader and the keeper would wait for each other.
    may_be_kept: bool,
}

impl StandardError {
    /// Replaces standard input and standard output by `/dev/null`.
    fn detach() -> io::Result<Self> {
        let kind = fstat(rustix::stdio::stderr()).map(|status| FileType::from_raw_mode(status.st_mode));
        let nothing = nothing()?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        Ok(Self { may_be_kept: matches!(kind, Ok(FileType::RegularFile | FileType::CharacterDevice)) })
    }

    /// Closes it if it must not be kept. The foreground process has printed its last message.
    fn keep_or_close(self) {
        if !self.may_be_kept {
            self.close();
        }
    }

    fn close(self) {
        if let Ok(nothing) = nothing() {
            let _ = rustix::stdio::dup2_stderr(&nothing);
        }
    }
}

fn nothing() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

fn no_keeper(error: io::Error) -> Failure {
    Failure::unavailable(format!(
        "the keeper of the lease could not be started: {error}. Check the limits on processes and open files"
    ))
}

/// The name in `ps`. It differs from the name of the command, as that of the watchdog of `tenure run` does: `pkill
/// tenure` does not end it, because the script would not notice.
const TITLE: &str = "lease-keeper";
