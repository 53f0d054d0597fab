//! `tenure`: runs a program only while it holds a lease, and shows who holds what.

mod args;
mod exit;
mod run;
mod store;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let done = match &args.command {
        args::Command::Run(run) => run::run(&args, run),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("tenure: {failure}");
            failure.code()
        }
    }
}
