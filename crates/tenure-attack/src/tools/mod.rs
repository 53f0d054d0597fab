//! Small programs that attacks start: actors, library holders, and wrappers that change what a process may do.

mod act;
mod clock;
mod fork_storm;
mod forking;
mod hog;
mod hold;
mod panicking;
mod wrappers;

use std::process::ExitCode;

/// Runs the tool that the first argument names.
pub(crate) fn main(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [ACT, directory, label, millis] => act::act(directory, label, millis),
        ["leaderless", directory, label, millis] => act::leaderless(directory, label, millis),
        ["unlocking", command @ ..] => wrappers::unlocking(command),
        ["hold", url, ttl, wait, directory, label, millis] => {
            hold::hold(url, ttl, wait, directory, label, millis)
        }
        ["at", millis, directory] => clock::acquire_at(millis, directory),
        ["fork-storm", command @ ..] => fork_storm::fork_storm(command),
        ["forking", directory] => forking::forking(directory),
        ["panicking", directory] => panicking::panicking(directory),
        ["hog-inotify", millis] => hog::inotify(millis),
        ["ptrace", number, millis] => wrappers::ptrace(number, millis),
        ["closing", command @ ..] => wrappers::closing(command),
        ["denied", command @ ..] => wrappers::without_pidfd_signals(command),
        ["root-exec", command @ ..] => wrappers::root_exec(command),
        ["root-fork", command @ ..] => wrappers::root_fork(command),
        _ => Err(format!("no such tool: {words:?}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// First argument of a command line that runs a tool.
pub(crate) const WORD: &str = "tool";

/// Name of the tool that stamps.
pub(crate) const ACT: &str = "act";

/// Outcome of a tool.
type Done = Result<(), String>;

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|error| format!("{word}: {error}"))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
