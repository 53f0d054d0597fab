//! The meaning of errors of SQLite, before the transaction commits.

use rusqlite::{Error, ErrorCode, ffi};
use tenure_fence::FenceError;
use tenure_store::Reason;

/// The error of a statement inside of a transaction. Nothing is committed, so nothing was written.
pub(crate) fn of_statement(resource: &str, error: Error) -> FenceError {
    let (reason, advice) = match &error {
        Error::SqliteFailure(failure, message) => advice(failure, message.as_deref().unwrap_or_default()),
        _ => (Reason::Invalid, ""),
    };
    FenceError::refused(resource, reason, format!("{error}{advice}"))
}

fn advice(failure: &ffi::Error, message: &str) -> (Reason, &'static str) {
    match failure.code {
        ErrorCode::DatabaseBusy if failure.extended_code == ffi::SQLITE_BUSY_SNAPSHOT => (
            Reason::Unreachable,
            ". The transaction has read before another one wrote: roll it back, and begin again with BEGIN IMMEDIATE",
        ),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (
            Reason::Unreachable,
            ". Another connection writes: roll back, and try again. BEGIN IMMEDIATE waits for it, up to the busy timeout",
        ),
        ErrorCode::Unknown if message.starts_with("no such table: main.tenure_fence") => {
            (Reason::Unsupported, ". Call SqliteFence::install once")
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
            (Reason::Denied, "")
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => (Reason::Damaged, ""),
        ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::CannotOpen
        | ErrorCode::OutOfMemory
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::OperationInterrupted => (Reason::Unreachable, ""),
        _ => (Reason::Invalid, ""),
    }
}

/// The error of a commit. Afterwards the transaction is rolled back.
///
/// SQLite refuses a commit before it changes the database if another connection reads, or if a deferred reference is
/// violated. Any other error may come from a disk that has the commit.
pub(crate) fn of_commit(resource: &str, error: Error) -> FenceError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::ConstraintViolation) => {
            of_statement(resource, error)
        }
        _ => FenceError::unknown(resource, error),
    }
}
