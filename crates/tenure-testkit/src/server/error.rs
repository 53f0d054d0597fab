//! Reasons for which a server does not run.

use std::path::PathBuf;

use super::Kind;

/// Reason for which a server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program is not installed on this machine: the test must be skipped.
    #[error("{} {} is not installed at {path:?}: run crates/tenure-testkit/servers/install", kind.program(), kind.version())]
    Missing {
        /// The kind of server.
        kind: Kind,
        /// The expected path of its program.
        path: PathBuf,
    },
    /// The program is installed but does not serve: the test has failed.
    #[error("{} {} does not serve: {why}\n{output}", kind.program(), kind.version())]
    Failed {
        /// The kind of server.
        kind: Kind,
        /// The observed failure.
        why: String,
        /// The end of its output.
        output: String,
    },
}
