//! The texts of all statements, for one pair of tables.
//!
//! Each is complete in itself: it is sent without a name, in a transaction of its own, and neither reads nor leaves any
//! state of the session. So it works on every connection of a pooler.
//!
//! Functions and tables of PostgreSQL are named with their schema, because the search path of a role may have others of the
//! same name. `clock_timestamp` is not: the tests put a clock of their own before it.

use crate::open::Tables;

/// The statements of one store. Each is in the file of its name, with the meaning of its parameters.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) read: String,
    pub(crate) read_replicated: String,
    pub(crate) create: String,
    pub(crate) create_granted: String,
    pub(crate) replace: String,
    pub(crate) renew: String,
    pub(crate) grant: String,
    pub(crate) page: String,
    pub(crate) sweep: String,
    pub(crate) clock: String,
    pub(crate) inspect: String,
    pub(crate) followers: String,
    /// Listens to the notifications of the writes.
    pub(crate) listen: String,
}

impl Statements {
    pub(crate) fn of(tables: &Tables) -> Self {
        let statement = |file: &str| fill(&compact(file), tables);
        Self {
            read: statement(include_str!("read.sql")),
            read_replicated: statement(include_str!("read_replicated.sql")),
            create: statement(include_str!("create.sql")),
            create_granted: statement(include_str!("create_granted.sql")),
            replace: statement(include_str!("replace.sql")),
            renew: statement(include_str!("renew.sql")),
            grant: statement(include_str!("grant.sql")),
            page: statement(include_str!("page.sql")),
            sweep: statement(include_str!("sweep.sql")),
            clock: statement(include_str!("clock.sql")),
            inspect: statement(include_str!("inspect.sql")),
            followers: statement(include_str!("followers.sql")),
            listen: format!("LISTEN {}", identifier(&tables.channel())),
        }
    }
}

/// Statements that create what is missing: the schema, and the tables in it.
pub(crate) fn creation(tables: &Tables, schema_exists: bool) -> String {
    let mut statements = String::new();
    if !schema_exists {
        statements = format!("CREATE SCHEMA IF NOT EXISTS {};\n", identifier(tables.schema_name()));
    }
    statements + &fill(include_str!("create_tables.sql"), tables)
}

/// Statements that give a role the least rights.
pub(crate) fn rights(tables: &Tables, role: &str) -> String {
    let (schema, record, token) = (identifier(tables.schema_name()), tables.record(), tables.token());
    let role = identifier(role);
    format!(
        "GRANT USAGE ON SCHEMA {schema} TO {role};\n\
         GRANT SELECT, INSERT, UPDATE ON {record}, {token} TO {role};\n"
    )
}

/// Statements that make concurrent creations take turns, until the end of the transaction.
pub(crate) fn creation_lock() -> String {
    let limit = lock_limit(CREATION_TIMEOUT_MS);
    format!("SELECT {limit};\nSELECT pg_catalog.pg_advisory_xact_lock({CREATION_LOCK});\n")
}

/// The name of a schema, a table or a channel in a statement.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Text in a statement. The server reads backslashes literally, unless `standard_conforming_strings` is off: names with
/// backslashes are refused.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Limits the waits of this transaction for locks.
fn lock_limit(millis: u32) -> String {
    format!("pg_catalog.set_config('lock_timeout', '{millis}', true)")
}

/// A statement in one line, without comments: the server receives it with every call.
fn compact(file: &str) -> String {
    let lines = file.lines().map(str::trim).filter(|line| !line.starts_with("--"));
    lines.collect::<Vec<_>>().join(" ")
}

/// Replaces each name in braces by a part of the statements of a store.
fn fill(text: &str, tables: &Tables) -> String {
    fill_parts(text, |name| match name {
        "record" => tables.record(),
        "token" => tables.token(),
        "now" => NOW.to_owned(),
        "server" => SERVER.to_owned(),
        "version" => format!("{SERVER} || ':' || r.version"),
        "durable" => DURABLE.to_owned(),
        "notify" => format!("pg_catalog.pg_notify({}, $1) IS NULL", literal(&tables.channel())),
        "lock_limit" => lock_limit(LOCK_TIMEOUT_MS),
        "page" => PAGE.to_string(),
        other => unreachable!("no part is called {other}"),
    })
}

/// Replaces each name in braces. A replaced part may contain braces of its own: a table may be called `{token}`.
pub(crate) fn fill_parts(text: &str, part_of: impl Fn(&str) -> String) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').expect("a brace is closed");
        filled += &part_of(name);
        filled += rest;
    }
    filled
}

/// The server's clock now, in microseconds. `now()` would be the start of the transaction: too early after a wait.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The start of the server process. Another process, such as a promoted standby, may have another clock.
const SERVER: &str =
    "(extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint::pg_catalog.text";

/// Makes this transaction wait until it is on the disk, and with the synchronous standbys if there are any. It raises the
/// setting of the role or the database, and never lowers it. If an administrator cancels the wait, only a warning says so:
/// the second setting must not hide it.
const DURABLE: &str = "CASE WHEN pg_catalog.current_setting('synchronous_commit') IN ('off', 'local') \
     THEN pg_catalog.set_config('synchronous_commit', 'on', true) END, \
     CASE WHEN pg_catalog.current_setting('client_min_messages') NOT IN \
     ('debug5', 'debug4', 'debug3', 'debug2', 'debug1', 'log', 'notice', 'warning') \
     THEN pg_catalog.set_config('client_min_messages', 'warning', true) END";

/// Longest wait of a write for a lock, except a renewal. A grant waits for the row of its token. Every write that notifies
/// waits for others that do, while they are being committed.
const LOCK_TIMEOUT_MS: u32 = 1_000;

/// Longest wait of a creation for its turn, and for each lock. Many clients may create the tables at once.
const CREATION_TIMEOUT_MS: u32 = 5_000;

/// Number of keys in one answer.
pub(crate) const PAGE: usize = 1_000;

/// An arbitrary number that only Tenure uses.
const CREATION_LOCK: i64 = 0x7465_6e75_7265;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_one_line_with_the_names_of_the_tables() {
        let statements = Statements::of(&Tables::USUAL);
        assert_eq!(
            statements.renew,
            format!(
                "UPDATE \"tenure\".\"record\" AS r SET version = $2, value = $3, written_at = clock_timestamp(), \
                 server = {SERVER} WHERE r.key = $1 AND {SERVER} || ':' || r.version = $4 \
                 RETURNING {NOW}, {SERVER}, {DURABLE}"
            )
        );
        for statement in [&statements.read, &statements.grant, &statements.inspect] {
            assert!(!statement.contains(['\n', '{']) && !statement.contains("--"), "{statement}");
        }
    }

    #[test]
    fn a_table_may_be_named_as_a_part_of_a_statement() {
        let tables = Tables { schema: Some("{now}".to_owned()), table: Some("-- {token}".to_owned()) };
        let statements = Statements::of(&tables);
        assert!(statements.clock.starts_with("SELECT (extract"), "{}", statements.clock);
        assert!(
            statements.renew.starts_with("UPDATE \"{now}\".\"-- {token}\" AS r SET"),
            "{}",
            statements.renew
        );
    }
}
