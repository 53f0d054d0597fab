use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenure::Token;
use tenure::fence::{Fence, FenceError, FencedLog, FencingToken, Seal};

use super::step::WorkerName;

/// The ledger: a file with one row for each payment, appended by the workers.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    /// `None`: rows are appended by a plain write, and nothing checks the token.
    fence: Option<FencedLog>,
}

/// One row of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LedgerRow {
    pub(super) row: u32,
    pub(super) cents: u64,
    pub(super) by: WorkerName,
    pub(super) token: Token,
}

impl Ledger {
    pub(super) fn fenced(path: &Path) -> Self {
        Self { path: path.to_owned(), fence: Some(FencedLog::new(path)) }
    }

    pub(super) fn unfenced(path: &Path) -> Self {
        Self { path: path.to_owned(), fence: None }
    }

    /// All rows, in the order in which they were accepted.
    pub(super) fn rows(path: &Path) -> io::Result<Vec<LedgerRow>> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// Appends without any check.
    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(line)?;
        file.sync_data()
    }
}

impl Fence for Ledger {
    type Write<'w> = &'w LedgerRow;
    type Written = ();

    async fn write(&self, token: &FencingToken, row: &LedgerRow) -> Result<(), FenceError> {
        let mut line = serde_json::to_vec(row).expect("a row is text and numbers");
        line.push(b'\n');
        match &self.fence {
            Some(log) => log.write(token, line.into()).await.map(drop),
            None => self.append(&line).map_err(|error| FenceError::unknown("the ledger", error)),
        }
    }
}

impl Seal for Ledger {
    async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        match &self.fence {
            Some(log) => log.seal(token).await,
            None => Ok(()),
        }
    }
}
