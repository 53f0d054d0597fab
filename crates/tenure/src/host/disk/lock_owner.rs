use std::fmt;

use super::directory::Directory;

/// The process that has the lock of a file, according to `/proc`.
#[derive(Debug)]
pub(crate) struct LockOwner {
    pid: i32,
    command: String,
    stopped: bool,
}

impl LockOwner {
    /// The owner; `None` if the file is not locked, or if this process cannot see by whom.
    pub(crate) fn of(directory: &Directory, name: &str) -> Option<Self> {
        let inode = directory.status_of(name).ok()?.st_ino;
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        let mut owners = locks.lines().filter_map(|line| owner_in(line, inode));
        let pid = owners.next().filter(|pid| owners.all(|other| other == *pid))?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program is in parentheses, and may contain parentheses.
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace(char::is_control, " ");
        let command = command.trim_end().chars().take(COMMAND_MAX).collect();
        Some(Self { pid, command, stopped: matches!(state, 'T' | 't') })
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }
}

impl fmt::Display for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, command, stopped } = self;
        write!(f, "process {pid} ({command}) has the lock")?;
        if *stopped {
            write!(f, " and is stopped: continue it (kill -CONT {pid}) or kill it")
        } else {
            f.write_str(": inspect or kill it")
        }
    }
}

/// The process that a line of `/proc/locks` names as the owner of a lock on the file with this inode. The device is not
/// compared: some file systems show another one here than in `stat`. With two owners of equal inodes, the owner is
/// unknown.
///
/// ```text
/// 2: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
/// ```
fn owner_in(line: &str, inode: u64) -> Option<i32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", pid, file, ..] = words[..] else { return None };
    let of_the_file = file.rsplit(':').next()?.parse() == Ok(inode);
    pid.parse().ok().filter(|pid| of_the_file && *pid > 0)
}

const COMMAND_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_lock_is_read_and_a_waiting_process_is_not() {
        assert_eq!(owner_in("2: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF", 131), Some(4711));
        for line in [
            "2: -> FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF",
            "2: OFDLCK ADVISORY  WRITE -1 fe:00:131 0 EOF",
            "2: FLOCK  ADVISORY  READ 4711 fe:00:131 0 EOF",
            "2: FLOCK  ADVISORY  WRITE 0 fe:00:131 0 EOF",
            "2: FLOCK  ADVISORY  WRITE 4711 fe:00:132 0 EOF",
        ] {
            assert_eq!(owner_in(line, 131), None, "{line}");
        }
    }
}
