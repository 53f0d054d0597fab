//! Notes where the trial of a directory has passed, so that not every open repeats it.

use std::fmt;

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use super::directory::Directory;
use super::name;
use crate::clock::Domain;
use crate::host::checksum::checksum;

/// A directory as one mount shows it, in one boot of the kernel. Another mount of the same directory may have other
/// options, or belong to another kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tried {
    domain: Domain,
    mount: u64,
    device: u64,
    inode: u64,
}

impl Tried {
    /// The directory as this process sees it; `None` if the kernel does not distinguish mounts.
    pub(super) fn here(directory: &Directory, domain: Option<&Domain>) -> Option<Self> {
        let wanted = StatxFlags::MNT_ID | StatxFlags::from_bits_retain(MNT_ID_UNIQUE);
        let status = rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, wanted).ok()?;
        if status.stx_mask & wanted.bits() == 0 {
            return None;
        }
        let there = rustix::fs::fstat(directory).ok()?;
        let (device, inode) = (there.st_dev, there.st_ino);
        Some(Self { domain: domain?.clone(), mount: status.stx_mnt_id, device, inode })
    }

    /// True if the trial has passed here. In doubt, it has not.
    pub(super) fn is_noted(&self, directory: &Directory) -> bool {
        let line = self.to_string();
        read(directory).is_some_and(|text| text.lines().any(|noted| noted == line))
    }

    /// Notes that the trial has passed here, and keeps the notes of processes that see the directory through other
    /// mounts.
    ///
    /// Without sync: after a power cut the boot is another one. A note that cannot be written costs another trial.
    pub(super) fn note(&self, directory: &Directory) -> rustix::io::Result<()> {
        let line = self.to_string();
        let text = read(directory).unwrap_or_default();
        let mut lines: Vec<&str> = text.lines().filter(|noted| *noted != line).collect();
        lines.drain(..lines.len().saturating_sub(LINES_MAX - 1));
        lines.push(&line);
        let text = lines.join("\n") + "\n";
        let temporary = name::temporary(super::random());
        let file = directory.create(&temporary, OFlags::WRONLY)?;
        let written = match rustix::io::write(&file, text.as_bytes()) {
            Ok(written) if written == text.len() => directory.rename(&temporary, name::TRIED),
            Ok(_) => Err(Errno::NOSPC),
            Err(errno) => Err(errno),
        };
        if written.is_err() {
            let _ = directory.unlink(&temporary);
        }
        written
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = format!("{} {} {} {}", self.domain, self.mount, self.device, self.inode);
        write!(f, "tenure-tried {VERSION} {facts} {:016x}", checksum(&[facts.as_bytes()]))
    }
}

fn read(directory: &Directory) -> Option<String> {
    let file = directory.open(name::TRIED, OFlags::RDONLY).ok()?;
    let mut bytes = vec![0; BYTES_MAX];
    let read = rustix::io::read(&file, &mut bytes[..]).ok()?;
    bytes.truncate(read);
    String::from_utf8(bytes).ok()
}

/// `STATX_MNT_ID_UNIQUE`, since Linux 6.8: the number of an unmounted mount is never used again.
const MNT_ID_UNIQUE: u32 = 0x4000;

/// Version of the trial: a trial with more tests runs again where an earlier version has passed.
const VERSION: u32 = 1;

/// Maximum number of remembered mounts. If more containers than this share a directory on one machine, trials repeat.
const LINES_MAX: usize = 16;

/// Upper limit of the size of that many lines.
const BYTES_MAX: usize = LINES_MAX * 256;
