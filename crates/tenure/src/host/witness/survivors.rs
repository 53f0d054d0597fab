//! Processes that have a witness open. Informational: `/proc` shows only those that this user may see, and no decision
//! depends on it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Processes that are alive under a term, as far as this process may see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survivors {
    /// True if a process that keeps the lease, or guards the work under it, is alive.
    pub guards: bool,
    /// True if a process that does the work, or ends only after it, is alive.
    pub tree: bool,
    /// Processes that have the witness open.
    pub processes: Vec<Survivor>,
}

/// A process that has a witness open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survivor {
    /// Its process id.
    pub pid: u32,
    /// Its command line on one line, or its name in brackets if it has none.
    pub command: String,
}

/// Processes that have this file open for writing: observers of a witness open it for reading.
pub(super) fn of(device: u64, inode: u64) -> Vec<Survivor> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut numbers: Vec<_> = numbers.take(PROCESSES_MAX).collect();
    numbers.sort_unstable();
    let found = numbers.into_iter().filter(|pid| *pid != std::process::id() && has_open(*pid, device, inode));
    found.take(SURVIVORS_MAX).map(|pid| Survivor { pid, command: command(pid) }).collect()
}

fn has_open(pid: u32, device: u64, inode: u64) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.take(DESCRIPTORS_MAX).flatten().any(|descriptor| {
        let path = descriptor.path();
        // The permissions of the link show how it was opened.
        let writes = fs::symlink_metadata(&path).is_ok_and(|link| link.permissions().mode() & 0o200 != 0);
        writes
            && is_witness_name(&path)
            && fs::metadata(&path).is_ok_and(|file| (file.dev(), file.ino()) == (device, inode))
    })
}

/// Avoids a call on the file itself, whose disk may not answer.
fn is_witness_name(path: &Path) -> bool {
    let target = fs::read_link(path).unwrap_or_default();
    target.file_name().and_then(|name| name.to_str()).is_some_and(super::is_name)
}

fn command(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    let line = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
    let line = if line.is_empty() {
        format!("[{}]", fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim())
    } else {
        line
    };
    let end = (0..=COMMAND_MAX.min(line.len())).rfind(|end| line.is_char_boundary(*end)).unwrap_or(0);
    line[..end].replace(char::is_control, " ")
}

/// More than a machine has processes, and more descriptors than a command inherits.
const PROCESSES_MAX: usize = 100_000;
const DESCRIPTORS_MAX: usize = 10_000;

/// Maximum number of processes in a message.
const SURVIVORS_MAX: usize = 16;
const COMMAND_MAX: usize = 120;
