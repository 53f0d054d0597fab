use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::{env, fs};

use rustix::fs::StatVfsMountFlags;

/// The user of a setuid program, if this process may not signal that user's processes.
///
/// `sudo` is such a program: KILL stops it, but not the processes that it started.
pub(super) fn foreign_user(program: &OsStr) -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    if may_signal_all(&status) || field(&status, "NoNewPrivs:") == Some("1") {
        return None;
    }
    let path = find(program)?;
    let file = fs::metadata(&path).ok()?;
    let by_its_file = file.mode() & SET_USER_ID != 0 && file.uid() != rustix::process::geteuid().as_raw();
    let ignored =
        rustix::fs::statvfs(&path).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOSUID));
    (by_its_file && !ignored).then(|| file.uid())
}

/// True with CAP_KILL.
fn may_signal_all(status: &str) -> bool {
    let effective = field(status, "CapEff:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    effective.is_some_and(|mask| mask >> CAP_KILL & 1 == 1)
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The file that `exec` would execute.
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let directories = env::var_os("PATH")?;
    env::split_paths(&directories).map(|directory| directory.join(program)).find(|path| path.is_file())
}

const SET_USER_ID: u32 = 0o4000;

const CAP_KILL: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_to_signal_all_is_read_from_the_status() {
        assert!(may_signal_all("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(may_signal_all("CapEff:\t0000000000000020\n"));
        assert!(!may_signal_all("CapEff:\t0000000000000000\n") && !may_signal_all(""));
    }

    #[test]
    fn a_program_is_found_as_exec_finds_it() {
        assert_eq!(find(OsStr::new("./x")), Some(PathBuf::from("./x")));
        assert!(find(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(find(OsStr::new("no-such-program-anywhere")), None);
    }
}
