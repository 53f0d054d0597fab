//! Attacks the built command and the library from outside, through the real kernel, and reports which promises held.
//!
//! `./test attack` builds the command and runs this program. Each attack has its own pid namespace, mount namespace,
//! cgroup and directory. When the namespaces end, the kernel kills every process and removes every mount of the attack,
//! however the attack ended.
#![allow(clippy::disallowed_methods, reason = "attacks run real processes in real time")]

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
