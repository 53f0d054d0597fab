use std::ffi::OsString;
use std::time::Duration;

use clap::Parser;

use crate::duration;
use crate::help;

/// Run a program only while it holds a lease, and see who holds what
#[derive(Debug, Parser)]
#[command(name = "tenure", version, arg_required_else_help = true, after_help = help::TENURE)]
pub(crate) struct Args {
    /// Where the leases are kept, such as file:///var/lib/jobs/tenure; TENURE_STORE if this is not given
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run CMD only while NAME is held
    Run(Run),
    /// Say who holds NAME: exit 0 if somebody does, 1 if it is free
    Status(Status),
    /// List the leases: who holds what, and for how much longer at most
    Ls(Ls),
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::RUN)]
pub(crate) struct Run {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
    /// How long the lease lasts without a renewal: CMD is dead before that
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    /// Wait at most this long while somebody else holds it; without this, for ever
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "no_wait")]
    pub(crate) wait: Option<Duration>,
    /// Do not wait: give up at once if somebody else holds it
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Who holds it, for people to read; the host and the process if this is not given
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// How long CMD has between TERM and KILL; 5s, or a third of the ttl if that is less
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) kill_grace: Option<Duration>,
    /// Stop CMD at the first renewal that fails, and not only before the lease runs out
    #[arg(long)]
    pub(crate) strict: bool,
    /// Exit with this when somebody else holds it, for a CMD that uses 75 itself
    #[arg(long, value_name = "N", default_value_t = crate::exit::HELD)]
    pub(crate) conflict_exit_code: u8,
    /// Say nothing on standard error but errors; that somebody else holds it is told by the exit code alone
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Say what happens as JSON on standard error, one object on each line
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help::STATUS)]
pub(crate) struct Status {
    /// The lease, such as backup or billing/nightly
    pub(crate) name: String,
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

impl Args {
    /// Whether programs read what is said.
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            Command::Run(run) => run.json,
            Command::Status(status) => status.json,
            Command::Ls(ls) => ls.json,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_holds_together() {
        Args::command().debug_assert();
    }
}
