//! Why a server does not run.

use std::path::PathBuf;

use super::Kind;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its program is not on this machine: the test can only be skipped.
    #[error("{} {} is not installed at {path:?}: run crates/tenure-testkit/servers/install", kind.program(), kind.version())]
    Missing {
        /// Which server.
        kind: Kind,
        /// Where its program would be.
        path: PathBuf,
    },
    /// It is there and does not serve: the test has failed.
    #[error("{} {} does not serve: {why}\n{output}", kind.program(), kind.version())]
    Failed {
        /// Which server.
        kind: Kind,
        /// What was seen.
        why: String,
        /// The end of what it said.
        output: String,
    },
}
