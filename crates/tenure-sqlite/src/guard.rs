//! Triggers that refuse every change of a table outside of an admitted transaction.

use rusqlite::{Connection, OptionalExtension};

/// The statements that create the triggers of a table, one for each kind of change. The error is a sentence.
pub(crate) fn triggers(
    connection: &Connection,
    resource: &str,
    table: &str,
) -> rusqlite::Result<Result<String, String>> {
    let kind: Option<(String, String)> = connection
        .query_row(
            "SELECT type, coalesce(sql, '') FROM main.sqlite_master WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')",
            [table],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    match kind {
        None => return Ok(Err(format!("the database has no table {table:?}"))),
        Some((kind, sql))
            if kind != "table" || sql.trim_start().to_ascii_uppercase().starts_with("CREATE VIRTUAL") =>
        {
            return Ok(Err(format!("{table:?} is a view or a virtual table: guard the tables behind it")));
        }
        Some(_) => {}
    }
    if table.to_ascii_lowercase().starts_with("tenure_fence")
        || table.to_ascii_lowercase().starts_with("sqlite_")
    {
        return Ok(Err(format!("{table:?} is a table of the fence or of SQLite itself")));
    }
    let statements = KINDS.map(|kind| {
        // A trigger of the main database sees only tables of the main database.
        format!(
            "CREATE TRIGGER main.{name} BEFORE {kind} ON {table}
             WHEN NOT EXISTS (SELECT 1 FROM tenure_fence_admission WHERE resource = {value})
             BEGIN SELECT RAISE(ABORT, {message}); END;",
            name = quoted(&name(table, kind), '"'),
            table = quoted(table, '"'),
            value = quoted(resource, '\''),
            message = quoted(&message(resource, table), '\''),
        )
    });
    Ok(Ok(statements.concat()))
}

/// The statements that remove them.
pub(crate) fn removal(table: &str) -> String {
    KINDS.map(|kind| format!("DROP TRIGGER IF EXISTS main.{};", quoted(&name(table, kind), '"'))).concat()
}

fn name(table: &str, kind: &str) -> String {
    format!("tenure_fence_{}_{}", kind.to_ascii_lowercase(), table.to_ascii_lowercase())
}

/// The error that every program gets.
fn message(resource: &str, table: &str) -> String {
    format!(
        "table {table} is fenced: the transaction was not admitted to the resource {resource} with a token"
    )
}

/// A name or a text, as SQL.
fn quoted(text: &str, quote: char) -> String {
    let doubled = text.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

const KINDS: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];
