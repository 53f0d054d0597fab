use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::{command_line, is_alive, process_numbers, wait_for};

use crate::tools;

/// Sends a signal. Pids are those of the attack's own namespace, so a wrong one reaches nothing outside the attack.
pub(crate) fn send(number: i32, signal: Signal) -> Result<(), String> {
    let pid = Pid::from_raw(number).ok_or("process 0 cannot be signalled")?;
    kill_process(pid, signal).map_err(|error| format!("signal to process {number}: {error}"))
}

/// Pids of the live actors with this label.
///
/// An actor whose first thread has exited is missing, because its `/proc` entry shows no command line.
pub(crate) fn actors(label: &str) -> Vec<i32> {
    let matches = |number: &i32| {
        // program, tool, act, directory, label, …
        let words = command_line(*number);
        let word = |at: usize| words.get(at).map(String::as_str);
        (word(1), word(2), word(4)) == (Some(tools::WORD), Some(tools::ACT), Some(label))
    };
    process_numbers().filter(matches).filter(|&number| is_alive(number)).collect()
}

/// Waits for an event, and fails after `limit`.
pub(crate) fn until<T>(what: &str, limit: Duration, come: impl FnMut() -> Option<T>) -> Result<T, String> {
    wait_for(limit, Duration::from_millis(5), come)
        .ok_or_else(|| format!("timed out after {limit:?} waiting for {what}"))
}
