//! Meaning of the server's errors.

use tenure_store::Reason;
use tokio_postgres::error::{DbError, Severity};

/// Meaning of an error that answers a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Certainly no effect.
    Refused(Reason),
    /// Certainly no effect: a lock was not free in time.
    Locked,
    /// Certainly no effect: the transaction was in the way of another one. The same statement may succeed at once.
    Again,
    /// Certainly no effect: a table does not exist.
    NoTable,
    /// It may have happened.
    Unknown,
}

/// Meaning of an error that the server sent as an answer to a statement.
///
/// PostgreSQL rolls a statement back before it answers `ERROR`. But a pooler or a proxy uses the same form for errors of
/// its own, after which the statement may have happened. So only the codes that PostgreSQL alone uses are certain, and
/// every other code is not. `FATAL` ends the connection: the server may have committed before.
pub(crate) fn meaning(error: &DbError) -> Meaning {
    match error.parsed_severity() {
        Some(Severity::Error) => of_code(error.code().code()),
        _ => Meaning::Unknown,
    }
}

/// Meaning of the code of an error with the severity `ERROR`.
pub(crate) fn of_code(code: &str) -> Meaning {
    match code {
        // Serialization failure, and deadlock.
        "40001" | "40P01" => Meaning::Again,
        // A lock was not free within lock_timeout.
        "55P03" => Meaning::Locked,
        // No table, no schema.
        "42P01" | "3F000" => Meaning::NoTable,
        // Insufficient privilege.
        "42501" => Meaning::Refused(Reason::Denied),
        // Cancelled, for example by statement_timeout.
        "57014" => Meaning::Refused(Reason::Unreachable),
        // Disk full, out of memory, too many connections, a configured limit.
        "53100" | "53200" | "53300" | "53400" => Meaning::Refused(Reason::Unreachable),
        // A limit of the program, such as the queue of notifications; too complex for the stack.
        "54000" | "54001" => Meaning::Refused(Reason::Unreachable),
        // No such prepared statement: a pooler gave the statement and its parameters to two connections.
        "26000" => Meaning::Refused(Reason::Unsupported),
        // A transaction that may only read.
        "25006" => Meaning::Refused(Reason::Unsupported),
        // A character that the encoding of the database does not have.
        "22P05" | "22021" => Meaning::Refused(Reason::Invalid),
        // No such column, type or function; no unique index; not a table; an operator for another type.
        // Text that is no value of a type; a deferrable key.
        "42703" | "42704" | "42883" | "42P10" | "42804" | "42809" | "42846" | "0A000" | "22P02" | "55000" => {
            Meaning::Refused(Reason::Unsupported)
        }
        // A constraint that Tenure's tables do not have.
        "23000" | "23001" | "23502" | "23503" | "23514" | "23P01" | "44000" => {
            Meaning::Refused(Reason::Unsupported)
        }
        _ => Meaning::Unknown,
    }
}

/// True if a schema or a table could not be created because another session created it at the same time. `IF NOT EXISTS`
/// does not prevent that. The next attempt finds it.
pub(crate) fn was_created_by_another(error: &tokio_postgres::Error) -> bool {
    // Unique violation in a catalog, duplicate schema, duplicate table.
    error.code().is_some_and(|code| matches!(code.code(), "23505" | "42P06" | "42P07"))
}

/// Reason of an error that the server sent before the connection was ready, so that no statement was sent. `None` asks
/// for fewer connections.
pub(crate) fn of_connection(code: &str, message: &str) -> Option<Reason> {
    match code {
        "53300" => None,
        // No database.
        "3D000" => Some(Reason::Missing),
        // Wrong password, unknown role, no entry in pg_hba.conf.
        code if code.starts_with("28") => Some(Reason::Denied),
        // No right to connect to the database.
        "42501" => Some(Reason::Denied),
        // A parameter of the connection that the server does not know.
        "42704" | "22023" => Some(Reason::Invalid),
        // PgBouncer has this one code for all its errors. Most of them pass, for example when its server is back.
        "08P01" if message.contains(UNKNOWN_PARAMETER) => Some(Reason::Invalid),
        "08P01" if pooler_finds_no_database(message) => Some(Reason::Missing),
        "08P01" if message.contains("authentication failed") || message.contains("no such user") => {
            Some(Reason::Denied)
        }
        _ => Some(Reason::Unreachable),
    }
}

/// True if this message of PgBouncer says that its configuration does not name the database, or that the server behind it
/// has none.
pub(crate) fn pooler_finds_no_database(message: &str) -> bool {
    let of_server =
        message.split_once("database \"").is_some_and(|(_, rest)| rest.contains("\" does not exist"));
    of_server || message.starts_with("no such database")
}

/// A part of what PgBouncer reports for a parameter of the connection that it does not know.
pub(crate) const UNKNOWN_PARAMETER: &str = "unsupported startup parameter";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_means_one_thing() {
        use Meaning::{Again, Locked, NoTable, Refused, Unknown};
        use Reason::{Denied, Invalid, Unreachable, Unsupported};
        let table = [
            ("40001", Again),
            ("40P01", Again),
            ("55P03", Locked),
            ("42P01", NoTable),
            ("3F000", NoTable),
            ("42501", Refused(Denied)),
            ("57014", Refused(Unreachable)),
            ("53100", Refused(Unreachable)),
            ("25006", Refused(Unsupported)),
            ("54000", Refused(Unreachable)),
            ("26000", Refused(Unsupported)),
            ("55000", Refused(Unsupported)),
            ("22P05", Refused(Invalid)),
            ("42703", Refused(Unsupported)),
            ("42P10", Refused(Unsupported)),
            ("23514", Refused(Unsupported)),
            // A pooler uses these for its own errors, too.
            ("08P01", Unknown),
            ("08006", Unknown),
            ("58000", Unknown),
            ("XX000", Unknown),
            ("57P01", Unknown),
            ("P0001", Unknown),
            ("", Unknown),
        ];
        for (code, meaning) in table {
            assert_eq!(of_code(code), meaning, "{code}");
        }
    }

    #[test]
    fn a_refused_connection_has_a_reason() {
        assert_eq!(of_connection("53300", ""), None);
        for (code, message, reason) in [
            ("28P01", "", Reason::Denied),
            ("28000", "", Reason::Denied),
            ("3D000", "", Reason::Missing),
            ("57P03", "", Reason::Unreachable),
            ("58000", "", Reason::Unreachable),
            ("08P01", "unsupported startup parameter: search_path", Reason::Invalid),
            ("08P01", "no such database: nowhere", Reason::Missing),
            ("08P01", "database \"nowhere\" does not exist", Reason::Missing),
            (
                "08P01",
                "server login has been failing, cached error: database \"nowhere\" does not exist (server_login_retry)",
                Reason::Missing,
            ),
            ("08P01", "SASL authentication failed", Reason::Denied),
            (
                "08P01",
                "server login has been failing, try again later (server_login_retry)",
                Reason::Unreachable,
            ),
            ("08P01", "no more connections allowed (max_client_conn)", Reason::Unreachable),
        ] {
            assert_eq!(of_connection(code, message), Some(reason), "{code} {message}");
        }
    }
}
