use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tenure::store::Memory;
use tenure_store::{
    Applied, BoxFuture, BoxStream, Conflict, Expect, Guarantees, Identity, Key, Prefix, Put, Reading, Store,
    StoreError, Version, Write,
};

/// A memory store behind a wrapper that lies or interferes.
#[derive(Debug)]
pub(crate) struct Wrapper {
    pub(crate) inner: Memory,
    how: How,
    puts: AtomicUsize,
    gets: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum How {
    /// Honest; every call yields to other tasks a few times, before and after.
    Yields,
    /// Accepts the condition of a create and ignores it.
    IgnoresCreate,
    /// Accepts the condition of a replace and ignores it.
    IgnoresReplace,
    /// Reports that every write was applied, and writes nothing.
    OkWithoutWriting,
    /// Applies every write, and reports that it refused it.
    WritesAndRefuses,
    /// Applies every write, and loses the answer.
    WritesAndSaysNothing,
    /// Refuses every write as a conflict.
    AlwaysConflicts,
    /// Applies its writes and never shows them.
    NeverShows,
    /// Every entry has the empty version.
    EmptyVersions,
    /// Every entry has the version that is declared impossible.
    ImpossibleVersions,
    /// Every read shows another version.
    UnsteadyVersions,
    /// One of three servers behind one address ignores every condition.
    OneBadServerOfThree,
    /// Honest; an operator deletes the key just before the write with this number arrives.
    DeletedBeforePut(usize),
    /// Honest; an operator deletes the key just before the read with this number arrives.
    DeletedBeforeGet(usize),
    /// Honest; a foreign program overwrites the key just before the write with this number arrives.
    OverwrittenBeforePut(usize),
    /// Honest; a foreign program overwrites the key before every write.
    KeepsBeingOverwritten,
}

impl Wrapper {
    pub(crate) fn new(inner: Memory, how: How) -> Self {
        Self { inner, how, puts: AtomicUsize::new(0), gets: AtomicUsize::new(0) }
    }

    /// Number of writes received.
    pub(crate) fn puts(&self) -> usize {
        self.puts.load(Ordering::SeqCst)
    }

    fn applied(&self, key: &Key, value: Bytes) -> Put {
        Put::Applied(Applied::new(self.inner.overwrite(key, value)))
    }

    async fn give_way(&self, number: usize) {
        if self.how == How::Yields {
            for _ in 0..number * 7 % 5 {
                tokio::task::yield_now().await;
            }
        }
    }
}

impl Store for Wrapper {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        Box::pin(async move {
            let number = self.gets.fetch_add(1, Ordering::SeqCst) + 1;
            if self.how == How::DeletedBeforeGet(number) {
                self.inner.delete(key);
            }
            self.give_way(number).await;
            let mut reading = self.inner.get(key).await?;
            self.give_way(number / 2).await;
            if let Some(entry) = &mut reading.entry {
                match self.how {
                    How::EmptyVersions => entry.version = Version::new(""),
                    How::ImpossibleVersions => entry.version = self.inner.identity().impossible_version,
                    How::UnsteadyVersions => entry.version = Version::new(format!("read-{number}")),
                    _ => {}
                }
            }
            if self.how == How::NeverShows {
                reading.entry = None;
            }
            Ok(reading)
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            let number = self.puts.fetch_add(1, Ordering::SeqCst) + 1;
            self.give_way(number).await;
            let value = write.value.clone();
            match (self.how, &write.expect) {
                (How::IgnoresCreate, Expect::Absent) | (How::IgnoresReplace, Expect::Version(_)) => {
                    return Ok(self.applied(key, value));
                }
                (How::OneBadServerOfThree, _) if number % 3 == 2 => return Ok(self.applied(key, value)),
                (How::OkWithoutWriting, _) => {
                    return Ok(Put::Applied(Applied::new(Version::new("7"))));
                }
                (How::WritesAndRefuses, _) => {
                    self.inner.overwrite(key, value);
                    return Ok(Put::Conflict(Conflict));
                }
                (How::WritesAndSaysNothing, _) => {
                    self.inner.overwrite(key, value);
                    return Err(StoreError::unknown("cut off"));
                }
                (How::AlwaysConflicts, _) => return Ok(Put::Conflict(Conflict)),
                (How::DeletedBeforePut(nth), _) if number == nth => {
                    self.inner.delete(key);
                }
                (How::OverwrittenBeforePut(nth), _) if number == nth => {
                    self.inner.overwrite(key, "foreign");
                }
                (How::KeepsBeingOverwritten, _) => {
                    self.inner.overwrite(key, format!("foreign {number}"));
                }
                _ => {}
            }
            let answer = self.inner.write(key, write).await;
            self.give_way(number / 2).await;
            answer
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.inner.list(prefix)
    }

    fn identity(&self) -> Identity {
        self.inner.identity()
    }
}

impl fmt::Display for Wrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
