use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::super::{Fence, FenceError, FencingToken, Seal};
use super::append::{self, Appended};
use super::blocking::Blocking;
use super::mark::Content;
use super::sidecar::{Kind, Sidecar};

/// A plain file to which is appended, durably, and only under the newest token.
///
/// The bytes are appended as they are given, and every program can read them. The mark of the log, with the greatest
/// admitted token and the length, is beside it: the mark of `ledger.csv` is `.ledger.csv.fence`. Clones are the same
/// handle.
///
/// ```
/// use tenure::fence::{FencedLog, FencingToken};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("tenure-fenced-log-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let ledger = FencedLog::new(directory.join("ledger.csv"));
/// let (old, new): (FencingToken, FencingToken) = ("settlement=7".parse()?, "settlement=8".parse()?);
/// ledger.append_blocking(&old, b"invoice 1, 40.00\n")?;
/// ledger.seal_blocking(&new)?;
///
/// // The holder of token 7 was paused, and comes late.
/// let late = ledger.append_blocking(&old, b"invoice 2, 12.50\n").unwrap_err();
/// assert!(late.is_stale());
/// assert_eq!(std::fs::read(ledger.path())?, b"invoice 1, 40.00\n");
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
///
/// A holder writes `lease.fenced(&ledger).write(bytes)`, which does not block the runtime.
///
/// # Crashes
///
/// The mark tells the next writer what an append that was begun had to write. A torn one is cut off, and a complete one
/// stays. A log that is longer or shorter for another reason was changed by another program: every call fails with
/// [`FenceError::Foreign`], and nothing is cut off. A reader that must not see a torn append reads no more than
/// [`length_blocking`](Self::length_blocking) bytes.
#[derive(Clone)]
pub struct FencedLog {
    sidecar: Arc<Sidecar>,
    blocking: Blocking,
}

impl FencedLog {
    /// The log at this path. Nothing is opened or created until the first call.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self::with(Sidecar::new(path.as_ref(), Kind::Log))
    }

    /// The same with another limit of the wait for other writers. The default is ten seconds.
    ///
    /// A writer keeps the lock for milliseconds, unless it is stopped. A call that waits longer fails, and names the process
    /// that has the lock.
    #[must_use]
    pub fn lock_wait(self, lock_wait: Duration) -> Self {
        Self::with(Sidecar::new(self.path(), Kind::Log).with_lock_wait(lock_wait))
    }

    fn with(sidecar: Sidecar) -> Self {
        Self { sidecar: Arc::new(sidecar), blocking: Blocking::new() }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        self.sidecar.path()
    }

    /// Appends the bytes, and returns the new length of the log when they are on the disk. Blocks this thread.
    pub fn append_blocking(&self, token: &FencingToken, bytes: &[u8]) -> Result<u64, FenceError> {
        append::append(&self.sidecar, token, Appended::Bytes(bytes))
    }

    /// The same with the bytes of a reader, up to its end. They are never in memory all at once: until its end is reached,
    /// they are in a file beside the log.
    pub fn append_from_blocking(
        &self,
        token: &FencingToken,
        mut source: impl Read,
    ) -> Result<u64, FenceError> {
        append::append(&self.sidecar, token, Appended::From(&mut source))
    }

    /// Raises the fence without a write. Blocks this thread.
    ///
    /// An append that a dead writer has left is completed or cut off, so that the log does not change after the seal
    /// before the new holder appends.
    pub fn seal_blocking(&self, token: &FencingToken) -> Result<(), FenceError> {
        append::seal(&self.sidecar, token)
    }

    /// Accepts the log as it is now: one that has content and no mark, or one that another program has changed. From then
    /// on, the mark admits this token and greater ones.
    ///
    /// All other calls refuse such a log: its mark may have been lost, in a backup without hidden files for example, and
    /// with it the greatest token. So first make sure that no earlier holder can still write. A mark that is there refuses
    /// a smaller token here, too.
    pub fn adopt_blocking(&self, token: &FencingToken) -> Result<(), FenceError> {
        append::adopt(&self.sidecar, token)
    }

    /// The greatest admitted token; `None` if the log is not fenced yet. Blocks this thread.
    ///
    /// It tells what the next append has to exceed or equal. Only the append itself proves that its token is admitted.
    pub fn mark_blocking(&self) -> Result<Option<FencingToken>, FenceError> {
        let mark = self.sidecar.peek(&self.sidecar.place()?)?;
        Ok(mark.map(|mark| mark.token))
    }

    /// Length of the log without an append that was begun and is not known to be complete. Blocks this thread.
    pub fn length_blocking(&self) -> Result<u64, FenceError> {
        let mark = self.sidecar.peek(&self.sidecar.place()?)?;
        Ok(match mark.map(|mark| mark.content) {
            Some(Content::Log(tail)) => tail.length(),
            Some(Content::File) | None => 0,
        })
    }

    /// The path of the mark file.
    pub fn mark_path(&self) -> Result<PathBuf, FenceError> {
        let place = self.sidecar.place()?;
        Ok(place.path_of(&place.mark_name()))
    }

    /// Accepts what the log shows now, after [`FenceError::WentBack`].
    pub fn acknowledge(&self) {
        self.sidecar.forget();
    }
}

impl Fence for FencedLog {
    type Write<'w> = Bytes;
    /// The new length of the log.
    type Written = u64;

    async fn write(&self, token: &FencingToken, bytes: Bytes) -> Result<u64, FenceError> {
        let (sidecar, token) = (Arc::clone(&self.sidecar), token.clone());
        let append = move || append::append(&sidecar, &token, Appended::Bytes(&bytes));
        self.blocking.run(self.path(), append).await
    }
}

impl Seal for FencedLog {
    async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        let (sidecar, token) = (Arc::clone(&self.sidecar), token.clone());
        self.blocking.run(self.path(), move || append::seal(&sidecar, &token)).await
    }
}

impl fmt::Debug for FencedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedLog").field("path", &self.path()).finish_non_exhaustive()
    }
}
