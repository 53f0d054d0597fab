//! Hints that a held lease is lost: its entry, or the complete directory, no longer exists.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{select, select_all};
use futures_util::{StreamExt, stream};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use tenure_store::{BoxStream, Key, Reason, Refused, StoreError};

use super::directory::Directory;
use super::{FileInner, name};
use crate::clock::{BootClock, Clock};
use crate::host::inotify::{self, Changes, Target};

/// Hints on one key. Events are requested before each check, so a later check covers everything between two checks.
pub(super) fn hints(shared: Arc<FileInner>, key: Key) -> BoxStream<'static, ()> {
    let hints = stream::unfold((shared, key, HeldKeyWatch::default()), async |(shared, key, mut sentry)| {
        loop {
            // A store that is already lost is checked again only after a pause: one hint is enough.
            sentry.wait().await;
            sentry = shared.sentry(&key, sentry).await.unwrap_or_default();
            if sentry.lost {
                return Some(((), (shared, key, sentry)));
            }
        }
    });
    hints.boxed()
}

/// State of one held key, and the events of the kernel about it.
#[derive(Debug, Default)]
pub(super) struct HeldKeyWatch {
    state: WatchState,
    lost: bool,
    /// Events of the mounts, the directory and every directory above it.
    place: Vec<Changes>,
    /// Events of the file that is the entry now. A renewal replaces the file.
    entry: Option<Changes>,
}

/// The trigger of the next check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WatchState {
    /// No check yet.
    #[default]
    New,
    /// Events of the kernel.
    Told,
    /// Events of the kernel, and a timer: the kernel does not report everything.
    Untold,
}

impl HeldKeyWatch {
    /// Requests events, then checks. Call it on a thread that may wait for the disk.
    pub(super) fn look(mut self, directory: &Directory, key: &Key, local: bool) -> Self {
        if self.state == WatchState::New && local {
            self.place = place(directory).unwrap_or_default();
        }
        let name = name::entry(key);
        // The watch of the old file is dropped only after the new file is watched: the waiting thread stays.
        let entry = watch_entry(directory, &name);
        let missing = matches!(entry, Err(Errno::NOENT));
        self.entry = entry.unwrap_or_default();
        self.lost = missing || is_gone(&directory.is_in_place());
        let told = !self.lost && self.entry.is_some() && !self.place.is_empty();
        self.state = if told { WatchState::Told } else { WatchState::Untold };
        self
    }

    /// Waits until something may have changed.
    async fn wait(&mut self) {
        let clock = BootClock::new();
        let pause = clock.sleep_until(clock.now() + inotify::UNTOLD);
        match self.state {
            WatchState::New => clock.sleep_until(clock.now() + FIRST_LOOK).await,
            WatchState::Told => self.event().await,
            WatchState::Untold if self.lost => pause.await,
            WatchState::Untold => drop(select(Box::pin(self.event()), pause).await),
        }
    }

    async fn event(&mut self) {
        let of_the_place = self.place.len();
        let entry = self.entry.iter_mut();
        let events: Vec<_> =
            self.place.iter_mut().chain(entry).map(|changes| Box::pin(changes.next())).collect();
        if events.is_empty() {
            return std::future::pending().await;
        }
        let (event, at, others) = select_all(events).await;
        drop(others);
        // This stream of events has ended: its directory is gone, or the kernel has dropped it.
        if event.is_none() && at < of_the_place {
            self.place.clear();
        }
    }
}

/// Watches the entry; `None` if the kernel gives no events, and an error if there is no entry.
fn watch_entry(directory: &Directory, name: &str) -> rustix::io::Result<Option<Changes>> {
    for _ in 0..TRIES {
        let entry = directory.open(name, OFlags::RDONLY)?;
        let opened = rustix::fs::fstat(&entry)?;
        let changes = inotify::watch(entry, Target::Unlinking, |_| true);
        // The entry may have been replaced before it was watched.
        if directory.status_of(name)?.st_ino == opened.st_ino {
            return Ok(changes);
        }
    }
    Ok(None)
}

/// Events of the mounts, the directory and every directory above it; `None` if the kernel does not report all of them.
///
/// A removed directory needs no event of its own: the entry in it was removed before.
fn place(directory: &Directory) -> Option<Vec<Changes>> {
    // In this order: the last one that is dropped wakes the thread that waits for the kernel.
    let mut place = vec![inotify::watch_mounts()?, inotify::watch(directory, Target::Moving, |_| true)?];
    for above in directory.path().ancestors().skip(1).filter(|above| above.parent().is_some()) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let above = rustix::fs::openat(CWD, above, flags, Mode::empty()).ok()?;
        place.push(inotify::watch(above, Target::Moving, |_| true)?);
    }
    Some(place)
}

fn is_gone(in_place: &Result<(), StoreError>) -> bool {
    matches!(in_place, Err(StoreError::Refused(Refused { reason: Reason::Gone, .. })))
}

/// Delay of the first check. A lease that is released earlier is not watched: a process that has watched files waits 10
/// to 20 ms for the kernel at its exit, several times as long as a short command takes.
const FIRST_LOOK: Duration = Duration::from_millis(50);

/// Maximum number of attempts: a holder renews at most a few times in this moment.
const TRIES: usize = 4;
