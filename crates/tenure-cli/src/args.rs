use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use tenure::Holder;

use crate::duration;
use crate::help;

/// Run a program only while it holds a lease, and see who holds what
#[derive(Debug, Parser)]
#[command(name = "tenure", version = env!("TENURE_VERSION"), arg_required_else_help = true, after_help = help::TENURE)]
pub(crate) struct Args {
    /// Where the leases are kept, such as file:///var/lib/jobs/tenure; TENURE_STORE if this is not given
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Check a store of the network again before anything is granted, although it was found sound in the last day
    #[arg(long, global = true)]
    pub(crate) check_store: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run CMD only while NAME is held
    Run(Run),
    /// Get NAME for a script, and print a handle to renew and release it with
    Acquire(Acquire),
    /// Renew the lease of a handle, and print the next handle
    #[command(after_help = help::RENEW)]
    Renew(HandleArgs),
    /// Let go of the lease of a handle
    #[command(after_help = help::RELEASE)]
    Release(HandleArgs),
    /// Take NAME from whoever holds it: ask them to stop, wait, and then hold it
    Steal(Steal),
    /// Say who holds NAME: exit 0 if somebody does, 1 if it is free
    Status(Status),
    /// List the leases: who holds what, and for how much longer at most
    Ls(Ls),
    /// Tell what happens to leases, as it happens
    Watch(Watch),
    /// Show the last terms of NAME: who held it, for how long, and how each ended
    History(History),
    /// Remove the records of leases that have been vacant for long
    Forget(Forget),
    /// Ask about the store itself
    Store(Store),
    /// Find out whether a store is fit for leases: under races, how fast, and with which ttl
    Probe(Probe),
    /// Write the completions for a shell to standard output
    Completions(Completions),
    /// Write the manual page to standard output, or all pages to a folder
    Man(Man),
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::RUN)]
pub(crate) struct Run {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// How long the lease lasts without a renewal: CMD is dead before that
    #[arg(long, value_name = "DURATION", default_value = RUN_TTL, value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
    /// Who holds it, for people to read; the host and the process if this is not given
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// How long CMD has between TERM and KILL; 5s, or a third of the ttl if that is less
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) kill_grace: Option<Duration>,
    /// Stop CMD at the first renewal that fails, and not only before the lease runs out
    #[arg(long)]
    pub(crate) strict: bool,
    /// Go on after this time although a process of the former holder's CMD is still alive; without this, wait until it ends
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) orphan_wait: Option<Duration>,
    /// Exit with this when somebody else holds it, for a CMD that uses 75 itself
    #[arg(long, value_name = "N", default_value_t = crate::exit::HELD)]
    pub(crate) conflict_exit_code: u8,
    /// Say nothing on standard error but errors; that somebody else holds it is told by the exit code alone
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Say what happens as JSON on standard error, one object on each line
    #[arg(long)]
    pub(crate) json: bool,
    /// Whether it is taken from whoever holds it: what `steal` does with a command.
    #[arg(skip)]
    pub(crate) taking: Option<Taking>,
    /// The program and its arguments, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// How long to wait for a lease.
#[derive(Debug, clap::Args)]
pub(crate) struct Waiting {
    /// Wait at most this long while somebody else holds it; without this, for ever
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "no_wait")]
    pub(crate) wait: Option<Duration>,
    /// Do not wait: give up at once if somebody else holds it
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// Why a lease is taken from whoever holds it, and how.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Taking {
    /// Why it is taken: told to the holder, and written into the history
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
    /// Do not wait for the holder to stop: both may act at once, and only a resource that checks tokens is safe
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::ACQUIRE)]
pub(crate) struct Acquire {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// How long the lease lasts without a renewal
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
    /// Go on after this time although a process of the former holder's CMD is still alive; without this, wait until it ends
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) orphan_wait: Option<Duration>,
    /// Who holds it, for people to read; the host and the process if this is not given
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// Write the handle to this file, for you alone to read, and print the token
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Say nothing on standard error but errors; that somebody else holds it is told by the exit code alone
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Answer with a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// A handle, for `renew` and `release`.
#[derive(Debug, clap::Args)]
pub(crate) struct HandleArgs {
    /// The handle that acquire or the latest renew printed; - or nothing reads it from standard input
    #[arg(conflicts_with = "file", hide_possible_values = true)]
    pub(crate) handle: Option<String>,
    /// The file that has the handle
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Answer with a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::STEAL)]
pub(crate) struct Steal {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) taking: Taking,
    /// How long the lease lasts without a renewal; 15s for a CMD, 60s for a handle
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Wait at most this long for the holder to stop; without this, until it has stopped or its ttl is over
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// Who takes it, for people to read; the host and the process if this is not given
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// Write the handle to this file, for you alone to read, and print the token
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,
    /// How long CMD has between TERM and KILL; 5s, or a third of the ttl if that is less
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "command")]
    pub(crate) kill_grace: Option<Duration>,
    /// Go on after this time although a process of the former holder's CMD is still alive; without this, wait until it ends
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) orphan_wait: Option<Duration>,
    /// Stop CMD at the first renewal that fails, and not only before the lease runs out
    #[arg(long, requires = "command")]
    pub(crate) strict: bool,
    /// Say nothing on standard error but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Answer with a JSON object on standard output; with a CMD, say what happens as JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments, after --; without one, the handle is printed
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::STATUS)]
pub(crate) struct Status {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// Say too what it costs in requests, and in money where that is known
    #[arg(long)]
    pub(crate) cost: bool,
    /// Answer with a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::LS)]
pub(crate) struct Ls {
    /// Only this lease and those below it: billing lists billing and billing/nightly
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Answer with a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::WATCH)]
pub(crate) struct Watch {
    /// This lease and those below it: billing is billing and billing/nightly. All leases if it is not given
    #[arg(value_name = "NAME|PREFIX", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Tell renewals too
    #[arg(long)]
    pub(crate) renewals: bool,
    /// Tell it as JSON on standard output, one object on each line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::HISTORY)]
pub(crate) struct History {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// Answer with a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::FORGET)]
pub(crate) struct Forget {
    /// Only this lease and those below it, by whole parts of the name; '' is all of them
    pub(crate) prefix: String,
    /// Only what has been vacant for so long at least, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) vacant_for: Duration,
    /// Remove them; without this, only say what would be removed
    #[arg(long)]
    pub(crate) yes: bool,
    /// Name what is kept too, each with the reason
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Answer with a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::STORE, arg_required_else_help = true)]
pub(crate) struct Store {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum StoreCommand {
    /// Say what the store guarantees, and what that means
    Guarantees(Guarantees),
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::GUARANTEES)]
pub(crate) struct Guarantees {
    /// The store, such as file:///var/lib/jobs/tenure; the one that is used if this is not given
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Answer with a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::PROBE)]
pub(crate) struct Probe {
    /// The store, such as s3://my-bucket/locks; the one that is used if this is not given
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// How many want the same key at the same time, from 2 to 512
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) racers: usize,
    /// How many rounds each kind of race has, from 1 to 10000: more find servers that lose one in many
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) rounds: usize,
    /// How many calls of each kind are timed, from 10 to 10000
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) samples: usize,
    /// Do not say how far it has come
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Answer with a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::MAN)]
pub(crate) struct Man {
    /// Write one page for each command to this folder, and make it where there is none
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// A reason that says something, in one line.
fn reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it says nothing: whoever loses the lease is told why".to_owned());
    }
    if text.len() > Holder::TEXT_MAX || text.chars().any(char::is_control) {
        return Err(format!("it must be one line of at most {} bytes", Holder::TEXT_MAX));
    }
    Ok(text.to_owned())
}

impl Run {
    /// The ttl unless one is given.
    pub(crate) const TTL: Duration = Duration::from_secs(15);
}

impl Acquire {
    /// The ttl unless one is given: a script renews between its steps, and those take time.
    pub(crate) const TTL: Duration = Duration::from_secs(60);
}

impl Waiting {
    /// How long to wait at most; `None` for as long as it takes.
    pub(crate) fn limit(&self) -> Option<Duration> {
        if self.no_wait { Some(Duration::ZERO) } else { self.wait }
    }
}

impl Args {
    /// Whether programs read what is said.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            Command::Run(run) => run.json,
            Command::Acquire(acquire) => acquire.json,
            Command::Renew(handle) | Command::Release(handle) => handle.json,
            Command::Steal(steal) => steal.json,
            Command::Status(status) => status.json,
            Command::Ls(ls) => ls.json,
            Command::Watch(watch) => watch.json,
            Command::History(history) => history.json,
            Command::Forget(forget) => forget.json,
            Command::Store(Store { command: StoreCommand::Guarantees(guarantees) }) => guarantees.json,
            Command::Probe(probe) => probe.json,
            Command::Completions(_) | Command::Man(_) => false,
        }
    }
}

/// How long a lease of `tenure run` lasts without a renewal, unless told.
pub(crate) const RUN_TTL: &str = "15s";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_holds_together() {
        Args::command().debug_assert();
    }
}
