//! The quarantine: after a restart of the server, nothing is granted until no holder from before can still believe.
//!
//! The rules are those of [`Quarantine`]. The marks of all participants are in the restart record, a hash on the server.
//! Its field `cleared` is part of the condition of every write that waits. So a deletion of all data, after which the field
//! is missing, also begins a quarantine.

use redis::{Value, cmd};
use tenure_store::{Admission, Expect, Key, Purpose, StoreError, Write};

use crate::connection::Connection;
use crate::names::Names;
use crate::scripts::Operation;
use crate::{boot_time, classify};

/// Decision about a write on a connection.
pub(crate) enum WriteDecision {
    /// Send it.
    Send,
    /// Send it, on the condition that the run is cleared.
    SendIfCleared,
    /// Its condition names a version of another run: a conflict, and nothing is sent.
    Conflict,
}

/// Decides about a write before it is sent. Writes the mark on the server if this connection has waited long enough.
pub(crate) async fn decide(
    connection: &Connection,
    names: &Names,
    key: &Key,
    write: &Write,
) -> Result<WriteDecision, StoreError> {
    let now = boot_time::now();
    let admitted = for_admission(write);
    let waits = matches!(connection.quarantine().admit(key, &admitted, now), Admission::Wait(_));
    if waits && connection.may_read_marks(now) {
        read_marks(connection, names).await;
    }
    let has_passed = {
        let quarantine = connection.quarantine();
        match quarantine.admit(key, &admitted, now) {
            Admission::Conflict => return Ok(WriteDecision::Conflict),
            Admission::Wait(remaining) => return Err(quarantine.withheld(remaining)),
            Admission::Send if !needs_cleared_run(key, write.purpose) => return Ok(WriteDecision::Send),
            Admission::Send => quarantine.has_passed(now),
        }
    };
    let Some(restart_id) = &connection.restart_id else { return Ok(WriteDecision::Send) };
    if has_passed {
        clear(connection, names, restart_id).await?;
    }
    Ok(WriteDecision::SendIfCleared)
}

/// Reads the marks again: another participant may have cleared the run. Without an answer, the wait continues.
async fn read_marks(connection: &Connection, names: &Names) {
    let command = cmd("HMGET").arg(names.restart()).arg("run").arg("cleared").clone();
    let Ok(Value::Array(marks)) = connection.send(&command).await else { return };
    let is_run =
        |mark: &Value| matches!(mark, Value::BulkString(run) if run == connection.server.run.as_bytes());
    if marks.len() == 2 && marks.iter().all(is_run) {
        connection.clear();
    }
}

/// Writes the mark that the quarantine of this run is over.
async fn clear(connection: &Connection, names: &Names, restart_id: &str) -> Result<(), StoreError> {
    let arguments = [connection.server.run.as_bytes(), restart_id.as_bytes()];
    match connection.run(Operation::Clear, &[&names.restart()], &arguments).await {
        Ok(Value::Int(1)) => {
            connection.clear();
            Ok(())
        }
        Ok(Value::ServerError(error)) => Err(classify::answered(&error)),
        Ok(_) => Err(forgotten(connection)),
        // The write itself was not sent.
        Err(error) => Err(StoreError::refused(tenure_store::Reason::Unreachable, error)),
    }
}

/// The error of a write that was not applied, because its run is not cleared any more: the data of the server was
/// deleted or replaced. A new connection sees the run for the first time.
pub(crate) fn forgotten(connection: &Connection) -> StoreError {
    connection.suspect();
    StoreError::withheld(
        std::time::Duration::ZERO,
        "the data of the server was deleted or replaced, so it may have forgotten leases: nothing is granted for a while",
    )
}

/// The store sends a replace of the impossible version in every run: the server itself must refuse it.
fn for_admission(write: &Write) -> Write {
    let mut write = write.clone();
    if matches!(&write.expect, Expect::Version(version) if version.as_str() == IMPOSSIBLE_VERSION) {
        write.expect = Expect::Absent;
    }
    write
}

/// True if the write waits for the end of a quarantine. Tenure's own keys do not, except those of slots: no lease depends
/// on them.
fn needs_cleared_run(key: &Key, purpose: Purpose) -> bool {
    let keeps_what_is_held = matches!(purpose, Purpose::Renewal | Purpose::Release);
    !keeps_what_is_held && (!key.is_reserved() || key.is_of_slots())
}

/// No stamp is equal to it.
pub(crate) const IMPOSSIBLE_VERSION: &str = "never:0";
