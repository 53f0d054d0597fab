use std::io;
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::rand::{GetRandomFlags, getrandom};

/// One byte of a file, locked for an open file description. The kernel frees it when the last copy of the description
/// is closed, and shows it in the `fdinfo` of each process that has a copy.
///
/// Its place is random and far behind the end of the file, so that several scripts can use one file. The locks are
/// advisory: no content is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LockedByte(i64);

impl LockedByte {
    /// A byte that no other process knows.
    pub(super) fn draw() -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        // Between 2^62 and 2^62 + 2^61.
        Ok(Self((1 << 62) | (u64::from_ne_bytes(random) >> 3) as i64))
    }

    /// Locks it without waiting.
    pub(super) fn lock(self, file: impl AsFd) -> io::Result<()> {
        Ok(fcntl(file, FcntlArg::F_OFD_SETLK(&self.range(libc::F_WRLCK))).map(drop)?)
    }

    /// Waits until it is free, and locks it.
    pub(super) fn wait(self, file: impl AsFd) -> io::Result<()> {
        Ok(fcntl(file, FcntlArg::F_OFD_SETLKW(&self.range(libc::F_WRLCK))).map(drop)?)
    }

    /// Frees it.
    pub(super) fn unlock(self, file: impl AsFd) -> io::Result<()> {
        Ok(fcntl(file, FcntlArg::F_OFD_SETLK(&self.range(libc::F_UNLCK))).map(drop)?)
    }

    /// True if another description has it locked. Queries, and never takes.
    pub(super) fn is_locked_elsewhere(self, file: impl AsFd) -> io::Result<bool> {
        let mut asked = self.range(libc::F_WRLCK);
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked))?;
        Ok(asked.l_type != libc::F_UNLCK as libc::c_short)
    }

    /// True if this content of an `fdinfo` file shows the lock.
    pub(super) fn is_in(self, fdinfo: &str) -> bool {
        // The script may have locked more of the file: the kernel shows one lock for ranges that meet.
        let contains = |line: &str| {
            let mut words = line.split_whitespace().rev();
            let (end, start) = (words.next()?, words.next()?.parse::<i64>().ok()?);
            let end = if end == "EOF" { i64::MAX } else { end.parse().ok()? };
            Some((start..=end).contains(&self.0))
        };
        let mut locks = fdinfo.lines().filter(|line| line.starts_with("lock:") && line.contains(" OFDLCK "));
        locks.any(|line| contains(line).unwrap_or(false))
    }

    fn range(self, kind: libc::c_int) -> libc::flock {
        libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: self.0,
            l_len: 1,
            l_pid: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_shows_the_lock_of_a_description_with_its_bytes() {
        let byte = LockedByte(4_232_502_872_500_360_824);
        let shown = |lock: &str| format!("pos:\t0\nflags:\t02102001\nmnt_id:\t27\nino:\t9978045\n{lock}");
        let lock =
            "lock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:9978045 4232502872500360824 4232502872500360824\n";
        assert!(byte.is_in(&shown(lock)));
        assert!(!byte.is_in(&shown("")));
        let other =
            "lock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:9978045 4232502872500360825 4232502872500360825\n";
        assert!(!byte.is_in(&shown(other)));
        assert!(byte.is_in(&shown("lock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:9978045 0 EOF\n")));
        assert!(!byte.is_in(&shown("lock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:9978045 0 99\n")));
    }
}
