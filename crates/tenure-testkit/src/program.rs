//! Programs of servers: their names, versions and places.

use std::path::PathBuf;

/// The program of a server.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Its name.
    pub(crate) name: &'static str,
    /// The version for which the tests are written.
    pub(crate) version: String,
    /// Its path once it is installed.
    pub(crate) path: PathBuf,
}

impl Program {
    /// A program that `servers/install` puts into the cache, in the version that `servers/versions` names.
    pub(crate) fn in_cache(name: &'static str) -> Self {
        let version = pinned(name);
        let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
        let directory = format!("tenure-testkit/{name}-{version}");
        let path = cache.unwrap_or_else(home).join(directory).join(name);
        Self { name, version: version.to_owned(), path }
    }

    /// A program that is installed from the packages of the system, in the version that these have.
    pub(crate) fn of_system(name: &'static str, path: impl Into<PathBuf>) -> Self {
        Self { name, version: OF_SYSTEM.to_owned(), path: path.into() }
    }
}

/// The version of a program in the cache.
pub(crate) fn pinned(name: &str) -> &'static str {
    let mut lines = VERSIONS.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(program, _)| *program == name).expect("each program in the cache has a version").1
}

/// In place of a version: that of the system's packages.
pub(crate) const OF_SYSTEM: &str = "of the system";

/// The installer reads this file, too.
const VERSIONS: &str = include_str!("../servers/versions");
