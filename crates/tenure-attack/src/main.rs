//! Attacks the built command and the library from outside, through the real kernel, and tells which promises held.
//!
//! `./test attack` builds the command and runs this program. Each attack runs in a pid namespace, a mount namespace, a
//! cgroup and a folder of its own. The end of the namespaces ends every process and every mount of the attack, however
//! it ended.
#![allow(clippy::disallowed_methods, reason = "real processes and real kernels count in real time")]

mod arena;
mod args;
mod attack;
mod attacks;
mod cell;
mod cgroup;
mod process;
mod raw;
mod shell;
mod stamps;
mod suite;
mod table;
mod tools;
mod verdict;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((first, rest)) if first == tools::WORD => tools::main(rest),
        Some((first, rest)) if first == cell::WORD => cell::main(rest),
        Some((first, rest)) if first == cell::INSIDE => cell::inside(rest),
        _ => match args::Args::parse(&words) {
            Ok(args) => suite::main(&args),
            Err(usage) => {
                eprintln!("{usage}");
                ExitCode::from(64)
            }
        },
    }
}
