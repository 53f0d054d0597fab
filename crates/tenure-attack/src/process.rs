use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::tools;

/// Sends a signal. Numbers are those of the attack's own pid namespace, so a mistake reaches nothing else.
pub(crate) fn send(number: i32, signal: Signal) -> Result<(), String> {
    let pid = Pid::from_raw(number).ok_or("process 0 is not signalled")?;
    kill_process(pid, signal).map_err(|error| format!("signal to process {number}: {error}"))
}

/// Children of a process, in the order of their start.
pub(crate) fn children_of(number: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// True if a thread of it is neither gone nor a zombie. The first thread may be a zombie while others run.
pub(crate) fn lives(number: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
    })
}

/// Actors with this label that live.
///
/// A process whose first thread has ended shows no command line: it is not found.
pub(crate) fn actors(label: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let matches = |number: &i32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
        // program, tool, act, folder, label, …
        words.get(1) == Some(&tools::WORD.as_bytes())
            && words.get(2) == Some(&tools::ACT.as_bytes())
            && words.get(4) == Some(&label.as_bytes())
    };
    numbers.filter(matches).filter(|&number| lives(number)).collect()
}

/// Waits for something that must come.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut come: impl FnMut() -> Option<T>,
) -> Result<T, String> {
    let began = Instant::now();
    loop {
        if let Some(come) = come() {
            return Ok(come);
        }
        if began.elapsed() > limit {
            return Err(format!("{what} did not come within {limit:?}"));
        }
        sleep_ms(5);
    }
}

pub(crate) fn sleep_ms(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}
