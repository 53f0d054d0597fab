//! Runs the built test binaries for `./test`, in lanes, and reports the cost of each.
//!
//! ```text
//! test-lanes DIRECTORY LANE [AT_ONCE]   runs the binaries of a lane: busy, waiting, servers, clocks, crowds or alone
//! test-lanes DIRECTORY report           prints what ran and what it cost; fails above the budget of a store
//! ```
//!
//! `DIRECTORY/build.json` has the output of `cargo test --no-run --message-format=json`. The program adds rows and logs to
//! the directory. `TENURE_TEST_MODE` is `quick`, `long` or empty; see [`plan`].
#![allow(clippy::disallowed_methods, reason = "it starts processes and measures real time")]

mod lane;
mod outcome;
mod plan;
mod report;
mod test_binary;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let good = match words[..] {
        [directory, "report"] => report::report(&PathBuf::from(directory)),
        [directory, lane] => lane::run(&PathBuf::from(directory), lane, 1),
        [directory, lane, at_once] => {
            lane::run(&PathBuf::from(directory), lane, at_once.parse().expect("a number"))
        }
        _ => panic!("test-lanes DIRECTORY LANE [AT_ONCE], or test-lanes DIRECTORY report"),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
