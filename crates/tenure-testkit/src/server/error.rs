//! Reasons for which a server does not run.

use std::path::PathBuf;

use crate::program::Program;
use crate::skipped;

/// Reason for which a server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program is not installed on this machine: the test must be skipped.
    #[error("{program} is not installed at {path:?}: run crates/tenure-testkit/servers/install")]
    Missing {
        /// The program and its version.
        program: String,
        /// The expected path of its program.
        path: PathBuf,
    },
    /// This machine cannot provide what the server's setup needs: the test must be skipped.
    #[error("{program} cannot run here as its setup says: {why}")]
    Unsupported {
        /// The program and its version.
        program: String,
        /// The reason.
        why: String,
    },
    /// The program is installed but does not serve: the test has failed.
    #[error("{program} does not serve: {why}\n{output}")]
    Failed {
        /// The program and its version.
        program: String,
        /// The observed failure.
        why: String,
        /// The end of its output.
        output: String,
    },
}

impl StartError {
    pub(crate) fn missing(program: &Program) -> Self {
        Self::Missing { program: named(program), path: program.path.clone() }
    }

    pub(crate) fn unsupported(program: &Program, why: String) -> Self {
        Self::Unsupported { program: named(program), why }
    }

    pub(crate) fn failed(program: &Program, why: String, output: String) -> Self {
        Self::Failed { program: named(program), why, output }
    }

    /// The server; `None`, after a call of [`skipped`], if it is not installed. Panics if it does not serve.
    #[track_caller]
    pub(crate) fn or_skip<T>(started: Result<T, Self>) -> Option<T> {
        match started {
            Ok(server) => Some(server),
            Err(cannot @ (Self::Missing { .. } | Self::Unsupported { .. })) => {
                skipped(&cannot.to_string());
                None
            }
            Err(failed @ Self::Failed { .. }) => panic!("{failed}"),
        }
    }
}

fn named(program: &Program) -> String {
    format!("{} {}", program.name, program.version)
}
