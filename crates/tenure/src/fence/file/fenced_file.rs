use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::super::{Fence, FenceError, FencingToken, Seal};
use super::blocking::Blocking;
use super::place::Place;
use super::sidecar::{Kind, Sidecar};
use super::step::{Step, pass};
use super::unfinished::Unfinished;
use crate::host::disk::io_error::had_no_effect;

/// A plain file that is replaced as a whole, and only under the newest token.
///
/// Every program can read it, and always sees a complete version. Its mark, with the greatest admitted token, is beside
/// it: the mark of `report.csv` is `.report.csv.fence`. Clones are the same handle.
///
/// ```
/// use tenure::fence::{FencedFile, FencingToken};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("tenure-fenced-file-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let report = FencedFile::new(directory.join("report.csv"));
/// let (old, new): (FencingToken, FencingToken) = ("billing=7".parse()?, "billing=8".parse()?);
/// report.put_blocking(&old, b"a,1\n")?;
/// report.put_blocking(&new, b"a,2\n")?;
///
/// // The holder of token 7 was paused, and comes late.
/// let late = report.put_blocking(&old, b"a,1\n").unwrap_err();
/// assert!(late.is_stale());
/// assert_eq!(std::fs::read(report.path())?, b"a,2\n");
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
///
/// A holder writes `lease.fenced(&report).write(bytes)`, which does not block the runtime.
#[derive(Clone)]
pub struct FencedFile {
    sidecar: Arc<Sidecar>,
    blocking: Blocking,
}

impl FencedFile {
    /// The file at this path. Nothing is opened or created until the first call.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self::with(Sidecar::new(path.as_ref(), Kind::File))
    }

    /// The same with another limit of the wait for other writers. The default is ten seconds.
    ///
    /// A writer keeps the lock for milliseconds, unless it is stopped. A call that waits longer fails, and names the process
    /// that has the lock.
    #[must_use]
    pub fn lock_wait(self, lock_wait: Duration) -> Self {
        Self::with(Sidecar::new(self.path(), Kind::File).with_lock_wait(lock_wait))
    }

    fn with(sidecar: Sidecar) -> Self {
        Self { sidecar: Arc::new(sidecar), blocking: Blocking::new() }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        self.sidecar.path()
    }

    /// Replaces the file, and returns when that is on the disk. Blocks this thread.
    ///
    /// The new file has the owner and the permissions of the old one, but not its access control list and extended
    /// attributes.
    pub fn put_blocking(&self, token: &FencingToken, mut bytes: &[u8]) -> Result<(), FenceError> {
        put(&self.sidecar, token, &mut bytes)
    }

    /// The same with the bytes of a reader, up to its end. They are never in memory all at once.
    pub fn put_from_blocking(&self, token: &FencingToken, mut source: impl Read) -> Result<(), FenceError> {
        put(&self.sidecar, token, &mut source)
    }

    /// Raises the fence without a write. Blocks this thread.
    pub fn seal_blocking(&self, token: &FencingToken) -> Result<(), FenceError> {
        self.sidecar.seal(token)
    }

    /// Starts to fence a file that has content and no mark. From then on, the mark admits this token and greater ones.
    ///
    /// All other calls refuse such a file: its mark may have been lost, in a backup without hidden files for example, and
    /// with it the greatest token. So first make sure that no earlier holder can still write. With a mark, this is a seal.
    pub fn adopt_blocking(&self, token: &FencingToken) -> Result<(), FenceError> {
        let place = self.sidecar.place()?;
        self.sidecar.admit_adopting(&place, token)?.raise()
    }

    /// The greatest admitted token; `None` if the file is not fenced yet. Blocks this thread.
    ///
    /// It tells what the next write has to exceed or equal. Only the write itself proves that its token is admitted.
    pub fn mark_blocking(&self) -> Result<Option<FencingToken>, FenceError> {
        let mark = self.sidecar.peek(&self.sidecar.place()?)?;
        Ok(mark.map(|mark| mark.token))
    }

    /// The path of the mark file.
    pub fn mark_path(&self) -> Result<PathBuf, FenceError> {
        let place = self.sidecar.place()?;
        Ok(place.path_of(&place.mark_name()))
    }

    /// Accepts what the file shows now, after [`FenceError::WentBack`].
    pub fn acknowledge(&self) {
        self.sidecar.forget();
    }
}

impl Fence for FencedFile {
    type Write<'w> = Bytes;
    type Written = ();

    async fn write(&self, token: &FencingToken, bytes: Bytes) -> Result<(), FenceError> {
        let (sidecar, token) = (Arc::clone(&self.sidecar), token.clone());
        self.blocking.run(self.path(), move || put(&sidecar, &token, &mut &bytes[..])).await
    }
}

impl Seal for FencedFile {
    async fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        let (sidecar, token) = (Arc::clone(&self.sidecar), token.clone());
        self.blocking.run(self.path(), move || sidecar.seal(&token)).await
    }
}

impl fmt::Debug for FencedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedFile").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// Everything that takes time is done before the lock is taken. Under it: check, mark, rename.
fn put(sidecar: &Sidecar, token: &FencingToken, source: &mut dyn Read) -> Result<(), FenceError> {
    let place = sidecar.place()?;
    sidecar.refuse_early(&place, token)?;
    let temporary = Unfinished::create(&place)?;
    temporary.fill(source, |_| {})?;
    temporary.be_like(place.data()?.as_ref(), 0)?;
    temporary.sync()?;
    let mut admitted = sidecar.admit(&place, token)?;
    // The owner or the permissions of the file may have changed since.
    if temporary.be_like(place.data()?.as_ref(), 0)? {
        temporary.sync()?;
    }
    admitted.raise()?;
    rename(&place, temporary)
}

fn rename(place: &Place, temporary: Unfinished<'_>) -> Result<(), FenceError> {
    temporary.must_be_there()?;
    let renamed = pass(Step::Rename).and_then(|()| place.directory().rename(temporary.name(), place.name()));
    if let Err(errno) = renamed {
        return Err(if had_no_effect(errno) {
            place.io_error("cannot replace", place.name(), errno)
        } else {
            place.unknown("cannot replace", place.name(), errno)
        });
    }
    temporary.renamed();
    let synced = pass(Step::SyncDirectory).and_then(|()| place.directory().sync());
    synced.map_err(|errno| place.unknown("cannot sync the directory of", place.name(), errno))
}
