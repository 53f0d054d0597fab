//! A store in a directory on the local disk: for the processes of one machine.
//!
//! It needs no server, and a process that dies leaves no lock behind: all locks are in the kernel. Its guarantees, its
//! files on the disk and its limits are in `docs/stores/file.md`.

mod builder;
mod damaged;
mod envelope;
mod gate;
mod list;
mod lock;
mod loss;
mod mark;
mod name;
mod read;
mod remove;
mod shared;
mod sharing;
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

use futures_util::{StreamExt, TryFutureExt, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use tenure_store::{
    Administration, BoxStream, Guarantees, Identity, Key, Prefix, Put, Reading, Removal, Scratch, Store,
    StoreError, StoreFuture, Version, Write,
};

pub use builder::FileBuilder;

use crate::Error;
use crate::clock::Clock;
use crate::host::disk::{directory, filesystem, path_safety};
use crate::host::pause::pause;
use shared::FileInner;

/// A store in a directory on the local disk. Clones are the same store.
///
/// All processes of the machine that open the directory share its keys. Calls must be polled inside a tokio runtime
/// that has io and time enabled; the store waits for the disk in threads of its own.
///
/// ```
/// use tenure::store::File;
/// use tenure_store::{Expect, Key, Put, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("tenure-doc-{}", std::process::id()));
/// let store = File::open(&directory)?;
/// let key = Key::parse("billing/nightly")?;
///
/// let Put::Applied(first) = store.put(&key, "one".into(), Expect::Absent).await? else { panic!() };
/// // Another process sees the entry, and only one of two replaces of a version is applied.
/// let again = File::open(&directory)?;
/// let seen = Expect::Version(first.version);
/// assert!(matches!(again.put(&key, "two".into(), seen.clone()).await?, Put::Applied(_)));
/// assert!(matches!(store.put(&key, "three".into(), seen).await?, Put::Conflict(_)));
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct File {
    shared: Arc<FileInner>,
}

impl File {
    /// Maximum size of a value, in bytes.
    pub const VALUE_MAX: usize = 1 << 20;

    /// Opens the store in this directory, and creates the directory if there is none, for this user alone.
    ///
    /// Refuses directories of other users, directories that others may write to, directories that are neither empty nor
    /// a store, symbolic links, and file systems that are not known to be local. [`builder`](Self::builder) accepts
    /// some of them by name.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open(path)
    }

    /// Starts to build a store with settings other than the defaults.
    pub fn builder() -> FileBuilder {
        FileBuilder::new()
    }

    /// The URL of a directory, which `tenure-connect` opens. Bytes with another meaning in a URL or in a shell are
    /// written as `%XX`.
    pub fn url_of(path: &Path) -> String {
        format!("file://{}", percent_encode(path.as_os_str().as_bytes(), &ESCAPED))
    }

    /// The directory, without links.
    pub fn path(&self) -> &Path {
        self.shared.directory().path()
    }

    /// The file that holds the entry of this key, for inspection.
    pub fn path_of(&self, key: &Key) -> PathBuf {
        self.shared.directory().path_of(&name::entry(key))
    }

    fn with(shared: FileInner) -> Self {
        Self { shared: Arc::new(shared) }
    }
}

impl Store for File {
    fn guarantees(&self) -> Guarantees {
        builder::guarantees(self.shared.file_system())
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(self.shared.get(key))
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(self.shared.put(key, write.value, write.expect))
    }

    /// The keys at the time of the first poll, in order.
    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        let keys = self.shared.list(prefix).map_ok(|keys| stream::iter(keys.into_iter().map(Ok)));
        keys.try_flatten_stream().boxed()
    }

    /// Hints are merged: any number of changes since the last poll are one hint. The stream ends when the directory is
    /// gone.
    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        if !self.guarantees().watch {
            return None;
        }
        watch::hints(self.shared.directory(), prefix)
            .or_else(|| Some(watch::hints_by_polling(Arc::clone(&self.shared))))
    }

    /// By the kernel's events on the entry, the directory, all directories above it, and the mounts. Without such
    /// events it checks once a second.
    fn watch_held(&self, key: &Key) -> Option<BoxStream<'static, ()>> {
        Some(loss::hints(Arc::clone(&self.shared), key.clone()))
    }

    /// The time of the directory never goes back, so tokens grow even without a record.
    fn administration(&self) -> Option<&dyn Administration> {
        Some(self)
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        Some(self)
    }

    /// Witnesses are in the directory itself, if its locks are local to this kernel.
    fn identity(&self) -> Identity {
        Identity::new(version_of(IMPOSSIBLE))
            .with_witness_directory(self.shared.is_local().then(|| self.path().to_owned()))
            .with_shared_witnesses(self.shared.directory().is_shared())
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
        f.write_str(&Self::url_of(self.path()))?;
        // A handle names the store so that another process can open it.
        if self.shared.directory().is_shared() { f.write_str("?share=group") } else { Ok(()) }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// The bytes that are escaped in the path of a URL.
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

/// The bits that no version has.
const IMPOSSIBLE: u128 = 0;

fn version_of(bits: u128) -> Version {
    Version::new(format!("{bits:032x}"))
}

/// From the kernel: copies of a virtual machine would repeat a counter.
#[expect(clippy::disallowed_methods, reason = "the store draws its versions and file names only here")]
fn random() -> u128 {
    let mut bytes = [0; 16];
    // Fails only if the kernel has no randomness at all; then nothing is written, and the panic of the worker reports
    // it.
    getrandom::fill(&mut bytes).expect("the kernel gives randomness");
    u128::from_ne_bytes(bytes).max(IMPOSSIBLE + 1)
}

/// The machine's wall clock in microseconds since 1970.
fn wall_micros(clock: &dyn Clock) -> u64 {
    clock.wall().as_millis().saturating_mul(1_000)
}
