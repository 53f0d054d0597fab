//! `tenure hold`: a lease for a shell script, which a process in the background renews while the script lives.
//!
//! Two processes. The *foreground process* is the command that the script waits for: it checks the arguments, and
//! prints the token. The *keeper* is its child. It acquires the lease, renews it while the script has a descriptor open
//! or a process lives, and signals them if the lease is lost.

mod foreground;
mod keeper;
mod keeper_message;
mod locked_byte;
mod locked_descriptor;
mod loss;
mod openers;
mod signal_name;
mod subject;
mod watched_process;

use std::io;
use std::process::ExitCode;

use nix::sys::signal::SigHandler;
use tenure::{Holder, Key, Timing};

use crate::args::{Args, Hold};
use crate::exit::Failure;
use crate::run::GRACE;
use crate::run::fork::{Side, fork, set_child_action};
use crate::run::link::Link;
use crate::wait_limit::WaitLimit;
use keeper::KeeperSetup;
pub(crate) use signal_name::parse_signal;
use subject::Subject;

/// Acquires a lease, leaves it to a keeper in the background, and prints its token.
pub(crate) fn hold(args: &Args, hold: &Hold) -> Result<ExitCode, Failure> {
    let wait = WaitLimit::from_now(hold.waiting.limit());
    let key = Key::parse(&hold.name)?;
    let grace = (hold.ttl / 3).min(GRACE);
    let timing = Timing::builder(hold.ttl).grace(grace).build();
    let timing = timing.map_err(|error| Failure::misconfigured(error.to_string()))?;
    let subject = Subject::of(hold)?;
    let holder = match &hold.holder {
        Some(holder) => Holder::new(holder),
        None => tenure::process_holder(subject.process()),
    };
    let holder = holder.map_err(tenure::Error::from)?;
    // Before the fork: this process is a child of the script, and the keeper is not.
    let process = tenure::this_process().with_pid(subject.process());
    let cannot = |error: io::Error| {
        Failure::unavailable(format!(
            "the keeper of lease {key} could not be started: {error}. Check the limits on processes and open files"
        ))
    };
    let (ours, theirs) = Link::pair().map_err(cannot)?;
    // The exit code of the keeper is needed, even if the caller ignores SIGCHLD.
    set_child_action(SigHandler::SigDfl).map_err(cannot)?;
    // Before the first thread: a fork copies only one.
    match fork().map_err(cannot)? {
        Side::Child => {
            // This end must exist in the foreground process alone, or its end would never be seen.
            drop(ours);
            keeper::run(KeeperSetup { args, hold, wait, key, timing, holder, process, subject }, theirs)
        }
        Side::Parent { child } => {
            drop(theirs);
            let ended = foreground::wait(child, ours, &key);
            if ended.is_err() {
                // The script may go on, and call it again.
                subject.leave();
            }
            ended.map(|()| ExitCode::SUCCESS)
        }
    }
}
