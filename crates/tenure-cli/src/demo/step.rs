use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tenure::Token;

/// The name of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WorkerName {
    /// The first holder, which is stopped.
    A,
    /// The contender that takes over.
    B,
}

/// The task of a worker: the first line on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// Process id of the demo. The worker ends with it.
    pub(super) demo: i32,
    /// Directory of the store.
    pub(super) leases: PathBuf,
    pub(super) ledger: PathBuf,
    pub(super) fenced: bool,
    pub(super) ttl_ms: u64,
    /// The row before which the worker renews, because it may be stopped there.
    pub(super) renew_before: Option<u32>,
}

/// One step of a worker, as it reports it: a line on its standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// It waits for the lease.
    Waiting,
    /// It holds the lease.
    Granted { token: Token },
    /// It has sealed the ledger with its token.
    Sealed,
    /// It has read the ledger, and continues with this row; `None` if all rows are there.
    Read { next: Option<u32> },
    /// It has checked its lease, and is about to write this row. It waits for the line `go` before it writes.
    Checked { row: u32 },
    /// It has written this row.
    Written { row: u32, cents: u64 },
    /// The ledger refused the row, because this token has been there.
    Refused { row: u32, highest: Token, message: String },
    /// The lease is lost, so it stops.
    Lost { message: String },
    /// Every row of the batch is in the ledger.
    Finished,
    /// It has released the lease.
    Released,
    /// It cannot continue.
    Failed { exit: u8, message: String },
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
        })
    }
}
