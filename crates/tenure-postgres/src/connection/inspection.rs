use tenure_store::{Reason, StoreError};
use tokio_postgres::Row;

use crate::open::Tables;

/// The settings of a server that leases depend on, and the shapes of the tables, when a connection was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inspection {
    /// The number of the server process that answered.
    pub(super) process: i32,
    is_standby: bool,
    is_read_only: bool,
    has_fsync: bool,
    isolation: String,
    record: Option<String>,
    token: Option<String>,
}

impl Inspection {
    pub(super) fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            process: row.try_get(0)?,
            is_standby: row.try_get(1)?,
            is_read_only: row.try_get::<_, String>(2)? == "on",
            has_fsync: row.try_get::<_, Option<String>>(3)?.as_deref() != Some("off"),
            isolation: row.try_get(4)?,
            record: row.try_get(5)?,
            token: row.try_get(6)?,
        })
    }

    /// True if statements run as they were written for: each sees the latest row.
    pub(super) fn is_read_committed(&self) -> bool {
        self.isolation == "read committed"
    }

    /// True if both tables exist.
    pub(super) fn has_tables(&self) -> bool {
        self.record.is_some() && self.token.is_some()
    }

    /// Refuses a server that cannot keep what the store declares.
    pub(super) fn check(&self, tables: &Tables, fsync_off: bool) -> Result<(), StoreError> {
        let refused = |sentence: String| Err(StoreError::refused(Reason::Unsupported, sentence));
        if self.is_standby {
            return refused(STANDBY.to_owned());
        }
        if self.is_read_only {
            return refused(
                "transactions of this role are read-only (default_transaction_read_only), and leases need writes: turn \
                 the setting off for the role and the database"
                    .to_owned(),
            );
        }
        if !self.has_fsync && !fsync_off {
            return refused(
                "the server has fsync = off, so a crash of its machine may lose acknowledged writes, and then two may \
                 hold one lease: turn fsync on, or accept it with accept=fsync-off in the URL"
                    .to_owned(),
            );
        }
        for (shape, table, columns) in
            [(&self.record, tables.record(), RECORD), (&self.token, tables.token(), TOKEN)]
        {
            if let Some(flaw) = shape.as_ref().and_then(|shape| flaw(shape, columns)) {
                return refused(format!("the table {table} {flaw}"));
            }
        }
        Ok(())
    }
}

/// Message for a server that only follows another one.
pub(crate) const STANDBY: &str = "the server is a standby, which only follows another server and refuses writes: name the primary in the URL";

/// The difference between a table and the expected one, and the next step; `None` if it can be used. More columns, and
/// triggers after a row, are allowed.
fn flaw(shape: &str, columns: &[&str]) -> Option<String> {
    let (kind, found) = shape.split_once(' ').unwrap_or((shape, ""));
    let (kind, flaws) = kind.split_at_checked(2).unwrap_or((kind, ""));
    let found: Vec<_> = found.split(' ').collect();
    let missing: Vec<_> = columns.iter().copied().filter(|column| !found.contains(column)).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ").replace(':', " ");
        return Some(format!(
            "is not one of Tenure's tables, because it lacks the columns {missing}: {OTHER_TABLE}"
        ));
    }
    match kind {
        "rp" => {}
        "ru" => {
            return Some(
                "is unlogged, so a crash of the server empties it: SET LOGGED changes that".to_owned(),
            );
        }
        _ => return Some(format!("is not an ordinary table: {OTHER_TABLE}")),
    }
    let flaw = match flaws.chars().next()? {
        's' => "has row-level security, which hides rows from Tenure: turn it off for this table",
        't' => {
            "has a rule, or a trigger before each row, which can change or drop the writes of Tenure: remove it, or make \
             it a trigger after each row"
        }
        _ => "has no unique index on key, so that one lease could have two rows: make key its primary key",
    };
    Some(flaw.to_owned())
}

/// Next step for a table that is not Tenure's.
const OTHER_TABLE: &str = "rename it, or name another table in the URL with table=…";

const RECORD: &[&str] =
    &["key:text:C", "version:text", "value:bytea", "written_at:timestamptz", "server:text"];

const TOKEN: &[&str] = &["key:text:C", "token:int8"];

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: &str = "key:text:C server:text value:bytea version:text written_at:timestamptz";

    #[test]
    fn a_table_of_another_shape_is_named_with_its_flaw() {
        assert_eq!(flaw(&format!("rp {SHAPE}"), RECORD), None);
        assert_eq!(flaw(&format!("rp {SHAPE} more:jsonb"), RECORD), None);
        for (shape, part) in [
            (format!("ru {SHAPE}"), "is unlogged"),
            (format!("rps {SHAPE}"), "row-level security"),
            (format!("rpst {SHAPE}"), "row-level security"),
            (format!("rpt {SHAPE}"), "trigger before each row"),
            (format!("rpk {SHAPE}"), "no unique index on key"),
            (format!("vpk {SHAPE}"), "not an ordinary table"),
            ("rp ".to_owned(), "lacks the columns key text C, version text"),
            (format!("rp {}", SHAPE.replace("text:C", "text")), "lacks the columns key text C"),
        ] {
            let flaw = flaw(&shape, RECORD).unwrap();
            assert!(flaw.contains(part), "{shape}: {flaw}");
        }
    }
}
