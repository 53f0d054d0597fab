//! The descriptors that this process has inherited.

use std::collections::HashSet;
use std::os::fd::RawFd;
use std::{fs, io};

/// Closes all descriptors above standard error, except these. Only for a process that has just forked: nothing in it
/// may own one of the others.
pub(crate) fn close_others(kept: &HashSet<RawFd>) -> io::Result<()> {
    let numbers: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers {
        if number > 2 && !kept.contains(&number) {
            // One of them was the listing itself, which is closed already.
            let _ = nix::unistd::close(number);
        }
    }
    Ok(())
}
