//! Runs the built test binaries for `./test`, in lanes, and reports the cost of each.
//!
//! ```text
//! test-lanes FOLDER LANE [AT_ONCE]   runs the binaries of a lane: busy, waiting, clocks or alone
//! test-lanes FOLDER report           prints what ran and what it cost; fails above the budget of a store
//! ```
//!
//! `FOLDER/build.json` has the output of `cargo test --no-run --message-format=json`. The program adds rows and logs to
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
        [folder, "report"] => report::report(&PathBuf::from(folder)),
        [folder, lane] => lane::run(&PathBuf::from(folder), lane, 1),
        [folder, lane, at_once] => {
            lane::run(&PathBuf::from(folder), lane, at_once.parse().expect("a number"))
        }
        _ => panic!("test-lanes FOLDER LANE [AT_ONCE], or test-lanes FOLDER report"),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
