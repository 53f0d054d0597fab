use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tenure_store::{
    Applied, Entry, Expect, Key, Prefix, Put, Reading, Reason, Removal, StoreError, StoreTime, Version,
};

use super::directory::Directory;
use super::envelope::{Envelope, Stamp};
use super::filesystem::FileSystem;
use super::lock::KeyLock;
use super::loss::HeldKeyWatch;
use super::mark::Mark;
use super::remove::{RemovalTry, Remove};
use super::write::{self, Write, WriteTry};
use super::{File, list, name, read, sweep, temporary, wall_micros, watch};
use crate::clock::{BootClock, Clock, Domain, Instant};
use crate::host::disk::lock_owner::LockOwner;
use crate::host::workers::Workers;

/// The state that all calls of an open store share.
#[derive(Debug)]
pub(super) struct FileInner {
    inner: Arc<DirectoryState>,
    file_system: FileSystem,
    workers: Workers,
}

/// The state that workers need.
#[derive(Debug)]
struct DirectoryState {
    directory: Arc<Directory>,
    /// Always set in a store that is written to.
    mark: Option<Mark>,
    domain: Option<Domain>,
    clock: Arc<dyn Clock>,
    local: bool,
    writable: bool,
    /// Entries of this process that exist, but may not survive a power cut.
    unsynced: Mutex<HashMap<Key, Version>>,
    cleaned: AtomicBool,
}

impl FileInner {
    pub(super) fn new(
        directory: Directory,
        mark: Option<Mark>,
        writable: bool,
        domain: Option<Domain>,
        clock: Arc<dyn Clock>,
        file_system: FileSystem,
    ) -> Self {
        let inner = DirectoryState {
            directory: Arc::new(directory),
            mark,
            domain,
            clock,
            local: file_system.is_local(),
            writable,
            unsynced: Mutex::default(),
            cleaned: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner), file_system, workers: Workers::new() }
    }

    /// Time at which a name in the directory last changed; `None` if the directory is gone.
    pub(super) async fn changed(&self) -> Option<watch::DirectoryTimes> {
        let inner = Arc::clone(&self.inner);
        self.workers.run(move || watch::changed(&inner.directory)).await.ok()?
    }

    /// Checks whether the entry of this held key is lost, and requests the kernel's events about it.
    pub(super) async fn sentry(&self, key: &Key, sentry: HeldKeyWatch) -> Result<HeldKeyWatch, StoreError> {
        let (inner, key, local) = (Arc::clone(&self.inner), key.clone(), self.inner.local);
        self.workers.run(move || sentry.look(&inner.directory, &key, local)).await
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.inner.directory
    }

    pub(super) fn file_system(&self) -> FileSystem {
        self.file_system
    }

    pub(super) fn is_local(&self) -> bool {
        self.inner.local
    }

    pub(super) async fn get(&self, key: &Key) -> Result<Reading, StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        self.workers.run(move || inner.get(&key)).await?
    }

    pub(super) async fn put(&self, key: &Key, value: Bytes, expect: Expect) -> Result<Put, StoreError> {
        self.is_writable()?;
        if value.len() > File::VALUE_MAX {
            let (max, length) = (File::VALUE_MAX, value.len());
            let url = File::url_of(self.directory().path());
            let sentence = format!("{url} takes values of at most {max} bytes, not {length}");
            return Err(StoreError::refused(Reason::Invalid, sentence));
        }
        let inner = Arc::clone(&self.inner);
        let wanted = key.clone();
        let mut attempt = self.workers.run(move || inner.begin(wanted, value, expect)).await?;
        let mut patience = LockWait::new();
        while let WriteTry::Busy(write) = attempt {
            if !patience.wait().await {
                return Err(self.lock_kept_error(&name::lock(key)).await);
            }
            let (inner, is_long) = (Arc::clone(&self.inner), patience.is_long());
            attempt = self
                .workers
                .run(move || {
                    if is_long {
                        inner.replace_lock_if_stopped(write.key());
                    }
                    inner.attempt(write)
                })
                .await?;
        }
        self.clean_once();
        match attempt {
            WriteTry::Applied(version, time) => Ok(Put::Applied(Applied::new(version).with_time(time))),
            WriteTry::Conflict => Ok(WriteTry::CONFLICT),
            WriteTry::Unsynced(_, error) | WriteTry::Failed(error) => Err(error),
            WriteTry::Busy(_) => unreachable!("it was waited for"),
        }
    }

    pub(super) async fn remove(&self, key: &Key, version: &Version) -> Result<Removal, StoreError> {
        self.is_writable()?;
        let mut patience = LockWait::new();
        loop {
            let inner = Arc::clone(&self.inner);
            let remove = Remove::new(&inner.directory, inner.local, key, version);
            match self.workers.run(move || inner.remove(&remove)).await?? {
                RemovalTry::Settled(removal) => return Ok(removal),
                RemovalTry::Busy(_) if patience.wait().await => {}
                RemovalTry::Busy(lock) => return Err(self.lock_kept_error(&lock).await),
            }
        }
    }

    pub(super) async fn sweep(&self, key: &Key) -> Result<(), StoreError> {
        self.is_writable()?;
        let mut patience = LockWait::new();
        loop {
            let (inner, swept) = (Arc::clone(&self.inner), key.clone());
            if self.workers.run(move || sweep::sweep(&inner.directory, inner.local, &swept)).await?? {
                return Ok(());
            }
            if !patience.wait().await {
                return Err(self.lock_kept_error(&name::lock(key)).await);
            }
        }
    }

    pub(super) async fn list(&self, prefix: &Prefix) -> Result<Vec<Key>, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.clone());
        self.workers.run(move || list::keys(&inner.directory, &prefix)).await?
    }

    fn is_writable(&self) -> Result<(), StoreError> {
        if self.inner.writable {
            return Ok(());
        }
        let url = File::url_of(self.directory().path());
        let sentence = format!("{url} was opened read-only: open it again to write to it");
        Err(StoreError::refused(Reason::Invalid, sentence))
    }

    async fn lock_kept_error(&self, lock: &str) -> StoreError {
        let (inner, name) = (Arc::clone(&self.inner), lock.to_owned());
        let owner = self.workers.run(move || LockOwner::of(&inner.directory, &name)).await.ok().flatten();
        let lock = self.directory().path_of(lock);
        let lock = lock.display();
        let who = owner.map_or_else(
            || format!("find the process that has the lock (fuser -v {lock}), and continue or kill it"),
            |owner| owner.to_string(),
        );
        let sentence = format!(
            "{lock} was locked for more than {LOCK_WAIT:?}, although writers lock it only for microseconds: {who}"
        );
        StoreError::refused(Reason::Unreachable, sentence)
    }

    /// Cleans up once in the life of a store, after its first write: a process that only reads has nothing to clean up.
    fn clean_once(&self) {
        if !self.inner.cleaned.swap(true, Ordering::Relaxed) {
            // Only the directory: after the store is dropped, nothing may stay open for writing, or its disk could not
            // be mounted read-only.
            let directory = Arc::clone(&self.inner.directory);
            self.workers.run_unheard(move || {
                let seconds = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
                // Best effort: remaining files do no harm.
                let _ = temporary::clean(&directory, seconds);
            });
        }
    }
}

impl DirectoryState {
    fn get(&self, key: &Key) -> Result<Reading, StoreError> {
        self.directory.is_in_place()?;
        let mut there = if self.local || !self.writable {
            read::entry(&self.directory, key)?
        } else {
            read::entry_or_none_for_sure(&self.directory, key)?
        };
        if let Some(envelope) = &there
            && self.unsynced().get(key) == Some(&envelope.version)
        {
            self.write_again(envelope)?;
            there = read::entry(&self.directory, key)?;
        }
        // After the read: the age is at least what it was when the entry was read.
        let now = self.clock.now();
        let entry = there.map(|envelope| {
            let age = envelope.stamp.age(self.domain.as_ref(), now).filter(|_| self.local);
            Entry::new(envelope.value, envelope.version).with_age(age)
        });
        Ok(Reading::new(entry).with_time(self.time()))
    }

    fn time(&self) -> StoreTime {
        let wall = wall_micros(&*self.clock);
        self.mark.as_ref().map_or(StoreTime::from_micros(wall), |mark| mark.time(wall))
    }

    /// Everything up to the first attempt to take the lock.
    fn begin(&self, key: Key, value: Bytes, expect: Expect) -> WriteTry {
        match self.prepare(key, value, expect) {
            Ok(Some(write)) => self.attempt(write),
            Ok(None) => WriteTry::Conflict,
            Err(error) => WriteTry::Failed(error),
        }
    }

    /// Tries to take the lock, and writes if it is free. Records a failed sync even if the caller no longer waits for
    /// the answer.
    fn attempt(&self, write: Write) -> WriteTry {
        let key = write.key().clone();
        let mut attempt = write.attempt();
        match &mut attempt {
            WriteTry::Unsynced(version, _) => drop(self.unsynced().insert(key, version.clone())),
            // Here, on a thread that may wait for the disk.
            WriteTry::Applied(_, time) => *time = Some(self.time()),
            WriteTry::Busy(_) | WriteTry::Conflict | WriteTry::Failed(_) => {}
        }
        attempt
    }

    /// Replaces the lock of a key if its owner is stopped. If that fails, the writer waits for the lock as usual.
    fn replace_lock_if_stopped(&self, key: &Key) {
        if self.local {
            let _ = KeyLock::replace_if_stopped(&self.directory, key);
        }
    }

    fn prepare(&self, key: Key, value: Bytes, expect: Expect) -> Result<Option<Write>, StoreError> {
        self.directory.is_in_place()?;
        // A writer that has already lost need not wait for the disk to learn it.
        if !write::is_as_expected(&self.directory, &key, &expect)? {
            return Ok(None);
        }
        if let Some(mark) = &self.mark {
            mark.raise(&self.directory, wall_micros(&*self.clock))
                .map_err(|unusable| unusable.refused(&self.directory))?;
        }
        let version = super::version_of(super::random());
        // After the caller began to count, and before everything that takes time. So the age is at most the time since
        // the write was requested, from which its holder's deadline counts. It is at least the time since the entry was
        // visible.
        let stamp = Stamp { domain: self.domain.clone(), at: self.clock.now() };
        let bytes = Envelope { key: key.clone(), version: version.clone(), stamp, value }.encode().into();
        Write::prepare(Arc::clone(&self.directory), self.local, key, expect, version, &bytes).map(Some)
    }

    /// Tries to take the locks, and removes if they are free.
    fn remove(&self, remove: &Remove) -> Result<RemovalTry, StoreError> {
        let mark = self.mark.as_ref().expect("a store that is written to has a mark");
        remove.attempt(mark, wall_micros(&*self.clock))
    }

    /// Writes an entry again whose sync failed, and fails if that does not succeed. Such an entry is not shown: a
    /// holder would act on a grant that a power cut reverts.
    fn write_again(&self, envelope: &Envelope) -> Result<(), StoreError> {
        let (key, version) = (envelope.key.clone(), envelope.version.clone());
        let (directory, expect) = (Arc::clone(&self.directory), Expect::Version(version.clone()));
        let bytes = envelope.encode().into();
        let write = Write::prepare(directory, self.local, key.clone(), expect, version, &bytes)?;
        match self.attempt(write) {
            WriteTry::Applied(..) | WriteTry::Conflict => {
                self.unsynced().remove(&key);
                Ok(())
            }
            WriteTry::Unsynced(_, error) | WriteTry::Failed(error) => Err(error),
            WriteTry::Busy(_) => {
                Err(StoreError::unknown(format!("{key} is being written, and not yet on the disk")))
            }
        }
    }

    fn unsynced(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Version>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a lock between two attempts. No thread waits: other calls would wait behind it for locks that are free.
struct LockWait {
    began: Instant,
    pause: Duration,
    /// The latest instant at which the wait was longer than a running process keeps a lock.
    long: Instant,
}

impl LockWait {
    fn new() -> Self {
        let now = BootClock.now();
        Self { began: now, pause: LOCK_PAUSE, long: now }
    }

    /// True once in a while, if the lock is kept for longer than a running process keeps it.
    fn is_long(&mut self) -> bool {
        let now = BootClock.now();
        let is_long = now.since(self.long) >= LOCK_LONG;
        if is_long {
            self.long = now;
        }
        is_long
    }

    /// Waits a little longer each time; `false` once the total wait is long enough.
    async fn wait(&mut self) -> bool {
        let now = BootClock.now();
        if now.since(self.began) >= LOCK_WAIT {
            return false;
        }
        BootClock.sleep_until(now + self.pause).await;
        self.pause = (self.pause * 2).min(LOCK_PAUSE_MAX);
        true
    }
}

/// Maximum wait for a lock that is normally kept for microseconds. Less than the timeout of a renewal.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Time after which a writer checks whether the owner of a lock is stopped. Less than the timeout of a call at a ttl of
/// half a second.
const LOCK_LONG: Duration = Duration::from_millis(20);

const LOCK_PAUSE: Duration = Duration::from_micros(500);
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(8);
