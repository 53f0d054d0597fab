//! Sentences for errors. None contains a password or the value of a record.

use std::error::Error as _;
use std::time::Duration;

use tenure_store::{Reason, StoreError};
use tokio_postgres::error::DbError;

use crate::classify::{self, Meaning};
use crate::connection::ServerNotices;
use crate::open::{Host, OpenError, Tables, Target};

/// True if the server asks for a password, and there was none.
pub(crate) fn asks_for_password(error: &tokio_postgres::Error) -> bool {
    chain(error).contains("password missing")
}

/// Error of a missing password. `problem` is the reason why the password file cannot be used.
pub(crate) fn no_password(host: &Host, target: &Target, problem: Option<OpenError>) -> StoreError {
    let user = target.user();
    let advice = problem.map_or_else(
        || "and none was found: put it into PGPASSWORD or ~/.pgpass".to_owned(),
        |problem| format!("but {problem}"),
    );
    StoreError::refused(
        Reason::Denied,
        format!("the server at {host} asks for the password of the role {user:?}, {advice}"),
    )
}

/// Error of a connection that could not be opened. No statement was sent.
pub(crate) fn not_connected(error: &tokio_postgres::Error, host: &Host, target: &Target) -> StoreError {
    let (user, database) = (target.user(), target.database());
    let Some(answer) = error.as_db_error() else {
        let chain = chain(error);
        let advice = match () {
            () if chain.contains("does not support TLS") => {
                ": the server offers no TLS. Accept that with sslmode=prefer in the URL"
            }
            () if chain.contains("not valid for name") => {
                ": name the server in the URL as its certificate does"
            }
            () if chain.contains("UnknownIssuer") || chain.contains("BadSignature") => {
                ": name the file of the authority with sslrootcert in the URL, or write sslmode=require to encrypt \
                 without checking the server"
            }
            () => "",
        };
        return StoreError::refused(Reason::Unreachable, format!("{host}: {chain}{advice}"));
    };
    let code = answer.code().code();
    let no_database = || format!("there is no database {database:?}: create it, or correct the URL");
    let advice = match code {
        "28P01" => format!("the password of the role {user:?} is wrong: correct PGPASSWORD or ~/.pgpass"),
        "28000" => format!("the role {user:?} may not connect to the database {database:?} from here"),
        "3D000" => no_database(),
        "57P03" => "the server is starting, stopping or recovering".to_owned(),
        "53300" => "the server has no connection left".to_owned(),
        "57014" => CANCELLED.to_owned(),
        "08P01" if classify::pooler_finds_no_database(answer.message()) => no_database(),
        "08P01" if answer.message().contains(classify::UNKNOWN_PARAMETER) => {
            "it refuses a parameter of the connection".to_owned()
        }
        _ => "it refuses the connection".to_owned(),
    };
    let sentence = format!("{host}: {advice} ({})", server_message(answer));
    match classify::of_connection(code, answer.message()) {
        Some(reason) => StoreError::refused(reason, sentence),
        None => StoreError::withheld(FULL_PAUSE, sentence),
    }
}

/// Error of a server that accepted a connection, or not even that, and was then silent. No statement was sent.
pub(crate) fn silent(host: &Host, limit: Duration) -> StoreError {
    StoreError::refused(Reason::Unreachable, format!("{host} did not answer within {} s", limit.as_secs()))
}

/// Error of a connection whose server did not report its settings. No statement of a call was sent.
pub(crate) fn not_inspected(
    error: &tokio_postgres::Error,
    host: &Host,
    notices: &ServerNotices,
    target: &Target,
) -> StoreError {
    match error.as_db_error() {
        Some(_) => not_connected(error, host, target),
        None => StoreError::refused(Reason::Unreachable, format!("{host}: {}", cut(error, notices))),
    }
}

/// Error of a server that answers, but not as PostgreSQL does.
pub(crate) fn not_postgres(host: &Host) -> StoreError {
    StoreError::refused(Reason::Unsupported, format!("{host} does not answer as PostgreSQL does"))
}

/// Error of a role that may not create the missing tables.
pub(crate) fn may_not_create(error: &tokio_postgres::Error, target: &Target, tables: &Tables) -> StoreError {
    let (user, record, token) = (target.user(), tables.record(), tables.token());
    let sentence = format!(
        "the tables {record} and {token} do not exist, and the role {user:?} may not create them: an administrator \
         creates them with the statements that `tenure store init --print` prints ({})",
        chain(error)
    );
    StoreError::refused(Reason::Missing, sentence)
}

/// Error of a statement, by its meaning.
pub(crate) fn of_statement(
    error: &tokio_postgres::Error,
    notices: &ServerNotices,
    target: &Target,
    tables: &Tables,
) -> StoreError {
    let Some(answer) = error.as_db_error() else {
        return StoreError::unknown(format!(
            "the statement was sent and not answered: {}",
            cut(error, notices)
        ));
    };
    let sentence = format!("{} ({})", advice(answer, target, tables), server_message(answer));
    match classify::meaning(answer) {
        Meaning::Refused(reason) => StoreError::refused(reason, sentence),
        Meaning::NoTable => StoreError::refused(Reason::Missing, sentence),
        Meaning::Locked => StoreError::withheld(LOCK_PAUSE, sentence),
        Meaning::Again => StoreError::refused(Reason::Unreachable, sentence),
        Meaning::Unknown => StoreError::unknown(sentence),
    }
}

/// The cause of an error and the next step.
fn advice(answer: &DbError, target: &Target, tables: &Tables) -> String {
    let (user, record, token) = (target.user(), tables.record(), tables.token());
    match answer.code().code() {
        "42501" => format!(
            "the role {user:?} may not use the tables {record} and {token}: `tenure store init --print` prints the \
             statements that grant the rights"
        ),
        "42P01" | "3F000" => format!(
            "the tables {record} and {token} do not exist: an administrator creates them with the statements that \
             `tenure store init --print` prints"
        ),
        "55P03" if answer.where_().is_some_and(|context| context.contains(&tables.token_name())) => {
            "a transaction that checked the token of this lease is still open, and the grant waits for its end".to_owned()
        }
        "55P03" => {
            "a lock was not free in time: another transaction has locked a row or a table, or is sending notifications"
                .to_owned()
        }
        "25006" => "the server or the role only reads, and leases need writes".to_owned(),
        "40001" | "40P01" => "other transactions were in the way too often".to_owned(),
        "57014" => CANCELLED.to_owned(),
        "53100" => "the disk of the server is full".to_owned(),
        "54000" => "a limit of the server is reached. If it is the queue of notifications, a session that listens has had a \
                    transaction open for too long: end it"
            .to_owned(),
        "22P05" | "22021" => {
            "the encoding of the database lacks a character of the key: use a database with UTF8".to_owned()
        }
        code if code.starts_with("42") || code.starts_with("23") => {
            format!("the tables {record} and {token} are not as Tenure creates them")
        }
        code if code.starts_with("53") => "the server is out of a resource".to_owned(),
        _ => "the server failed".to_owned(),
    }
}

/// The server's own words.
fn server_message(answer: &DbError) -> String {
    format!("{} {}", answer.code().code(), answer.message().trim_end_matches('.'))
}

/// Risks of a server, each in a sentence, by the number of servers that follow it, the setting `synchronous_standby_names`
/// and the timeline.
pub(crate) fn risks(followers: i64, synchronous: &str, timeline: Option<u32>) -> Vec<String> {
    let mut risks = Vec::new();
    if followers > 0 && synchronous.is_empty() {
        risks.push(format!(
            "{followers} server{} this one, and no commit waits for a standby (synchronous_standby_names is empty): a \
             failover may lose acknowledged writes, and then two may hold one lease",
            if followers == 1 { " follows" } else { "s follow" }
        ));
    }
    if let Some(timeline) = timeline.filter(|timeline| *timeline > 1) {
        risks.push(format!(
            "the server was promoted or restored before (its timeline is {timeline}): if the server that it replaced \
             still runs, clients of that server hold leases that this one does not know. Stop that server"
        ));
    }
    risks
}

/// The risk of these servers, which all accept writes; `None` if there is only one.
pub(crate) fn two_primaries(hosts: &[String]) -> Option<String> {
    let [most @ .., last] = hosts else { return None };
    if most.is_empty() {
        return None;
    }
    Some(format!(
        "the servers {} and {last} accept writes, each for itself, so two may hold one lease: stop the former primary, or \
         correct the URL",
        most.join(", ")
    ))
}

/// The reason why a connection ended.
fn cut(error: &tokio_postgres::Error, notices: &ServerNotices) -> String {
    match notices.end() {
        Some(end) if error.is_closed() => end,
        _ => chain(error),
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &tokio_postgres::Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return server_message(answer);
    }
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        sentence = format!("{sentence}: {next}");
        cause = next.source();
    }
    sentence
}

/// Cause and next step of a statement that took too long for the role or the database.
const CANCELLED: &str = "the server cancelled the statement: a lease needs a longer statement_timeout";

/// Pause before another connection to a server that has none left.
const FULL_PAUSE: Duration = Duration::from_millis(500);

/// Pause before another attempt to lock the row of a token.
const LOCK_PAUSE: Duration = Duration::from_millis(100);
