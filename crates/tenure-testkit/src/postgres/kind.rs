//! Versions of PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::program::Program;
use crate::ran::ran;

/// A build of PostgreSQL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PostgresKind {
    /// The newest one that Debian's packages have installed: PostgreSQL 15.
    #[default]
    Debian,
    /// PostgreSQL 18, from npm. That build has no client programs: those of Debian's packages are used, of which
    /// `pg_basebackup` is too old to make a replica.
    Newest,
}

impl PostgresKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Debian, Self::Newest];

    pub(crate) fn program(self) -> Program {
        match self {
            Self::Debian => Program::of_system("postgres", debian().join("postgres")),
            Self::Newest => Program::in_cache("postgres"),
        }
    }

    /// The client that runs SQL. Every kind needs it.
    pub(crate) fn client() -> Program {
        Program::of_system("psql", debian().join("psql"))
    }

    /// The directory with the programs of the server. The user that runs it may be unable to enter the cache, so its
    /// files are linked into this directory, or copied if they are on another file system.
    pub(crate) fn programs(self, home: &Path) -> io::Result<PathBuf> {
        if self == Self::Debian {
            return Ok(debian());
        }
        let (program, copy) = (self.program().path, home.join("programs"));
        let installed = program.parent().expect("a program is in a directory");
        let by = |how: &str| ran(Command::new("cp").arg(how).arg(installed).arg(&copy));
        if by("-al").is_err() {
            let _ = fs::remove_dir_all(&copy);
            by("-a")?;
        }
        Ok(copy.join("bin"))
    }
}

/// The directory with the programs of the newest version that Debian's packages have installed.
pub(crate) fn debian() -> PathBuf {
    let root = Path::new("/usr/lib/postgresql");
    let versions = fs::read_dir(root).into_iter().flatten().flatten();
    let installed = versions.filter(|version| version.path().join("bin/postgres").is_file());
    let newest = installed.filter_map(|version| version.file_name().to_str()?.parse::<u32>().ok()).max();
    root.join(newest.unwrap_or(OLDEST).to_string()).join("bin")
}

/// The oldest version that the tests support.
const OLDEST: u32 = 15;
