//! `tenure completions`.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Args, Completions};
use crate::exit::Failure;
use crate::output;

/// Writes the completions of a shell, generated from the definitions of the arguments.
pub(crate) fn completions(completions: &Completions) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Args::command(), "tenure", &mut script);
    output::answer(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
