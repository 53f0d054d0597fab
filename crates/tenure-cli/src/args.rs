use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use nix::sys::signal::Signal;
use tenure::Holder;

use crate::duration;
use crate::help;
use crate::hold;
use crate::signals::Reload;

/// Run a program only while it holds a lease, and inspect leases
#[derive(Debug, Parser)]
#[command(name = "tenure", version = env!("TENURE_VERSION"), arg_required_else_help = true, after_help = help::TENURE)]
pub(crate) struct Args<C: clap::Subcommand = Command> {
    /// The store, such as file:///var/lib/jobs/tenure; default: TENURE_STORE, or the store of this user
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Run the safety check of a networked store first, even if it passed in the last day
    #[arg(long, global = true)]
    pub(crate) check_store: bool,
    #[command(subcommand)]
    pub(crate) command: C,
}

impl Args {
    /// Parses the arguments of this process.
    pub(crate) fn of_this_process() -> Result<Self, clap::Error> {
        let words: Vec<OsString> = std::env::args_os().collect();
        Self::of_run(&words).map_or_else(|| Self::try_parse_from(&words), Ok)
    }

    /// Parses the arguments of `run` without the definitions of the other commands, which would take longer to build than
    /// everything else before the store is opened. `None` if these are not its arguments, or are wrong.
    fn of_run(words: &[OsString]) -> Option<Self> {
        words.iter().find(|word| *word == "run")?;
        let Args { store, check_store, command: OnlyRun::Run(run) } = Args::try_parse_from(words).ok()?;
        Some(Self { store, check_store, command: Command::Run(run) })
    }
}

/// The command `run` without the others.
#[derive(Debug, clap::Subcommand)]
enum OnlyRun {
    Run(Run),
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run CMD only while NAME is held
    Run(Run),
    /// Campaign for NAME, run CMD while this process leads, and campaign again
    Elect(Elect),
    /// Hold NAME while a script has a file open: print the token, and renew the lease in the background
    Hold(Hold),
    /// Acquire NAME for a script, and print a handle for renew and release
    Acquire(Acquire),
    /// Renew the lease of a handle, and print the next handle
    #[command(after_help = help::RENEW)]
    Renew(HandleArgs),
    /// Release the lease of a handle
    #[command(after_help = help::RELEASE)]
    Release(HandleArgs),
    /// Take over NAME: ask its holder to stop, wait, and hold it
    Steal(Steal),
    /// Print the leader of NAME and its address: exit 0 if there is one, 1 if not
    Leader(Leader),
    /// Ask the leader of NAME to resign, and wait until it has
    Resign(Resign),
    /// Print the holder of NAME: exit 0 if it is held, 1 if it is free
    Status(Status),
    /// List leases with holder and time left
    Ls(Ls),
    /// Show a group of slots: its size, holders and time left; or resize it
    Slots(Slots),
    /// Report changes of leases as they happen
    Watch(Watch),
    /// Print the last terms of NAME: holder, duration and end
    History(History),
    /// Remove the records of leases that have been vacant for long
    Forget(Forget),
    /// Read and change plain keys: small values with a revision
    Kv(Kv),
    /// Write under a token: refused by the resource if a newer holder has been there
    Fence(Fence),
    /// Inspect the store itself
    Store(Store),
    /// Test whether a store is fit for leases: races, latency and ttl
    Probe(Probe),
    /// Show why a paused holder is dangerous, and how a fence stops it
    #[command(args = without_store())]
    Demo(Demo),
    /// Write the completions for a shell to standard output
    #[command(args = without_store())]
    Completions(Completions),
    /// Write the manual page to standard output, or all pages to a directory
    #[command(args = without_store())]
    Man(Man),
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::RUN)]
pub(crate) struct Run {
    /// The lease, such as backup or billing/nightly; with --slots, the group
    pub(crate) name: String,
    /// Hold one of N slots of the group NAME instead of a lease: at most N CMDs at a time, 1 to 1024
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<u32>,
    #[command(flatten)]
    pub(crate) supervision: Supervision,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
    /// Skip CMD if the last successful CMD began less than this ago, by the store's clock: for a crontab on several machines
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "slots")]
    pub(crate) once_per: Option<Duration>,
    /// With --once-per: a CMD that fails counts as one that succeeds
    #[arg(long, requires = "once_per")]
    pub(crate) count_failures: bool,
    /// Exit code if another holder has the lease or CMD is skipped, for a CMD that uses 75 itself
    #[arg(long, short = 'E', value_name = "N", default_value_t = crate::exit::HELD)]
    pub(crate) conflict_exit_code: u8,
    /// Print only errors; if another holder has the lease or CMD is skipped, only the exit code shows it
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Set if `steal` runs the command: the lease is taken over from its holder.
    #[arg(skip)]
    pub(crate) taking: Option<Taking>,
    /// Set if `elect` runs the command.
    #[arg(skip)]
    pub(crate) announcement: Announcement,
    #[arg(skip = Reload::Ends)]
    pub(crate) reload: Reload,
    /// The program and its arguments, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::ELECT)]
pub(crate) struct Elect {
    /// The election, such as worker or billing/dispatcher
    pub(crate) name: String,
    /// Exit after the first term, with the exit code of CMD
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) announcement: Announcement,
    #[command(flatten)]
    pub(crate) supervision: Supervision,
    /// Print only errors and losses
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The program and its arguments, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Options of a command that runs CMD under a lease: the same in `run` and `elect`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Supervision {
    /// Duration of the lease without a renewal: CMD is dead before it is over
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    /// Name of the holder, informational; default: host and process
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// Keep CMD out of the record, for arguments with secrets; default: every reader of the store sees CMD in tenure status
    #[arg(long)]
    pub(crate) hide_command: bool,
    /// Time between TERM and KILL; default: 5s, or a third of the ttl if that is less
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) kill_grace: Option<Duration>,
    /// Stop CMD at the first failed renewal, instead of just before the lease runs out
    #[arg(long)]
    pub(crate) strict: bool,
    /// Continue after this time even if a process of the former holder's CMD is alive; default: wait until it ends
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) orphan_wait: Option<Duration>,
    /// Print every event, each renewal, and where the name of the store came from
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print events as JSON on standard error, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The announcement of a leader, which its grant writes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Announcement {
    /// Address at which this leader can be reached, such as 10.0.0.7:8080: tenure leader shows it
    #[arg(long, value_name = "ADDR")]
    pub(crate) address: Option<String>,
    /// Label of this leader, such as zone=b; may be given several times
    #[arg(long = "label", value_name = "NAME=TEXT", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Small text that this leader writes with its grant; default: the text of the previous leader stays
    #[arg(long, value_name = "TEXT")]
    pub(crate) value: Option<String>,
}

/// Options for waiting.
#[derive(Debug, clap::Args)]
pub(crate) struct Waiting {
    /// Longest wait for the lease, from the start of the command; default: unlimited
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "no_wait")]
    pub(crate) wait: Option<Duration>,
    /// The same in seconds, such as 2.5, as in flock(1)
    #[arg(short = 'w', value_name = "SECONDS", value_parser = duration::parse_seconds, conflicts_with_all = ["wait", "no_wait"])]
    pub(crate) wait_seconds: Option<Duration>,
    /// Do not wait: give up at once if another holder has the lease
    #[arg(long, short = 'n')]
    pub(crate) no_wait: bool,
}

/// Options for taking over a lease.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Taking {
    /// The reason: shown to the holder, and recorded in the history
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
    /// Do not wait for the holder to stop: both may act at once, and only a resource that checks tokens is safe
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::HOLD)]
pub(crate) struct Hold {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// Release the lease when the last process has closed this descriptor, which the script opens with exec 9>>FILE
    #[arg(long, value_name = "N", conflicts_with = "pid")]
    pub(crate) fd: Option<i32>,
    /// Renew the lease until this process has ended, and then let it lapse by its ttl
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<i32>,
    /// Signal to the processes with the descriptor, or to PID, if the lease is lost: a name or a number, as for kill
    #[arg(long, value_name = "SIGNAL", default_value = "TERM", value_parser = hold::parse_signal)]
    pub(crate) signal: Signal,
    /// Duration of the lease without a renewal
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
    /// Continue after this time even if a process of the former holder's CMD is alive; default: wait until it ends
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) orphan_wait: Option<Duration>,
    /// Name of the holder, informational; default: host and process
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// Exit code if another holder has the lease
    #[arg(long, short = 'E', value_name = "N", default_value_t = crate::exit::HELD)]
    pub(crate) conflict_exit_code: u8,
    /// Print only errors and losses; if another holder has the lease, only the exit code shows it
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::ACQUIRE)]
pub(crate) struct Acquire {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// Duration of the lease without a renewal
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
    /// Continue after this time even if a process of the former holder's CMD is alive; default: wait until it ends
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) orphan_wait: Option<Duration>,
    /// Name of the holder, informational; default: host and process
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// Write the handle to this private file, and print the token
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print only errors; if another holder has the lease, only the exit code shows it
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Set if the lease is taken over from its holder, by `steal` without a command.
    #[arg(skip)]
    pub(crate) taking: Option<Taking>,
}

/// A handle, for `renew` and `release`.
#[derive(Debug, clap::Args)]
pub(crate) struct HandleArgs {
    /// The handle that acquire or the latest renew printed; default, and with -: from standard input
    #[arg(conflicts_with = "file", hide_possible_values = true)]
    pub(crate) handle: Option<String>,
    /// File with the handle
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print a JSON object on standard output
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
    /// Duration of the lease without a renewal; default: 15s for a CMD, 60s for a handle
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Longest wait for the holder to stop; default: until it has stopped or its ttl is over
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// Name of the new holder, informational; default: host and process
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// Write the handle to this private file, and print the token
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,
    /// Keep CMD out of the record, for arguments with secrets; default: every reader of the store sees CMD in tenure status
    #[arg(long, requires = "command")]
    pub(crate) hide_command: bool,
    /// Time between TERM and KILL; default: 5s, or a third of the ttl if that is less
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "command")]
    pub(crate) kill_grace: Option<Duration>,
    /// Continue after this time even if a process of the former holder's CMD is alive; default: wait until it ends
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) orphan_wait: Option<Duration>,
    /// Stop CMD at the first failed renewal, instead of just before the lease runs out
    #[arg(long, requires = "command")]
    pub(crate) strict: bool,
    /// Print only errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print every event of CMD, and each renewal
    #[arg(long, short, requires = "command", conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print a JSON object on standard output; with a CMD, print events as JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments, after --; without one, steal prints a handle
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::LEADER)]
pub(crate) struct Leader {
    /// The election, such as worker or billing/dispatcher
    pub(crate) name: String,
    /// Wait until there is a leader, for at most this time; without DURATION, wait without limit
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "watch")]
    pub(crate) wait: Option<Option<Duration>>,
    /// Print the present leader, and then every change
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print a JSON object on standard output; with --watch, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::RESIGN)]
pub(crate) struct Resign {
    /// The election, such as worker or billing/dispatcher
    pub(crate) name: String,
    /// The reason: shown to the leader, and recorded in the history
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
    /// Longest wait for the leader to resign; default: until it has resigned or its ttl is over
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// Name of the process that asks, informational; default: host and process
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// Print only errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::STATUS)]
pub(crate) struct Status {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// Also print its cost in requests, and in money if the price is known
    #[arg(long)]
    pub(crate) cost: bool,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::LS)]
pub(crate) struct Ls {
    /// Only this lease and those below it: billing covers billing and billing/nightly
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::SLOTS)]
pub(crate) struct Slots {
    /// The group, such as gpu; default: list all groups
    pub(crate) group: Option<String>,
    /// Set the number of slots, 1 to 1024: a shrink stops no holder
    #[arg(long, value_name = "N", requires = "group")]
    pub(crate) resize: Option<u32>,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::WATCH)]
pub(crate) struct Watch {
    /// This lease and those below it: billing covers billing and billing/nightly; default: all leases
    #[arg(value_name = "NAME|PREFIX", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Report renewals too
    #[arg(long)]
    pub(crate) renewals: bool,
    /// Print events as JSON on standard output, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::HISTORY)]
pub(crate) struct History {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::FORGET)]
pub(crate) struct Forget {
    /// Only this lease and those below it, by complete parts of the name; '' means all leases
    pub(crate) prefix: String,
    /// Only leases that have been vacant for at least this long, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) vacant_for: Duration,
    /// Remove the records; default: dry run
    #[arg(long)]
    pub(crate) yes: bool,
    /// Also list the kept leases, each with the reason
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::KV, arg_required_else_help = true)]
pub(crate) struct Kv {
    #[command(subcommand)]
    pub(crate) command: KvCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum KvCommand {
    /// Create the entry of KEY, unless it has one
    Create(KvCreate),
    /// Replace the entry of KEY that has exactly this revision
    Cas(KvCas),
    /// Print the value of KEY: exit 0 if it has an entry, 1 if not
    Get(KvGet),
    /// Start the ttl of your entry anew
    #[command(after_help = help::KV_RENEW)]
    Renew(KvOwned),
    /// Remove your entry
    #[command(after_help = help::KV_RELEASE)]
    Release(KvOwned),
    /// List plain keys with owner, revision and value
    Ls(KvLs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::KV_CREATE)]
pub(crate) struct KvCreate {
    /// The key, such as config/shards
    pub(crate) key: String,
    /// The value, at most 4096 bytes; -: from standard input
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: String,
    /// Time after which the entry runs out without a renewal; default: never
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Longest wait for the present entry to run out or to be released; default: do not wait
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// Name of the owner; default: you
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::KV_CAS)]
pub(crate) struct KvCas {
    /// The key, such as config/shards
    pub(crate) key: String,
    /// Revision of the entry to replace; 0: the key has no entry
    pub(crate) revision: String,
    /// The new value, at most 4096 bytes; -: from standard input
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: String,
    /// Time after which the new entry runs out without a renewal; default: never
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Name of the owner; default: you
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::KV_GET)]
pub(crate) struct KvGet {
    /// The key, such as config/shards
    pub(crate) key: String,
    /// Name of the owner, for the field mine of --json; default: you
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Print a JSON object on standard output, with revision, owner and time left
    #[arg(long)]
    pub(crate) json: bool,
}

/// An entry of this user, for `kv renew` and `kv release`.
#[derive(Debug, clap::Args)]
pub(crate) struct KvOwned {
    /// The key, such as config/shards
    pub(crate) key: String,
    /// Name of the owner; default: you
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::KV_LS)]
pub(crate) struct KvLs {
    /// Only this key and those below it: config covers config and config/shards
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::FENCE, arg_required_else_help = true)]
pub(crate) struct Fence {
    #[command(subcommand)]
    pub(crate) command: FenceCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum FenceCommand {
    /// Replace TARGET with standard input, unless a newer token has been there
    #[command(after_help = help::FENCE_PUT)]
    Put(FenceWrite),
    /// Append standard input to TARGET, a file, unless a newer token has been there
    #[command(after_help = help::FENCE_APPEND)]
    Append(FenceWrite),
    /// Print the content of TARGET: exit 0 if it has any, 1 if not
    Get(FenceGet),
    /// Refuse all smaller tokens from now on, without a write: the first act of a new holder
    Seal(FenceSeal),
    /// Tell whether the token would be admitted: exit 0 if it would, 76 if it is stale
    Check(FenceCheck),
}

/// Arguments of `fence put` and `fence append`.
#[derive(Debug, clap::Args)]
pub(crate) struct FenceWrite {
    /// A file (./report.csv), an object (s3://bucket/report.csv), or a key of the store (key:report)
    pub(crate) target: OsString,
    #[command(flatten)]
    pub(crate) token: FenceToken,
    /// Accept a file as it is that has content and no mark: first make sure that no earlier holder writes
    #[arg(long)]
    pub(crate) adopt: bool,
    /// Print a JSON object on standard output; default: print nothing
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::FENCE_GET)]
pub(crate) struct FenceGet {
    /// A file (./report.csv), an object (s3://bucket/report.csv), or a key of the store (key:report)
    pub(crate) target: OsString,
    /// Print a JSON object on standard output, with lease, token and length, instead of the content
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::FENCE_SEAL)]
pub(crate) struct FenceSeal {
    /// A file (./report.csv), an object (s3://bucket/report.csv), or a key of the store (key:report)
    pub(crate) target: OsString,
    #[command(flatten)]
    pub(crate) token: FenceToken,
    /// Print a JSON object on standard output; default: print nothing
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::FENCE_CHECK)]
pub(crate) struct FenceCheck {
    /// A file (./report.csv), an object (s3://bucket/report.csv), or a key of the store (key:report)
    pub(crate) target: OsString,
    #[command(flatten)]
    pub(crate) token: FenceToken,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// The token of a fenced call.
#[derive(Debug, clap::Args)]
pub(crate) struct FenceToken {
    /// The lease of the token, together with --token; default: TENURE_NAME, which tenure run sets
    #[arg(long, value_name = "NAME", requires = "token")]
    pub(crate) name: Option<String>,
    /// The token, together with --name; default: TENURE_TOKEN
    #[arg(long, value_name = "N", requires = "name")]
    pub(crate) token: Option<String>,
    /// The slot, if NAME is a group of slots; default: TENURE_SLOT
    #[arg(long, value_name = "N", requires = "name")]
    pub(crate) slot: Option<u16>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::STORE, arg_required_else_help = true)]
pub(crate) struct Store {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum StoreCommand {
    /// Print the guarantees of the store and their meaning
    Guarantees(Guarantees),
    /// Create the directory or the tables of the store
    Init(Init),
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::INIT)]
pub(crate) struct Init {
    /// The store, such as postgres://role@host/database; default: the current store
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Print the statements for an administrator instead
    #[arg(long)]
    pub(crate) print: bool,
    /// With --print: the statements that install a fence for your own tables, in a PostgreSQL database
    #[arg(long, requires = "print")]
    pub(crate) fences: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::GUARANTEES)]
pub(crate) struct Guarantees {
    /// The store, such as file:///var/lib/jobs/tenure; default: the current store
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::PROBE)]
pub(crate) struct Probe {
    /// The store, such as s3://my-bucket/locks; default: the current store
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Number of concurrent contenders for a key, from 2 to 512
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) racers: usize,
    /// Number of rounds of each race, from 1 to 10000: more rounds find servers that fail rarely
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) rounds: usize,
    /// Number of timed calls of each kind, from 10 to 10000
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) samples: usize,
    /// Do not print progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print a JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::DEMO)]
pub(crate) struct Demo {
    /// Duration of the lease without a renewal, 500ms to 1m
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    /// Time for which the holder is stopped, 100ms to 5m
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    pub(crate) pause: Duration,
    /// Show only the accident, without the fence
    #[arg(long)]
    pub(crate) no_fence: bool,
    /// Print events as JSON on standard output, one object per line
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
    /// Write one page per command to this directory, and create it if necessary
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The global options about the store, hidden in the help of a command that opens none. Such a command still accepts
/// them.
fn without_store() -> [clap::Arg; 2] {
    let store = clap::Arg::new("store").long("store").value_name("URL").hide(true);
    let check = clap::Arg::new("check_store").long("check-store").action(clap::ArgAction::SetTrue).hide(true);
    [store.global(true), check.global(true)]
}

/// A label, in the form of its option.
fn label(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').ok_or("write it as NAME=TEXT, such as zone=b")?;
    Ok((parts.0.to_owned(), parts.1.to_owned()))
}

/// A non-empty reason, in one line.
fn reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty: the former holder is shown the reason".to_owned());
    }
    if text.len() > Holder::TEXT_MAX || text.chars().any(char::is_control) {
        return Err(format!("it must be one line of at most {} bytes", Holder::TEXT_MAX));
    }
    Ok(text.to_owned())
}

impl Run {
    /// Default ttl.
    pub(crate) const TTL: Duration = Duration::from_secs(15);
}

impl Acquire {
    /// Default ttl: a script renews between its steps, and those take time.
    pub(crate) const TTL: Duration = Duration::from_secs(60);
}

impl Waiting {
    /// Longest wait; `None` means no limit.
    pub(crate) fn limit(&self) -> Option<Duration> {
        if self.no_wait { Some(Duration::ZERO) } else { self.wait.or(self.wait_seconds) }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        <Args>::command().debug_assert();
        Args::<OnlyRun>::command().debug_assert();
    }

    #[test]
    fn run_has_the_same_arguments_with_and_without_the_other_commands() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in [
            "tenure run x -- true",
            "tenure --store file:///run run run --ttl 3s -n -- run --store status",
            "tenure run --check-store --slots 3 x --store file:///s -- sh -c x",
            "tenure run --once-per 1h --count-failures -E 3 -q x --wait 2s -- true",
        ] {
            let alone = Args::of_run(&words(line)).expect(line);
            assert_eq!(format!("{alone:?}"), format!("{:?}", <Args>::try_parse_from(words(line)).unwrap()));
        }
        for line in [
            "tenure status run",
            "tenure --store run status x",
            "tenure help run",
            "tenure run --help",
            "tenure --version run x -- true",
            "tenure run x",
            "tenure run x --unknown -- true",
            "tenure elect x -- run",
        ] {
            assert!(Args::of_run(&words(line)).is_none(), "{line}");
        }
    }
}
