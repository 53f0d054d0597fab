//! Kinds of servers.

use std::path::PathBuf;

use super::ceph::CephRgw;
use super::minio::Minio;
use super::rclone::Rclone;
use super::recipe::Recipe;
use super::seaweedfs::SeaweedFs;

/// A kind of server that the test kit can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Correct, fast, and with the status codes of AWS: the server for everyday tests.
    Minio,
    /// Correct, slower, and answers 412 to a replacement of a missing object.
    SeaweedFs,
    /// Not safe: `rclone serve s3` accepts every condition and ignores it.
    Rclone,
    /// Correct, but unusual: it expects ETags without their quotes. It is installed from the system's packages, and its
    /// tests run only with `TENURE_SERVERS=ceph ./test`.
    CephRgw,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Minio, Self::SeaweedFs, Self::Rclone, Self::CephRgw];

    /// Name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Minio => "minio",
            Self::SeaweedFs => "weed",
            Self::Rclone => "rclone",
            Self::CephRgw => "radosgw",
        }
    }

    /// The version for which the tests are written.
    pub fn version(self) -> &'static str {
        if self == Self::CephRgw {
            return "of the system";
        }
        let mut lines = VERSIONS.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == self.program()).expect("each kind has a version").1
    }

    /// The path of its program once it is installed.
    pub(crate) fn installed(self) -> PathBuf {
        if self == Self::CephRgw {
            return PathBuf::from("/usr/bin").join(self.program());
        }
        let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
        let directory = format!("tenure-testkit/{}-{}", self.program(), self.version());
        cache.unwrap_or_else(home).join(directory).join(self.program())
    }

    pub(crate) fn recipe(self) -> &'static dyn Recipe {
        match self {
            Self::Minio => &Minio,
            Self::SeaweedFs => &SeaweedFs,
            Self::Rclone => &Rclone,
            Self::CephRgw => &CephRgw,
        }
    }
}

/// The installer reads this file, too.
const VERSIONS: &str = include_str!("../../servers/versions");
