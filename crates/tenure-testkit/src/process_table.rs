//! Processes of this machine, as `/proc` shows them.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The pids of all processes.
pub fn process_numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The fields of `/proc/PID/stat` after the name: the first one is the state. `None` if there is no such process.
pub fn stat_fields(number: i32) -> Option<Vec<String>> {
    // The name is in parentheses, and may contain parentheses.
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split_whitespace().map(str::to_owned).collect())
}

/// State of a process: `R`, `S`, `T`, `Z` and so on.
pub fn state_of(number: i32) -> Option<char> {
    stat_fields(number)?.first()?.chars().next()
}

/// The parent of a process.
pub fn parent_of(number: i32) -> Option<i32> {
    stat_fields(number)?.get(1)?.parse().ok()
}

/// The session of a process.
pub fn session_of(number: i32) -> Option<i32> {
    stat_fields(number)?.get(3)?.parse().ok()
}

/// The children of a process, including zombies, in the order of their start.
pub fn children_of(number: i32) -> Vec<i32> {
    let started_at = |fields: &[String]| fields.get(19).and_then(|field| field.parse::<u64>().ok());
    let mut children: Vec<_> = process_numbers()
        .filter_map(|child| Some((child, stat_fields(child)?)))
        .filter(|(_, fields)| fields.get(1).and_then(|field| field.parse().ok()) == Some(number))
        .map(|(child, fields)| (started_at(&fields), child))
        .collect();
    children.sort_unstable();
    children.into_iter().map(|(_, child)| child).collect()
}

/// True if a thread of the process exists and is not a zombie. The first thread may be a zombie while others run.
pub fn is_alive(number: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
    })
}

/// True if the process is neither stopped nor dead.
pub fn is_running(number: i32) -> bool {
    state_of(number).is_some_and(|state| !matches!(state, 'T' | 't' | 'Z' | 'X'))
}

/// The command line of a process. Empty for a zombie, and if there is no such process.
pub fn command_line(number: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    let words = line.split_inclusive(|&byte| byte == 0);
    words.map(|word| String::from_utf8_lossy(word.strip_suffix(&[0]).unwrap_or(word)).into_owned()).collect()
}

/// The exit code as a shell reports it.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().expect("it has ended"))
}
