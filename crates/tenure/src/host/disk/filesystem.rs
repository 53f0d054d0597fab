use std::fmt;
use std::os::fd::AsFd;

/// The kind of file system of a directory, by the number that `statfs` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem(u32);

/// Facts about a kind of file system.
struct KnownKind {
    number: u32,
    name: &'static str,
    /// `None` if all its users share a kernel, and renames, locks and syncs are the kernel's own; otherwise the reason.
    lacks: Option<&'static str>,
}

impl FileSystem {
    pub(crate) fn of(directory: impl AsFd) -> rustix::io::Result<Self> {
        // The kernel's numbers have 32 bits; some are sign-extended where its word has 64.
        Ok(Self(rustix::fs::fstatfs(directory)?.f_type as u32))
    }

    /// True if locks, renames and syncs are this kernel's own.
    pub(crate) fn is_local(self) -> bool {
        self.known().is_some_and(|known| known.lacks.is_none())
    }

    /// True if its files are in memory alone: a reboot loses them.
    pub(crate) fn is_in_memory(self) -> bool {
        [TMPFS, RAMFS].contains(&self.0)
    }

    /// True if a mapping of a file keeps the very file description that was mapped, with its locks.
    ///
    /// An overlay maps the file of its layer instead, so the description goes with its last descriptor.
    pub(crate) fn keeps_what_is_mapped(self) -> bool {
        self.is_local() && self.0 != OVERLAY
    }

    /// True if the size of a file that grew reaches the disk only after all bytes that the disk had in its cache before.
    ///
    /// ext4 writes the size in a transaction of its journal, and flushes the disk's cache before it commits one. It replaces
    /// bytes in place, so that they need no metadata. Others, such as btrfs, write them elsewhere.
    pub(crate) fn grows_after_earlier_writes(self) -> bool {
        self.0 == EXT4
    }

    /// Reason why it is not accepted unless named.
    pub(crate) fn lacks(self) -> &'static str {
        self.known().map_or(UNKNOWN, |known| known.lacks.unwrap_or("nothing"))
    }

    /// True if `name` is its name here or on the command line of `mount`.
    pub(crate) fn is_called(self, name: &str) -> bool {
        self.to_string().eq_ignore_ascii_case(name)
    }

    fn known(self) -> Option<&'static KnownKind> {
        KNOWN.iter().find(|known| known.number == self.0)
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some(known) => f.write_str(known.name),
            None => write!(f, "0x{:08x}", self.0),
        }
    }
}

const EXT4: u32 = 0x0000_ef53;
const OVERLAY: u32 = 0x794c_7630;
const RAMFS: u32 = 0x8584_58f6;
const TMPFS: u32 = 0x0102_1994;

const UNKNOWN: &str = "it is not known whether its locks and renames can be relied on";
const REMOTE: &str = "it is shared over a network: another machine performs its locks and renames, and \
     reads may be stale";
const USER: &str = "a user-space program implements it, and its locks and renames may not be reliable";
const HOST: &str = "it belongs to the host of this virtual machine, where others may change it unseen";
const CLUSTER: &str = "other machines write to it as well, and share neither clock nor kernel with this one";
const PLAIN: &str =
    "it has no owners and keeps no journal: a power cut may leave neither the old entry nor the new";
const NOT_A_DISK: &str = "it does not store files";

const fn local(number: u32, name: &'static str) -> KnownKind {
    KnownKind { number, name, lacks: None }
}

const fn lacking(number: u32, name: &'static str, lacks: &'static str) -> KnownKind {
    KnownKind { number, name, lacks: Some(lacks) }
}

/// `linux/magic.h`, and numbers that are missing there. The table says which systems are shared between kernels; the
/// store tests their behaviour in its directory. An overlay is local, because its upper layer belongs to one mount at a
/// time; lock files are opened for writing, so that they are in that layer before they are locked.
const KNOWN: &[KnownKind] = &[
    local(EXT4, "ext4"),
    local(0x5846_5342, "xfs"),
    local(0x9123_683e, "btrfs"),
    local(TMPFS, "tmpfs"),
    local(RAMFS, "ramfs"),
    local(0xf2f5_2010, "f2fs"),
    local(0x2fc1_2fc1, "zfs"),
    local(0xca45_1a4e, "bcachefs"),
    local(0x3153_464a, "jfs"),
    local(0x0000_3434, "nilfs2"),
    local(0x2405_1905, "ubifs"),
    local(OVERLAY, "overlay"),
    lacking(0x0000_6969, "nfs", REMOTE),
    lacking(0x0000_517b, "smb", REMOTE),
    lacking(0xff53_4d42, "cifs", REMOTE),
    lacking(0xfe53_4d42, "smb2", REMOTE),
    lacking(0x00c3_6400, "ceph", REMOTE),
    lacking(0x5346_414f, "afs", REMOTE),
    lacking(0x7375_7245, "coda", REMOTE),
    lacking(0x0bd0_0bd0, "lustre", REMOTE),
    lacking(0x6573_5546, "fuse", USER),
    lacking(0x0102_1997, "9p", HOST),
    lacking(0x786f_4256, "vboxsf", HOST),
    lacking(0x00c0_ffee, "hostfs", HOST),
    lacking(0x0116_1970, "gfs2", CLUSTER),
    lacking(0x7461_636f, "ocfs2", CLUSTER),
    lacking(0x0000_4d44, "vfat", PLAIN),
    lacking(0x2011_bab0, "exfat", PLAIN),
    lacking(0x5346_544e, "ntfs", PLAIN),
    lacking(0x7366_746e, "ntfs3", PLAIN),
    lacking(0x0000_f15f, "ecryptfs", UNKNOWN),
    lacking(0x0000_9fa0, "proc", NOT_A_DISK),
    lacking(0x6265_6572, "sysfs", NOT_A_DISK),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn disks_are_local_and_network_file_systems_are_not() {
        assert!(FileSystem(0x0000_ef53).is_local());
        for (number, name) in
            [(0x6969, "nfs"), (0xff53_4d42, "cifs"), (0x6573_5546, "fuse"), (0x0102_1997, "9p")]
        {
            let there = FileSystem(number);
            assert!(!there.is_local() && there.is_called(name), "{there}");
        }
    }

    #[test]
    fn an_overlay_is_local_and_a_mapping_keeps_no_lock_there() {
        assert!(FileSystem(OVERLAY).is_local() && !FileSystem(OVERLAY).keeps_what_is_mapped());
        assert!(FileSystem(TMPFS).keeps_what_is_mapped());
        assert!(!FileSystem(0x6573_5546).keeps_what_is_mapped(), "what is not known to be local");
    }

    #[test]
    fn files_in_memory_are_lost_at_a_reboot_and_those_on_a_disk_are_not() {
        assert!([TMPFS, RAMFS].iter().all(|number| FileSystem(*number).is_in_memory()));
        assert!(!FileSystem(EXT4).is_in_memory() && !FileSystem(OVERLAY).is_in_memory());
    }

    #[test]
    fn an_unknown_file_system_is_not_local_and_can_be_named_by_its_number() {
        let strange = FileSystem(0x1234_abcd);
        assert!(!strange.is_local());
        assert_eq!(strange.lacks(), UNKNOWN);
        assert!(strange.is_called("0x1234ABCD"));
    }

    #[test]
    fn a_refusal_gives_its_reason_once() {
        assert_eq!(
            FileSystem(0x6969).lacks(),
            "it is shared over a network: another machine performs its locks and renames, and reads may be stale"
        );
    }

    #[test]
    fn every_number_and_every_name_is_listed_once() {
        let (numbers, names): (HashSet<_>, HashSet<_>) =
            KNOWN.iter().map(|known| (known.number, known.name)).unzip();
        assert_eq!((numbers.len(), names.len()), (KNOWN.len(), KNOWN.len()));
    }

    #[test]
    fn the_kernel_names_the_file_system() {
        assert!(FileSystem::of(std::fs::File::open("/proc").unwrap()).unwrap().is_called("proc"));
    }
}
