//! `tenure completions`.

mod command_line;
mod names;
mod script;

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Args, Completions};
use crate::exit::Failure;
use crate::output;
pub(crate) use names::names_if_asked;

/// Writes the completions of a shell, generated from the definitions of the arguments. The names of leases come from
/// the store, each time that they are needed.
pub(crate) fn completions(completions: &Completions) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut <Args>::command(), "tenure", &mut script);
    let script = String::from_utf8_lossy(&script);
    output::answer(&script::with_names(completions.shell, &script))?;
    Ok(ExitCode::SUCCESS)
}
