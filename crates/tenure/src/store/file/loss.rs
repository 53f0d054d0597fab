//! Hints that what is held under a key is lost: its entry, or the whole folder, is no longer there.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{select, select_all};
use futures_util::{StreamExt, stream};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use tenure_store::{BoxStream, Key, Reason, Refused, StoreError};

use super::folder::Folder;
use super::{FileInner, name};
use crate::clock::{BootClock, Clock};
use crate::host::inotify::{self, Changes, Target};

/// Hints on one key. Whatever happens between two looks, the next look comes after it: events are asked for first.
pub(super) fn hints(shared: Arc<FileInner>, key: Key) -> BoxStream<'static, ()> {
    let hints = stream::unfold((shared, key, HeldKeyWatch::default()), async |(shared, key, mut sentry)| {
        loop {
            // A store that was lost already is looked at again only after a while: one hint is enough.
            sentry.wait().await;
            sentry = shared.sentry(&key, sentry).await.unwrap_or_default();
            if sentry.lost {
                return Some(((), (shared, key, sentry)));
            }
        }
    });
    hints.boxed()
}

/// The state of one held key, and what the kernel tells about it.
#[derive(Debug, Default)]
pub(super) struct HeldKeyWatch {
    state: WatchState,
    lost: bool,
    /// Events of the mounts, the folder and every folder above it.
    place: Vec<Changes>,
    /// Events of the file that is the entry now. A renewal puts another in its place.
    entry: Option<Changes>,
}

/// The way in which the next look is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WatchState {
    /// Nothing was looked at yet.
    #[default]
    New,
    /// The kernel tells.
    Told,
    /// The kernel does not tell everything.
    Untold,
}

impl HeldKeyWatch {
    /// Asks for events, then looks. To be called by a thread that may wait for the disk.
    pub(super) fn look(mut self, folder: &Folder, key: &Key, local: bool) -> Self {
        if self.state == WatchState::New && local {
            self.place = place(folder).unwrap_or_default();
        }
        let name = name::entry(key);
        // A file that is watched already is given up only after the new one is watched: the thread that waits stays.
        let entry = watch_entry(folder, &name);
        let missing = matches!(entry, Err(Errno::NOENT));
        self.entry = entry.unwrap_or_default();
        self.lost = missing || is_gone(&folder.is_in_place());
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
        // There are no more of them: what they were of has gone, or the kernel has dropped them.
        if event.is_none() && at < of_the_place {
            self.place.clear();
        }
    }
}

/// The entry, watched; `None` if the kernel does not tell, and an error if there is none to watch.
fn watch_entry(folder: &Folder, name: &str) -> rustix::io::Result<Option<Changes>> {
    for _ in 0..TRIES {
        let entry = folder.open(name, OFlags::RDONLY)?;
        let opened = rustix::fs::fstat(&entry)?;
        let changes = inotify::watch(entry, Target::Unlinking, |_| true);
        // It may have been replaced before it was watched.
        if folder.status_of(name)?.st_ino == opened.st_ino {
            return Ok(changes);
        }
    }
    Ok(None)
}

/// Events of the mounts, the folder and every folder above it; `None` if the kernel does not tell of all of them.
///
/// A folder that is removed needs no event of its own: the entry in it went before.
fn place(folder: &Folder) -> Option<Vec<Changes>> {
    // In this order: the last of them that is dropped wakes the thread that waits for the kernel.
    let mut place = vec![inotify::watch_mounts()?, inotify::watch(folder, Target::Moving, |_| true)?];
    for above in folder.path().ancestors().skip(1).filter(|above| above.parent().is_some()) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let above = rustix::fs::openat(CWD, above, flags, Mode::empty()).ok()?;
        place.push(inotify::watch(above, Target::Moving, |_| true)?);
    }
    Some(place)
}

fn is_gone(in_place: &Result<(), StoreError>) -> bool {
    matches!(in_place, Err(StoreError::Refused(Refused { reason: Reason::Gone, .. })))
}

/// A lease that is released before the first look is not watched. A process that has watched files waits for the kernel when it
/// ends, for 10 to 20 ms: several times as long as a short command takes.
const FIRST_LOOK: Duration = Duration::from_millis(50);

/// A holder renews at most a few times in the moment that this takes.
const TRIES: usize = 4;
