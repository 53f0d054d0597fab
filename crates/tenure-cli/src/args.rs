use std::ffi::OsString;
use std::time::Duration;

use clap::Parser;

/// Run a program only while it holds a lease.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// Where the leases are kept.
    #[arg(long, global = true, value_name = "URL", env = "TENURE_STORE")]
    pub(crate) store: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run CMD only while NAME is held
    Run(Run),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The lease.
    pub(crate) name: String,
    /// How long the lease lasts without a renewal.
    #[arg(long, default_value = "15s", value_parser = duration)]
    pub(crate) ttl: Duration,
    /// Give up after this long.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "no_wait")]
    pub(crate) wait: Option<Duration>,
    /// Give up at once if somebody else holds it.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Who holds it, for people to read.
    #[arg(long, value_name = "ID")]
    pub(crate) holder: Option<String>,
    /// How long CMD has between TERM and KILL.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) kill_grace: Option<Duration>,
    /// Stop CMD at the first failed renewal.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Exit with this instead of 75 when somebody else holds it.
    #[arg(long, value_name = "N", default_value_t = crate::exit::HELD)]
    pub(crate) conflict_exit_code: u8,
    /// Say nothing but errors.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Say what happens as one JSON object per line, on standard error.
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration =
        text.parse().map_err(|_| "write it like 15s, 1m30s or 500ms".to_owned())?;
    Duration::try_from(span).map_err(|_| "it cannot be negative".to_owned())
}
