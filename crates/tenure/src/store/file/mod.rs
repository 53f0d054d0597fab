//! A store in a folder on the local disk: for the processes of one machine.
//!
//! Nothing has to run for it, and nothing of it stays behind when a process dies: what is locked is locked in the
//! kernel. What it guarantees, how it lies on the disk, and where its limits are: `docs/stores/file.md`.

mod builder;
mod damaged;
mod envelope;
mod gate;
mod list;
mod lock;
mod loss;
mod mark;
mod name;
mod owner;
mod read;
mod remove;
mod shared;
mod sweep;
mod temporary;
mod trial;
mod tried;
mod watch;
mod write;

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryFutureExt, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use tenure_store::{
    Administration, BoxStream, Expect, Guarantees, Identity, Key, Prefix, Put, Reading, Removal, Scratch,
    Store, StoreError, StoreFuture, Version,
};

pub use builder::FileBuilder;

use crate::Error;
use crate::clock::Clock;
use crate::host::disk::{filesystem, folder, path_safety};
use shared::FileInner;

/// A store in a folder on the local disk. Clones are the same store.
///
/// All processes of the machine that open the folder share its keys. Calls must be polled inside a tokio runtime that
/// has io and time enabled; they wait for the disk in threads of the store's own.
///
/// ```
/// use tenure::store::File;
/// use tenure_store::{Expect, Key, Put, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", std::process::id()));
/// let store = File::open(&folder)?;
/// let key = Key::parse("billing/nightly")?;
///
/// let Put::Applied(first) = store.put(&key, "one".into(), Expect::Absent).await? else { panic!() };
/// // Another process, another look: it is there, and only one of two replaces of a version is applied.
/// let again = File::open(&folder)?;
/// let seen = Expect::Version(first.version);
/// assert!(matches!(again.put(&key, "two".into(), seen.clone()).await?, Put::Applied(_)));
/// assert!(matches!(store.put(&key, "three".into(), seen).await?, Put::Conflict(_)));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct File {
    shared: Arc<FileInner>,
}

impl File {
    /// The largest value, in bytes.
    pub const VALUE_MAX: usize = 1 << 20;

    /// Opens the store in this folder, and makes the folder where there is none, for this user alone.
    ///
    /// Refused are folders of other users, folders that others may write to, folders that are not empty and no store,
    /// symbolic links, and file systems that are not known to be local. [`builder`](Self::builder) accepts some of that
    /// by name.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open(path)
    }

    /// Starts opening a store that differs from the ordinary one.
    pub fn builder() -> FileBuilder {
        FileBuilder::new()
    }

    /// The URL of a folder, which `tenure-connect` opens. What would mean something else in a URL, or in a shell, is written
    /// as `%XX`, byte for byte.
    pub fn url_of(path: &Path) -> String {
        format!("file://{}", percent_encode(path.as_os_str().as_bytes(), &ESCAPED))
    }

    /// The folder, without links.
    pub fn path(&self) -> &Path {
        self.shared.folder().path()
    }

    /// The file that holds what this key holds, for people who look for it.
    pub fn path_of(&self, key: &Key) -> PathBuf {
        self.shared.folder().path_of(&name::entry(key))
    }

    fn with(shared: FileInner) -> Self {
        Self { shared: Arc::new(shared) }
    }
}

impl Store for File {
    fn guarantees(&self) -> Guarantees {
        builder::guarantees(self.shared.is_local())
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(self.shared.get(key))
    }

    fn put<'a>(&'a self, key: &'a Key, value: Bytes, expect: Expect) -> StoreFuture<'a, Put> {
        Box::pin(self.shared.put(key, value, expect))
    }

    /// The keys as they are at the first poll, in order.
    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        let keys = self.shared.list(prefix).map_ok(|keys| stream::iter(keys.into_iter().map(Ok)));
        keys.try_flatten_stream().boxed()
    }

    /// Hints are merged: any number of changes that nobody has looked at yet are one hint. The stream ends when the
    /// folder is gone.
    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        if !self.guarantees().watch {
            return None;
        }
        watch::hints(self.shared.folder(), prefix)
            .or_else(|| Some(watch::hints_by_polling(Arc::clone(&self.shared))))
    }

    /// By the kernel's events on the entry, the folder, all above it, and what is mounted; by looking once a second where the
    /// kernel has none to give.
    fn watch_held(&self, key: &Key) -> Option<BoxStream<'static, ()>> {
        Some(loss::hints(Arc::clone(&self.shared), key.clone()))
    }

    /// The folder's time never goes back, so tokens grow though a record is gone.
    fn administration(&self) -> Option<&dyn Administration> {
        Some(self)
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        Some(self)
    }

    /// Witnesses lie in the folder itself, where its locks are this kernel's own.
    fn identity(&self) -> Identity {
        Identity::new(version_of(IMPOSSIBLE))
            .with_witness_folder(self.shared.is_local().then(|| self.path().to_owned()))
    }
}

impl Scratch for File {
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            key.must_be_sweepable()?;
            self.shared.sweep(key).await
        })
    }
}

impl Administration for File {
    fn remove<'a>(&'a self, key: &'a Key, version: &'a Version) -> StoreFuture<'a, Removal> {
        Box::pin(self.shared.remove(key, version))
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::url_of(self.path()))
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// What is not itself in the path of a URL.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'+')
    .remove(b',')
    .remove(b':')
    .remove(b'=')
    .remove(b'@');

/// The bits that no version is drawn with.
const IMPOSSIBLE: u128 = 0;

fn version_of(bits: u128) -> Version {
    Version::new(format!("{bits:032x}"))
}

/// From the kernel: a counter would be given twice to copies of a virtual machine.
#[expect(
    clippy::disallowed_methods,
    reason = "versions and names of files are the store's own, and drawn here alone"
)]
fn random() -> u128 {
    let mut bytes = [0; 16];
    // Fails only where the kernel has no randomness at all; then nothing is written, and the worker's end says so.
    getrandom::fill(&mut bytes).expect("the kernel gives randomness");
    u128::from_ne_bytes(bytes).max(IMPOSSIBLE + 1)
}

#[expect(clippy::disallowed_methods, reason = "a worker waits for another process, for a moment")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// The machine's wall clock in microseconds since 1970.
fn wall_micros(clock: &dyn Clock) -> u64 {
    clock.wall().as_millis().saturating_mul(1_000)
}
