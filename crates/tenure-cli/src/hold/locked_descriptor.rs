use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::thread;

use rustix::event::poll;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::locked_byte::LockedByte;
use super::openers;
use crate::exit::Failure;
use crate::run::fork::copy_descriptor;

/// A file that the script has open, with a lock on one byte: it is freed when the last process has closed its copy.
#[derive(Debug)]
pub(super) struct LockedDescriptor {
    number: RawFd,
    byte: LockedByte,
    /// A copy of the script's descriptor. The keeper has none.
    scripts: Option<OwnedFd>,
    /// The same file, opened once more: another description, which has to wait for the lock of the first.
    own: File,
}

impl LockedDescriptor {
    /// Locks a byte for the descriptor with this number. A failure says what is wrong with the descriptor.
    pub(super) fn lock(number: RawFd) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::usage(format!("descriptor {number} {what}"));
        let standard = ["input", "output", "error"];
        if let Some(name) = usize::try_from(number).ok().and_then(|number| standard.get(number)) {
            return Err(wrong(&format!("is standard {name}, which the script needs: use {EXAMPLE}")));
        }
        let scripts = copy_descriptor(number).map_err(|error| {
            if error.raw_os_error() == Some(Errno::BADF.raw_os_error()) {
                wrong(&format!("is not open: open a file before, with {EXAMPLE}"))
            } else {
                Failure::unavailable(format!(
                    "descriptor {number} cannot be used: {error}. Check the limit on open files"
                ))
            }
        })?;
        let kind = fstat(&scripts).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind != Ok(FileType::RegularFile) {
            let is = kind.map_or("no file", name_of);
            return Err(wrong(&format!("is {is}, and only a file can be locked: use {EXAMPLE}")));
        }
        let flags = fcntl_getfl(&scripts).unwrap_or(OFlags::PATH);
        if flags.contains(OFlags::PATH) || !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
            return Err(wrong(&format!("is open for reading only: use {EXAMPLE}")));
        }
        let cannot =
            |error: io::Error| wrong(&format!("cannot be locked: {error}. Use a file on a local disk"));
        let byte = LockedByte::draw().map_err(cannot)?;
        byte.lock(&scripts).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied => {
                wrong("is of a file that another program has locked as a whole: use a file that no other program locks")
            }
            _ => cannot(error),
        })?;
        match open_again(&scripts, byte, wrong) {
            Ok(own) => Ok(Self { number, byte, scripts: Some(scripts), own }),
            Err(failure) => {
                let _ = byte.unlock(&scripts);
                Err(failure)
            }
        }
    }

    pub(super) fn number(&self) -> RawFd {
        self.number
    }

    /// The byte, by which the openers are found.
    pub(super) fn byte(&self) -> LockedByte {
        self.byte
    }

    /// Removes the lock: the lease was not granted.
    pub(super) fn unlock(&self) {
        if let Some(scripts) = &self.scripts {
            let _ = self.byte.unlock(scripts);
        }
    }

    /// Closes the copy of the script's descriptor, and returns the descriptors that the keeper needs.
    pub(super) fn detach(&mut self) -> HashSet<RawFd> {
        self.scripts = None;
        HashSet::from([self.own.as_raw_fd()])
    }

    /// A descriptor that becomes readable when every process has closed the script's descriptor.
    #[expect(
        clippy::disallowed_methods,
        reason = "the kernel reports a free lock only to a thread that waits for it"
    )]
    pub(super) fn closed(&self) -> io::Result<OwnedFd> {
        let (reader, writer) = io::pipe()?;
        let (own, byte) = (self.own.try_clone()?, self.byte);
        let waiting = move || {
            while let Err(error) = byte.wait(&own) {
                // Nothing is known, so the script may have it open.
                if error.raw_os_error() != Some(Errno::INTR.raw_os_error()) {
                    let _ = poll(&mut [], Some(&PAUSE));
                }
            }
            drop(writer);
        };
        thread::Builder::new().name("lease-descriptor".to_owned()).spawn(waiting)?;
        Ok(reader.into())
    }
}

/// Opens the file once more, and verifies that the lock of the first description is seen there.
fn open_again(scripts: &OwnedFd, byte: LockedByte, wrong: impl Fn(&str) -> Failure) -> Result<File, Failure> {
    // O_APPEND, because a file may allow nothing else.
    let path = format!("/proc/self/fd/{}", scripts.as_raw_fd());
    let own = File::options().append(true).open(path).map_err(|error| {
        wrong(&format!(
            "is of a file that cannot be opened again: {error}. Use a file that this user may write"
        ))
    })?;
    // Some file systems accept a lock that no other process sees.
    if !byte.is_locked_elsewhere(&own).unwrap_or(false) {
        return Err(wrong("is of a file whose locks have no effect: use a file on a local disk"));
    }
    if !openers::shows(byte, scripts.as_raw_fd()) {
        return Err(Failure::misconfigured(
            "/proc does not show which processes have a lock, so tenure could not signal them if the lease is lost: \
             mount the /proc of this pid namespace, or use tenure run",
        ));
    }
    Ok(own)
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a terminal or another device",
        _ => "no file",
    }
}

/// How a script opens a descriptor.
const EXAMPLE: &str = "exec 9>>/var/lock/backup.lock and --fd 9";

/// Time until the next attempt to wait for a lock that the kernel does not give.
const PAUSE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_file_is_closed_when_the_last_copy_is_and_not_before() {
        let file = a_file();
        let copy = file.try_clone().unwrap();
        let mut locked = LockedDescriptor::lock(file.as_raw_fd()).unwrap();
        locked.detach();
        let closed = locked.closed().unwrap();
        drop(file);
        assert!(!is_readable(&closed, 0));
        drop(copy);
        assert!(is_readable(&closed, 60));
    }

    #[test]
    fn two_locks_of_one_descriptor_are_independent() {
        let file = a_file();
        let first = LockedDescriptor::lock(file.as_raw_fd()).unwrap();
        let mut second = LockedDescriptor::lock(file.as_raw_fd()).unwrap();
        first.unlock();
        second.detach();
        assert!(!is_readable(&second.closed().unwrap(), 0));
    }

    fn a_file() -> File {
        rustix::fs::memfd_create("held", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into()
    }

    fn is_readable(descriptor: &OwnedFd, seconds: i64) -> bool {
        use rustix::event::{PollFd, PollFlags};
        let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
        poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&limit)) == Ok(1)
    }
}
