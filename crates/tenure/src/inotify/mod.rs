//! What the kernel says about files that change: one inotify instance for the whole process.
//!
//! A user has 128 instances by default, so all who wait share one, and one thread that reads from it as long as there is
//! anybody to tell. A forked child has a descriptor of the parent's instance and no such thread: it makes an instance of its
//! own, and neither adds to the parent's nor takes from it.

use std::collections::HashMap;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::watch;

use crate::lease::fork::{Incarnation, PerProcess};

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A folder: names that are renamed to, or deleted.
    Names,
    /// A file: somebody who could write to it has closed it, or died.
    Closing,
}

/// Changes of an open file or folder, from now on; `None` where the kernel has no more to give.
///
/// `concerns` is asked about each name that changed in a folder.
pub(crate) fn watch(
    file: impl AsFd,
    target: Target,
    concerns: impl Fn(&[u8]) -> bool + Send + 'static,
) -> Option<Changes> {
    static HUB: PerProcess<Mutex<Hub>> = PerProcess::new();
    let incarnation = Incarnation::present().ok()?;
    let hub = HUB.get().ok()?;
    let (number, id, changed) = lock(hub).register(hub, file, target, Box::new(concerns))?;
    Some(Changes { hub, incarnation, number, id, changed })
}

/// How often those look whom the kernel tells nothing: a user has only so many who are told.
pub(crate) const UNTOLD: Duration = Duration::from_secs(1);

/// One who waits. Gone when dropped.
pub(crate) struct Changes {
    hub: &'static Mutex<Hub>,
    /// The process whose hub it is.
    incarnation: Incarnation,
    number: i32,
    id: u64,
    changed: watch::Receiver<()>,
}

impl Changes {
    /// Any number of changes that nobody has waited for yet are one; `None` when there will be no more.
    pub(crate) async fn next(&mut self) -> Option<()> {
        self.changed.changed().await.ok()
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("number", &self.number).finish_non_exhaustive()
    }
}

/// All who wait for hints in this process.
#[derive(Default)]
struct Hub {
    /// There as long as its thread is.
    inotify: Option<Arc<OwnedFd>>,
    /// By the kernel's number of what is watched.
    watched: HashMap<i32, Vec<Watcher>>,
    next_id: u64,
}

/// Whether a name that changed matters to somebody.
type Concerns = Box<dyn Fn(&[u8]) -> bool + Send>;

struct Watcher {
    id: u64,
    concerns: Concerns,
    change: Arc<watch::Sender<()>>,
}

/// Those to be told, once the lock is free: whoever is woken may drop others who wait.
#[must_use = "they are told by `send`"]
struct Concerned(Vec<Arc<watch::Sender<()>>>);

impl Hub {
    /// The kernel's number of what is watched, the number of who waits, and what tells it. `this` is the hub itself.
    fn register(
        &mut self,
        this: &'static Mutex<Self>,
        file: impl AsFd,
        target: Target,
        concerns: Concerns,
    ) -> Option<(i32, u64, watch::Receiver<()>)> {
        let inotify = match &self.inotify {
            Some(inotify) => Arc::clone(inotify),
            None => self.start(this)?,
        };
        // By the descriptor and not by the path, which may lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let flags = match target {
            Target::Names => WatchFlags::MOVED_TO | WatchFlags::DELETE | WatchFlags::ONLYDIR,
            Target::Closing => WatchFlags::CLOSE_WRITE,
        };
        // Where that fails the thread stays, for the next who asks.
        let number = inotify::add_watch(&*inotify, path, flags).ok()?;
        self.next_id += 1;
        let (change, changed) = watch::channel(());
        let watcher = Watcher { id: self.next_id, concerns, change: Arc::new(change) };
        self.watched.entry(number).or_default().push(watcher);
        Some((number, self.next_id, changed))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one thread that reads the kernel's hints, and its owner"
    )]
    fn start(&mut self, this: &'static Mutex<Self>) -> Option<Arc<OwnedFd>> {
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC).ok()?);
        let reading = Arc::clone(&inotify);
        let thread = std::thread::Builder::new().name("tenure-watch".into());
        thread.spawn(move || read(&reading, this)).ok()?;
        self.inotify = Some(Arc::clone(&inotify));
        Some(inotify)
    }

    fn unregister(&mut self, number: i32, id: u64) {
        let Some(watchers) = self.watched.get_mut(&number) else { return };
        watchers.retain(|watcher| watcher.id != id);
        if !watchers.is_empty() {
            return;
        }
        self.watched.remove(&number);
        if let Some(inotify) = &self.inotify {
            // The kernel answers with a last event, which wakes the thread, and that one sees that it is idle.
            let _ = inotify::remove_watch(&**inotify, number);
        }
    }

    fn stop_if_idle(&mut self) -> bool {
        if self.watched.is_empty() {
            self.inotify = None;
        }
        self.inotify.is_none()
    }

    fn concerned(&mut self, number: i32, events: ReadFlags, name: Option<&[u8]>) -> Concerned {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            // Something was dropped, and nobody knows what.
            return Concerned::of(self.watched.values().flatten());
        }
        if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            // It is gone: a last change, and no more.
            return Concerned::of(self.watched.remove(&number).iter().flatten());
        }
        let name = name.unwrap_or_default();
        let watchers = self.watched.get(&number).into_iter().flatten();
        Concerned::of(watchers.filter(|watcher| (watcher.concerns)(name)))
    }
}

impl Concerned {
    fn of<'a>(watchers: impl Iterator<Item = &'a Watcher>) -> Self {
        Self(watchers.map(|watcher| Arc::clone(&watcher.change)).collect())
    }

    fn send(self) {
        for change in self.0 {
            change.send_replace(());
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        // In a forked copy there is nothing to give back: hub, lock and watch are the parent's.
        if self.incarnation.is_present() {
            lock(self.hub).unregister(self.number, self.id);
        }
    }
}

/// The thread: tells what comes, until there is nobody to tell.
fn read(inotify: &Arc<OwnedFd>, hub: &'static Mutex<Hub>) {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut events = inotify::Reader::new(&**inotify, &mut buffer);
    loop {
        match events.next() {
            Ok(event) => {
                let name = event.file_name().map(std::ffi::CStr::to_bytes);
                let mut hub = lock(hub);
                let concerned = hub.concerned(event.wd(), event.events(), name);
                let idle = hub.stop_if_idle();
                drop(hub);
                concerned.send();
                if idle {
                    return;
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => {
                // It should not be possible; then all streams end, and whoever waits looks from time to time.
                let mut hub = lock(hub);
                let ended = std::mem::take(&mut hub.watched);
                hub.inotify = None;
                drop(hub);
                return drop(ended);
            }
        }
    }
}

fn lock(hub: &'static Mutex<Hub>) -> MutexGuard<'static, Hub> {
    hub.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A few hundred events at a time.
const BUFFER: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(watchers: &[(i32, &'static str)]) -> (Hub, Vec<watch::Receiver<()>>) {
        let mut hub = Hub::default();
        let mut receivers = Vec::new();
        for (number, name) in watchers {
            let (change, changed) = watch::channel(());
            let concerns = Box::new(|there: &[u8]| there.starts_with(name.as_bytes()));
            hub.watched.entry(*number).or_default().push(Watcher {
                id: 0,
                concerns,
                change: Arc::new(change),
            });
            receivers.push(changed);
        }
        (hub, receivers)
    }

    fn told(receivers: &mut [watch::Receiver<()>]) -> Vec<bool> {
        let told = receivers.iter().map(|receiver| receiver.has_changed().unwrap_or(true)).collect();
        receivers.iter_mut().for_each(watch::Receiver::mark_unchanged);
        told
    }

    #[test]
    fn a_change_is_told_to_those_concerned_and_an_overflow_to_everybody() {
        let (mut hub, mut all) = hub(&[(1, "jobs"), (1, "other"), (2, "jobs"), (3, "")]);
        hub.concerned(1, ReadFlags::MOVED_TO, Some(b"jobs+a")).send();
        assert_eq!(told(&mut all), [true, false, false, false]);
        hub.concerned(3, ReadFlags::CLOSE_WRITE, None).send();
        assert_eq!(told(&mut all), [false, false, false, true]);
        hub.concerned(-1, ReadFlags::QUEUE_OVERFLOW, None).send();
        assert_eq!(told(&mut all), [true; 4]);
    }

    #[test]
    fn when_a_folder_goes_nobody_waits_for_it_any_more_and_others_stay() {
        let (mut hub, all) = hub(&[(1, ""), (2, "")]);
        hub.concerned(1, ReadFlags::IGNORED, None).send();
        assert!(all[0].has_changed().is_err() && all[1].has_changed().is_ok());
        assert_eq!(hub.watched.len(), 1);
    }
}
