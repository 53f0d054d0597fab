//! The tables of the fence.
//!
//! They are ordinary tables, so that any version of SQLite can open the database.

use rusqlite::Connection;

/// Creates the tables, unless they are there.
///
/// `tenure_fence` has the mark of each resource.
///
/// `tenure_fence_admission` has a row for a guarded resource while a transaction is admitted to it. **No commit succeeds while
/// the row is there**: it refers to a row that cannot exist, and SQLite checks a deferred reference when the transaction
/// commits. So the row can be seen inside of the transaction alone. A trigger finds it there.
pub(crate) const INSTALL: &str = "
    CREATE TABLE IF NOT EXISTS main.tenure_fence (
      resource TEXT NOT NULL PRIMARY KEY CHECK (typeof(resource) = 'text' AND resource <> ''),
      lease TEXT NOT NULL CHECK (typeof(lease) = 'text'),
      token INTEGER NOT NULL CHECK (typeof(token) = 'integer' AND token BETWEEN 1 AND 9007199254740991)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS main.tenure_fence_admission (
      resource TEXT NOT NULL PRIMARY KEY CHECK (typeof(resource) = 'text' AND resource <> ''),
      never_committed TEXT NOT NULL DEFAULT '' CHECK (never_committed = '')
        REFERENCES tenure_fence_admission (resource) DEFERRABLE INITIALLY DEFERRED
    ) WITHOUT ROWID;
";

/// The columns of both tables, as SQLite lists them.
const COLUMNS: &str = "tenure_fence.lease, tenure_fence.resource, tenure_fence.token, \
    tenure_fence_admission.never_committed, tenure_fence_admission.resource";

/// True if the tables are those of this version.
pub(crate) fn is_installed(connection: &Connection) -> rusqlite::Result<bool> {
    let columns: Option<String> = connection.query_row(
        "SELECT group_concat(place, ', ') FROM (
           SELECT m.name || '.' || c.name AS place FROM main.sqlite_master AS m, pragma_table_info(m.name, 'main') AS c
           WHERE m.type = 'table' AND m.name IN ('tenure_fence', 'tenure_fence_admission') ORDER BY place)",
        (),
        |row| row.get(0),
    )?;
    let deferred: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE name = 'tenure_fence_admission'
           AND sql LIKE '%DEFERRABLE INITIALLY DEFERRED%')",
        (),
        |row| row.get(0),
    )?;
    Ok(deferred && columns.as_deref() == Some(COLUMNS))
}

/// The mark of a resource.
pub(crate) const READ: &str = "SELECT lease, token FROM main.tenure_fence WHERE resource = ?1";

/// Raises the mark. The condition repeats the check: a row that does not fulfil it is not changed.
pub(crate) const RAISE: &str = "
    INSERT INTO main.tenure_fence (resource, lease, token) VALUES (?1, ?2, ?3)
    ON CONFLICT (resource) DO UPDATE SET token = excluded.token
    WHERE lease = excluded.lease AND token < excluded.token";

/// Opens the guarded tables of a resource to this transaction.
pub(crate) const OPEN: &str = "INSERT INTO main.tenure_fence_admission (resource) VALUES (?1)";

/// Closes them.
pub(crate) const CLOSE: &str = "DELETE FROM main.tenure_fence_admission WHERE resource = ?1";
