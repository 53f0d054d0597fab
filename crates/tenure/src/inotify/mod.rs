use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt, stream};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tenure_store::{BoxStream, Prefix};
use tokio::sync::watch;

use super::folder::Folder;
use super::name::{self, Named, Stem};

/// Hints on the keys of a folder that `prefix` covers; `None` where the kernel has no more to give.
///
/// A user has 128 inotify instances by default, so the whole process shares one, and one thread that reads from it as
/// long as there is anybody to tell.
pub(super) fn hints(folder: &Folder, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
    let mut hub = lock();
    let hints = hub.register(folder, prefix)?;
    drop(hub);
    let hints = stream::unfold(hints, async |mut hints| {
        hints.changed.changed().await.ok()?;
        Some(((), hints))
    });
    Some(hints.boxed())
}

/// All who wait for hints in this process.
#[derive(Default)]
struct Hub {
    /// There as long as its thread is.
    inotify: Option<Arc<OwnedFd>>,
    /// By the kernel's number of the watched folder.
    folders: HashMap<i32, Vec<Watcher>>,
    next_id: u64,
}

struct Watcher {
    id: u64,
    prefix: Prefix,
    change: Arc<watch::Sender<()>>,
}

/// Those to be told, once the lock is free: whoever is woken may drop others who wait.
#[must_use = "they are told by `send`"]
struct Concerned(Vec<Arc<watch::Sender<()>>>);

/// One who waits. Gone when dropped.
struct Hints {
    number: i32,
    id: u64,
    changed: watch::Receiver<()>,
}

impl Hub {
    fn register(&mut self, folder: &Folder, prefix: &Prefix) -> Option<Hints> {
        let inotify = match &self.inotify {
            Some(inotify) => Arc::clone(inotify),
            None => self.start()?,
        };
        // By the descriptor and not by the path, which may lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
        let flags = WatchFlags::MOVED_TO | WatchFlags::DELETE | WatchFlags::ONLYDIR;
        // Where that fails the thread stays, for the next who asks.
        let number = inotify::add_watch(&*inotify, path, flags).ok()?;
        self.next_id += 1;
        let (change, changed) = watch::channel(());
        let watcher = Watcher { id: self.next_id, prefix: prefix.clone(), change: Arc::new(change) };
        self.folders.entry(number).or_default().push(watcher);
        Some(Hints { number, id: self.next_id, changed })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one thread that reads the kernel's hints, and its owner"
    )]
    fn start(&mut self) -> Option<Arc<OwnedFd>> {
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC).ok()?);
        let reading = Arc::clone(&inotify);
        let thread = std::thread::Builder::new().name("tenure-watch".into());
        thread.spawn(move || read(&reading)).ok()?;
        self.inotify = Some(Arc::clone(&inotify));
        Some(inotify)
    }

    fn unregister(&mut self, number: i32, id: u64) {
        let Some(watchers) = self.folders.get_mut(&number) else { return };
        watchers.retain(|watcher| watcher.id != id);
        if !watchers.is_empty() {
            return;
        }
        self.folders.remove(&number);
        if let Some(inotify) = &self.inotify {
            // The kernel answers with a last event, which wakes the thread, and that one sees that it is idle.
            let _ = inotify::remove_watch(&**inotify, number);
        }
    }

    fn stop_if_idle(&mut self) -> bool {
        if self.folders.is_empty() {
            self.inotify = None;
        }
        self.inotify.is_none()
    }

    fn concerned(&mut self, number: i32, events: ReadFlags, name: Option<&[u8]>) -> Concerned {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            // Something was dropped, and nobody knows what.
            return Concerned::of(self.folders.values().flatten());
        }
        if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            // The folder is gone: a last hint, and the end of the stream.
            return Concerned::of(self.folders.remove(&number).iter().flatten());
        }
        let Named::Entry(stem) = name::parse(name.unwrap_or_default()) else { return Concerned(Vec::new()) };
        let watchers = self.folders.get(&number).into_iter().flatten();
        match name::parse_stem(stem) {
            Stem::Of(key) => Concerned::of(watchers.filter(|watcher| watcher.prefix.covers(&key))),
            // Its key is in the file. To look is as much work for each of them as for this thread.
            Stem::Long => Concerned::of(watchers),
            Stem::Foreign => Concerned(Vec::new()),
        }
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

impl Drop for Hints {
    fn drop(&mut self) {
        lock().unregister(self.number, self.id);
    }
}

/// The thread: tells what comes, until there is nobody to tell.
fn read(inotify: &Arc<OwnedFd>) {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut events = inotify::Reader::new(&**inotify, &mut buffer);
    loop {
        match events.next() {
            Ok(event) => {
                let name = event.file_name().map(std::ffi::CStr::to_bytes);
                let mut hub = lock();
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
                let mut hub = lock();
                let ended = std::mem::take(&mut hub.folders);
                hub.inotify = None;
                drop(hub);
                return drop(ended);
            }
        }
    }
}

fn lock() -> MutexGuard<'static, Hub> {
    static HUB: LazyLock<Mutex<Hub>> = LazyLock::new(Mutex::default);
    HUB.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A few hundred events at a time.
const BUFFER: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use tenure_store::Key;

    use super::*;

    fn hub(prefixes: &[(i32, &str)]) -> (Hub, Vec<watch::Receiver<()>>) {
        let mut hub = Hub::default();
        let mut receivers = Vec::new();
        for (number, prefix) in prefixes {
            let (change, changed) = watch::channel(());
            let prefix = Prefix::parse(prefix).unwrap();
            hub.folders.entry(*number).or_default().push(Watcher { id: 0, prefix, change: Arc::new(change) });
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
        let (mut hub, mut all) = hub(&[(1, "jobs"), (1, "other"), (2, "jobs")]);
        let entry = name::entry(&Key::parse("jobs/a").unwrap());
        hub.concerned(1, ReadFlags::MOVED_TO, Some(entry.as_bytes())).send();
        assert_eq!(told(&mut all), [true, false, false]);
        for name in ["jobs.lock", "tenure.mark", "00.tmp", "NOT-OURS.entry"] {
            hub.concerned(1, ReadFlags::MOVED_TO, Some(name.as_bytes())).send();
            assert_eq!(told(&mut all), [false; 3], "{name}");
        }
        hub.concerned(-1, ReadFlags::QUEUE_OVERFLOW, None).send();
        assert_eq!(told(&mut all), [true; 3]);
    }

    #[test]
    fn when_a_folder_goes_its_streams_end_and_others_stay() {
        let (mut hub, all) = hub(&[(1, ""), (2, "")]);
        hub.concerned(1, ReadFlags::IGNORED, None).send();
        assert!(all[0].has_changed().is_err() && all[1].has_changed().is_ok());
        assert!(!hub.stop_if_idle() || hub.folders.len() == 1);
    }
}
