use std::fmt;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;

use super::directory::Directory;

/// The process that has the lock of a file, according to `/proc`.
#[derive(Debug)]
pub(crate) struct LockOwner {
    pid: i32,
    /// Its user, if that is not the one of this process, who may not signal it.
    other_user: Option<u32>,
    command: String,
    stopped: bool,
}

impl LockOwner {
    /// The owner; `None` if the file is not locked, or if this process cannot see by whom.
    pub(crate) fn of(directory: &Directory, name: &str) -> Option<Self> {
        let inode = directory.status_of(name).ok()?.st_ino;
        let device = device_of(directory)?;
        let pid = (0..READS).find_map(|_| owner_now(&device, inode))?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program is in parentheses, and may contain parentheses.
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace(char::is_control, " ");
        let command = command.trim_end().chars().take(COMMAND_MAX).collect();
        let user = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
        let other_user = Some(user).filter(|user| *user != rustix::process::geteuid().as_raw());
        Some(Self { pid, other_user, command, stopped: matches!(state, 'T' | 't') })
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }
}

impl fmt::Display for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, other_user, command, stopped } = self;
        let user = other_user.map(|user| format!(" of user {user}")).unwrap_or_default();
        write!(f, "process {pid}{user} ({command}) has the lock")?;
        if *stopped {
            write!(f, " and is stopped: continue it (kill -CONT {pid}) or kill it")
        } else {
            f.write_str(": inspect or kill it")
        }
    }
}

/// The device of a directory, as `/proc/locks` writes it. On btrfs and overlayfs `stat` shows another one; the table of mounts
/// shows the right one.
fn device_of(directory: &Directory) -> Option<String> {
    let descriptor = directory.as_fd().as_raw_fd();
    let information = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
    let mount = information.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| device_in(line, mount))
}

/// The device in the line of `/proc/self/mountinfo` of this mount, in the hexadecimal form of `/proc/locks`.
///
/// ```text
/// 29 1 254:0 / / rw,relatime - ext4 /dev/vda rw
/// ```
fn device_in(line: &str, mount: &str) -> Option<String> {
    let mut words = line.split(' ');
    words.next().filter(|id| *id == mount)?;
    let (major, minor) = words.nth(1)?.split_once(':')?;
    Some(format!("{:02x}:{:02x}", major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
}

/// The owner according to one read of `/proc/locks`.
fn owner_now(device: &str, inode: u64) -> Option<i32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let mut owners = locks.lines().filter_map(|line| owner_in(line, device, inode));
    // The lock may have changed hands during the read.
    owners.next().filter(|pid| owners.all(|other| other == *pid))
}

/// The process that a line of `/proc/locks` names as the owner of a lock on this file.
///
/// ```text
/// 2: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
/// ```
fn owner_in(line: &str, device: &str, inode: u64) -> Option<i32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", pid, file, ..] = words[..] else { return None };
    let (of_device, of_inode) = file.rsplit_once(':')?;
    let of_the_file = of_device == device && of_inode.parse() == Ok(inode);
    pid.parse().ok().filter(|pid| of_the_file && *pid > 0)
}

/// Maximum number of reads of `/proc/locks`. The kernel prints it in parts, and skips a lock if one before it is released
/// between two parts. In the test below, 7 of 100 reads lack the lock that is held.
const READS: usize = 8;

const COMMAND_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::FlockOperation;

    use super::*;

    #[test]
    fn the_owner_of_a_lock_is_read_and_a_waiting_process_is_not() {
        assert_eq!(owner_in("2: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF", "fe:00", 131), Some(4711));
        for line in [
            "2: -> FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF",
            "2: OFDLCK ADVISORY  WRITE -1 fe:00:131 0 EOF",
            "2: FLOCK  ADVISORY  READ 4711 fe:00:131 0 EOF",
            "2: FLOCK  ADVISORY  WRITE 0 fe:00:131 0 EOF",
            "2: FLOCK  ADVISORY  WRITE 4711 fe:00:132 0 EOF",
        ] {
            assert_eq!(owner_in(line, "fe:00", 131), None, "{line}");
        }
    }

    #[test]
    fn the_lock_of_a_file_with_an_equal_inode_on_another_device_names_no_owner() {
        let device = device_in("29 1 254:0 / / rw,relatime - ext4 /dev/vda rw", "29").unwrap();
        assert_eq!(device, "fe:00");
        assert_eq!(device_in("29 1 254:0 / / rw,relatime - ext4 /dev/vda rw", "2"), None);
        assert_eq!(owner_in("2: FLOCK  ADVISORY  WRITE 4711 00:1a:131 0 EOF", &device, 131), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "threads that lock other files meanwhile")]
    fn the_owner_is_found_while_others_lock_and_unlock() {
        let folder = std::env::temp_dir().join(format!("tenure-lock-owner-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let lock = |name: String| {
            let file = std::fs::File::create(folder.join(name)).unwrap();
            rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
            file
        };
        let opened = std::fs::File::open(&folder).unwrap();
        let status = rustix::fs::fstat(&opened).unwrap();
        let directory = Directory::new(folder.clone(), opened.into(), &status);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (ended, lock) = (&ended, &lock);
                scope.spawn(move || {
                    while !ended.load(Ordering::Relaxed) {
                        drop((0..40).map(|number| lock(format!("{thread}-{number}"))).collect::<Vec<_>>());
                    }
                });
            }
            let _held = lock("held".to_owned());
            let is_found =
                |owner: LockOwner| owner.pid.cast_unsigned() == std::process::id() && !owner.is_stopped();
            let found = (0..100).filter(|_| LockOwner::of(&directory, "held").is_some_and(is_found)).count();
            ended.store(true, Ordering::Relaxed);
            assert_eq!(found, 100);
        });
        std::fs::remove_dir_all(folder).unwrap();
    }
}
