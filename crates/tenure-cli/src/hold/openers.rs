//! The processes that have the script's descriptor open.

use std::fs;
use std::os::fd::{OwnedFd, RawFd};

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use super::locked_byte::LockedByte;

/// A process with the descriptor. The pidfd never refers to another process, even if the process id is reused.
struct Opener {
    pid: Pid,
    process: OwnedFd,
}

/// Sends the signal to each process that has the description of this byte, and returns how many got it. Those that this
/// user may not inspect are left out.
pub(super) fn signal(byte: LockedByte, signal: Signal) -> usize {
    let mut openers = find(byte, &[]);
    // A process may have forked during the search. All are found before the first one gets the signal, because a trap
    // starts processes, too.
    for _ in 0..SEARCHES_MAX {
        let more = find(byte, &openers);
        if more.is_empty() {
            break;
        }
        openers.extend(more);
    }
    openers.iter().filter(|opener| pidfd_send_signal(&opener.process, signal).is_ok()).count()
}

/// True if the kernel shows that this process has the byte locked through this descriptor.
pub(super) fn shows(byte: LockedByte, descriptor: RawFd) -> bool {
    fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).is_ok_and(|fdinfo| byte.is_in(&fdinfo))
}

/// The openers, except this process and those that are known.
fn find(byte: LockedByte, known: &[Opener]) -> Vec<Opener> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| *pid != getpid() && !known.iter().any(|opener| opener.pid == *pid))
        .filter(|pid| has(*pid, byte))
        .filter_map(|pid| {
            let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            // The process id may have been reused before it was opened.
            has(pid, byte).then_some(Opener { pid, process })
        })
        .collect()
}

fn has(pid: Pid, byte: LockedByte) -> bool {
    let directory = format!("/proc/{}/fdinfo", pid.as_raw_nonzero());
    let Ok(descriptors) = fs::read_dir(directory) else { return false };
    descriptors
        .flatten()
        .any(|entry| fs::read_to_string(entry.path()).is_ok_and(|fdinfo| byte.is_in(&fdinfo)))
}

/// Most searches for processes that were forked during the search before.
const SEARCHES_MAX: usize = 4;
