//! `tenure`: runs a program only while it holds a lease, and inspects leases.

mod acquire;
mod args;
mod completions;
mod config;
mod cost;
mod demo;
mod descriptors;
mod duration;
mod elect;
mod exit;
mod fence;
mod file_place;
mod forget;
mod guarantees;
mod handle;
mod help;
mod history;
mod hold;
mod home;
mod init;
mod keeper_reports;
mod kv;
mod leader;
mod lease_view;
mod ls;
mod man;
mod outlived_commands;
mod outlived_reports;
mod output;
mod panics;
mod prices;
mod probe;
mod progress;
mod promises;
mod published_process;
mod ready;
mod repetition;
mod resign;
mod run;
mod signals;
mod slots;
mod status;
mod store;
mod store_errors;
mod store_trouble;
mod table;
mod term_details;
mod usage;
mod wait_limit;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(ended) = demo::worker_if_asked() {
        return ended;
    }
    if let Some(ended) = completions::names_if_asked() {
        return ended;
    }
    let args = match args::Args::of_this_process() {
        Ok(args) => args,
        Err(error) => return usage::answer(&error),
    };
    let done = match &args.command {
        args::Command::Run(run) => run::run(&args, run),
        args::Command::Elect(elect) => elect::elect(&args, elect),
        args::Command::Hold(hold) => hold::hold(&args, hold),
        args::Command::Acquire(acquire) => handle::acquire(&args, acquire),
        args::Command::Renew(renew) => handle::renew(&args, renew),
        args::Command::Release(release) => handle::release(&args, release),
        args::Command::Steal(steal) => handle::steal(&args, steal),
        args::Command::Leader(leader) => leader::leader(&args, leader),
        args::Command::Resign(resign) => resign::resign(&args, resign),
        args::Command::Status(status) => status::status(&args, status),
        args::Command::Ls(ls) => ls::ls(&args, ls),
        args::Command::Slots(slots) => slots::slots(&args, slots),
        args::Command::Kv(args::Kv { command }) => kv::kv(&args, command),
        args::Command::Fence(args::Fence { command }) => fence::fence(&args, command),
        args::Command::Forget(forget) => forget::forget(&args, forget),
        args::Command::Store(args::Store { command: args::StoreCommand::Guarantees(guarantees) }) => {
            guarantees::guarantees(&args, guarantees)
        }
        args::Command::Store(args::Store { command: args::StoreCommand::Init(init) }) => {
            init::init(&args, init)
        }
        args::Command::Probe(probe) => probe::probe(&args, probe),
        args::Command::Demo(demo) => demo::demo(demo),
        args::Command::Completions(completions) => completions::completions(completions),
        args::Command::Man(man) => man::man(man),
        args::Command::Watch(watch) => watch::watch(&args, watch),
        args::Command::History(history) => history::history(&args, history),
    };
    done.unwrap_or_else(|failure| {
        failure.report(usage::wants_json());
        failure.code()
    })
}
