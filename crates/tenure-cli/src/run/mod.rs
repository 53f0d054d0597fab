//! `tenure run`: a program runs only while its lease is held, and its complete process tree is dead before the lease
//! runs out.
//!
//! Three processes: the *supervisor* holds the lease; the *watchdog* kills the tree if the supervisor cannot; the
//! *stub* waits at a gate, and executes the user's program once the lease is granted. The supervisor is the parent of
//! the watchdog, and the watchdog is the parent of the stub.

mod caller;
mod cgroup;
mod cgroup_texts;
mod connected_run;
pub(crate) mod fork;
mod ladder;
mod lateness;
mod launch;
pub(crate) mod link;
mod mount;
mod outcome;
mod renewal_messages;
mod report;
mod schedule;
mod setuid;
mod start_message;
mod stat;
mod stop_reason;
mod stub;
mod supervisor;
pub(crate) mod title;
mod tree;
mod until;
mod watchdog;
mod watchdog_command;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io};

use serde_json::json;
use tenure::{Holder, Key, Prefix, Timing};

use crate::args::{Announcement, Args, Run, Supervision};
use crate::exit::Failure;
use crate::keeper_reports::KeeperReports;
use crate::progress::{Importance, Notice, ProgressOutput, Verbosity};
use crate::signals::Blocked;
use crate::wait_limit::WaitLimit;
use crate::{panics, published_process, store};
pub(crate) use caller::CallerAttributes;
use cgroup::{CgroupPath, LeaseMark};
use cgroup_texts::CgroupTexts;
use connected_run::ConnectedRun;
use lateness::LatenessMeter;
use launch::{Launch, reap_watchdog};
pub(crate) use outcome::{RunOutcome, TermOutcome};
use schedule::Schedule;
use tree::Tree;

/// Runs the command while the lease is held.
pub(crate) fn run(args: &Args, run: &Run) -> Result<ExitCode, Failure> {
    run_term(args, run, &CallerAttributes::now(&[]))?.exit()
}

/// Runs the command in one term, and reports how it ended. An error means that nothing was granted.
pub(crate) fn run_term(args: &Args, run: &Run, caller: &CallerAttributes) -> Result<RunOutcome, Failure> {
    let wait = WaitLimit::from_now(run.waiting.limit());
    let key: Key = Key::parse(&run.name)?;
    let holder = holder(run)?;
    let texts = CgroupTexts::read();
    let schedule = Schedule::of_the_guards(&texts);
    let timing = timing(run, schedule)?;
    if !Tree::can_be_seen() {
        return Err(Failure::misconfigured(
            "/proc does not show this process, so tenure could not find and kill the processes that the command \
             starts: mount the /proc of this pid namespace",
        ));
    }
    if !clock_is_shared() {
        return Err(Failure::misconfigured(
            "this process and those it starts would not have the same clock: start it in the time namespace of its \
             children",
        ));
    }
    let cannot = |error: io::Error| {
        Failure::unavailable(format!(
            "the command could not be prepared: {error}. Check the limits on processes and open files"
        ))
    };
    // The watchdog then kills the command.
    panics::abort();
    let lateness_meter = LatenessMeter::new(timing, schedule);
    // The slot is not known yet. All commands of a group have one mark: those without a living guard are leftovers.
    let marked = match run.slots {
        Some(_) => Prefix::of_group(&key)?.to_string(),
        None => key.to_string(),
    };
    let chosen = store::choose(args)?;
    let mark = LeaseMark::of(&chosen.identity(), &marked);
    // Both before the first thread: a fork copies only one thread, and threads inherit the signal mask.
    let cgroup = CgroupPath::new(mark, &texts).map_err(cannot)?;
    let launch = Launch::start(timing, lateness_meter, cgroup, caller, &run.command).map_err(cannot)?;
    launch.can_signal().map_err(|error| {
        Failure::misconfigured(format!(
            "processes cannot be signalled through descriptors here ({error}), so tenure could not kill the command \
             in time: allow the system call pidfd_send_signal"
        ))
    })?;
    schedule::raise_priority();
    let blocked = Blocked::now().map_err(cannot)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let (watchdog, cgroup) = (launch.watchdog, launch.cgroup.clone());
    let ended = runtime.block_on(async {
        let signals = blocked.take_with(run.reload).map_err(cannot)?;
        let reports = KeeperReports::new();
        let process = published_process::supervising(&run.command, run.supervision.hide_command);
        let mut builder = store::coordinator(args).recorder(reports.clone()).process(process);
        if let Some(holder) = holder {
            builder = builder.holder(holder);
        }
        let opened = chosen.open()?;
        opened.check_write_rate(&timing)?;
        let url = opened.url.clone();
        let verbosity = Verbosity::of(run.quiet, run.supervision.verbose);
        let progress = &ProgressOutput::new(verbosity, run.supervision.json, key.as_str(), &url);
        progress.say(&Notice {
            name: "connecting",
            fields: json!({ "store_from": chosen.origin() }),
            sentence: format!("connecting to {}", chosen.url_and_origin()),
            importance: Importance::Verbose,
        });
        let coordinator = store::connect_while_waiting(builder, opened, &wait, &signals, progress).await?;
        let connected_run = ConnectedRun {
            run,
            wait,
            key,
            timing,
            progress,
            coordinator,
            url,
            signals,
            mark,
            lateness_meter,
            reports,
        };
        let ended = connected_run.acquire_and_run(launch).await;
        // This process exits or executes itself next. Without this, it would first end the keeper and its threads one by one.
        std::mem::forget(connected_run);
        ended
    });
    // Its link is closed by now, and the tree is dead.
    reap_watchdog(watchdog, &cgroup);
    ended
}

/// The holder, if the user named it or gave it something to announce.
fn holder(run: &Run) -> Result<Option<Holder>, tenure::Error> {
    let Announcement { address, labels, .. } = &run.announcement;
    let mut holder = match &run.supervision.holder {
        None if address.is_none() && labels.is_empty() => return Ok(None),
        None => tenure::process_holder(std::process::id())?,
        Some(id) => Holder::new(id)?,
    };
    for (name, text) in labels {
        holder = holder.label(name, text)?;
    }
    if let Some(address) = address {
        holder = holder.at(address)?;
    }
    Ok(Some(holder))
}

/// True if the watchdog will read the same clock as this process. A process that created a time namespace has only its
/// children in it.
fn clock_is_shared() -> bool {
    let space = |name: &str| fs::read_link(Path::new("/proc/self/ns").join(name)).ok();
    space("time") == space("time_for_children")
}

/// Durations that are safe for a program that needs time to exit, and for guards that may wake up late.
fn timing(run: &Run, schedule: Schedule) -> Result<Timing, Failure> {
    let Supervision { ttl, kill_grace, .. } = run.supervision;
    let grace = kill_grace.unwrap_or((ttl / 3).min(GRACE));
    let margin = (ttl / 50).max(schedule.margin());
    let built = Timing::builder(ttl).grace(grace).margin(margin).build();
    built.map_err(|error| {
        let mut sentence = error.to_string();
        if schedule.is_slow() {
            sentence = format!(
                "{sentence}. The margin is {margin:?} because its supervisor and watchdog would run {schedule} and \
                 may wake up late: start it with a higher priority"
            );
        }
        Failure::misconfigured(sentence)
    })
}

/// Largest default of the grace.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
