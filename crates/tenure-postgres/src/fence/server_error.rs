use tenure_store::Reason;
use tokio_postgres::error::Severity;

use crate::classify::{self, Meaning};

/// An error that the server sent, whichever client received it.
#[derive(Debug)]
pub(super) struct ServerError<'e> {
    /// False for `FATAL` and `PANIC`, which end the connection.
    pub(super) is_error: bool,
    pub(super) code: &'e str,
    pub(super) message: &'e str,
    pub(super) detail: Option<&'e str>,
    pub(super) hint: Option<&'e str>,
}

impl<'e> ServerError<'e> {
    /// The server's error; `None` if the connection failed.
    pub(super) fn of_tokio(error: &'e tokio_postgres::Error) -> Option<Self> {
        let answer = error.as_db_error()?;
        Some(Self {
            is_error: answer.parsed_severity() == Some(Severity::Error),
            code: answer.code().code(),
            message: answer.message(),
            detail: answer.detail(),
            hint: answer.hint(),
        })
    }

    /// The server's error; `None` if the connection failed.
    #[cfg(feature = "sqlx")]
    pub(super) fn of_sqlx(error: &'e sqlx::Error) -> Option<Self> {
        use sqlx::postgres::{PgDatabaseError, PgSeverity};
        let answer = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
        Some(Self {
            is_error: matches!(answer.severity(), PgSeverity::Error),
            code: answer.code(),
            message: answer.message(),
            detail: answer.detail(),
            hint: answer.hint(),
        })
    }

    /// True if a statement in a transaction of its own may have been applied although it has this answer. See
    /// [`classify::meaning`].
    pub(super) fn may_be_applied(&self) -> bool {
        let own = self.code.starts_with("TF");
        !(self.is_error && (own || classify::of_code(self.code) != Meaning::Unknown))
    }

    /// True if another transaction was in the way, and the same statement may succeed at once.
    pub(super) fn is_passing(&self) -> bool {
        self.is_error && classify::of_code(self.code) == Meaning::Again
    }

    /// The action that the caller can take.
    pub(super) fn reason(&self) -> Reason {
        match (self.code, classify::of_code(self.code)) {
            ("TF005" | "TF006", _) => Reason::Invalid,
            // A statement before this one failed in the same transaction.
            ("25P02", _) => Reason::Invalid,
            (_, Meaning::Refused(reason)) => reason,
            (_, Meaning::NoTable) => Reason::Unsupported,
            // No such function is among the refusals above; other errors of names and shapes.
            (code, _) if code.starts_with("42") || code.starts_with("23") => Reason::Unsupported,
            _ => Reason::Unreachable,
        }
    }

    /// The server's own words.
    pub(super) fn words(&self) -> String {
        let hint = self.hint.map(|hint| format!(". {}", hint.trim_end_matches('.'))).unwrap_or_default();
        format!("{} {}{hint}", self.code, self.message.trim_end_matches('.'))
    }
}
