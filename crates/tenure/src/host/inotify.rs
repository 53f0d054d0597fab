//! Changes of files, as the kernel reports them: one inotify instance for the whole process.
//!
//! A user has 128 instances by default, so all subscribers share one, and one thread that reads it while there is a
//! subscriber. A forked child inherits the descriptor of the parent's instance, but not the thread: it creates its own
//! instance, and leaves the parent's alone.

use std::collections::HashMap;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tenure_store::BoxStream;
use tokio::sync::watch;

use crate::host::fork::{ForkGuard, PerProcess};

/// Kind of event to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A directory: names that are renamed to, or deleted.
    Names,
    /// A file: a process that could write to it has closed it, or died.
    Closing,
    /// A file: it was unlinked, replaced or moved.
    Unlinking,
    /// A directory: it was moved or removed itself.
    Moving,
}

impl Target {
    /// Flags of the watch, added to those of other subscribers to the same file.
    fn flags(self) -> WatchFlags {
        let flags = match self {
            Self::Names => WatchFlags::MOVED_TO | WatchFlags::DELETE | WatchFlags::ONLYDIR,
            Self::Closing => WatchFlags::CLOSE_WRITE,
            // Unlinking the last name of an open file is reported as a change of its attributes.
            Self::Unlinking => WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF,
            Self::Moving => WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::ONLYDIR,
        };
        flags | WatchFlags::MASK_ADD
    }

    /// True if the event is of this kind.
    fn covers(self, events: ReadFlags) -> bool {
        events.intersects(match self {
            Self::Names => ReadFlags::MOVED_TO | ReadFlags::DELETE,
            Self::Closing => ReadFlags::CLOSE_WRITE,
            Self::Unlinking => ReadFlags::ATTRIB | ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF,
            Self::Moving => ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF,
        })
    }
}

/// Changes of an open file or directory, from now on; `None` if the kernel's limit is reached.
///
/// `concerns` filters the names that change in a directory.
pub(crate) fn watch(
    file: impl AsFd,
    target: Target,
    concerns: impl Fn(&[u8]) -> bool + Send + 'static,
) -> Option<Changes> {
    Changes::of(|hub, this| hub.register(this, file, target, Box::new(concerns)))
}

/// Changes of the mounts of this process; `None` if the kernel does not report them.
pub(crate) fn watch_mounts() -> Option<Changes> {
    Changes::of(Hub::register_mounts)
}

/// Poll interval when the inotify limit is reached.
pub(crate) const UNTOLD: Duration = Duration::from_secs(1);

/// A subscription. Dropping it unsubscribes.
pub(crate) struct Changes {
    hub: &'static Mutex<Hub>,
    /// The process of its hub.
    fork_guard: ForkGuard,
    number: i32,
    id: u64,
    changed: watch::Receiver<()>,
}

/// The kernel's watch number, the id of the subscriber, and its channel.
type Registered = (i32, u64, watch::Receiver<()>);

impl Changes {
    /// `register` gets the locked hub of this process.
    fn of(register: impl FnOnce(&mut Hub, &'static Mutex<Hub>) -> Option<Registered>) -> Option<Self> {
        static HUB: PerProcess<Mutex<Hub>> = PerProcess::new();
        let fork_guard = ForkGuard::present().ok()?;
        let hub = HUB.get().ok()?;
        let (number, id, changed) = register(&mut lock(hub), hub)?;
        Some(Self { hub, fork_guard, number, id, changed })
    }

    /// The next change; several unread changes count as one. `None` if there will be no more.
    pub(crate) async fn next(&mut self) -> Option<()> {
        self.changed.changed().await.ok()
    }

    /// The changes as a stream.
    pub(crate) fn into_stream(self) -> BoxStream<'static, ()> {
        Box::pin(stream::unfold(self, async |mut changes| Some((changes.next().await?, changes))))
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("number", &self.number).finish_non_exhaustive()
    }
}

/// All subscriptions of this process.
#[derive(Default)]
struct Hub {
    /// Present while the thread runs.
    sources: Option<Arc<Sources>>,
    /// Subscriptions by the kernel's watch number.
    watched: HashMap<i32, Vec<Subscription>>,
    next_id: u64,
}

/// Descriptors that the thread reads.
struct Sources {
    inotify: OwnedFd,
    /// The list of mounts, which the kernel marks when it changes.
    mounts: Option<std::fs::File>,
}

/// Filter for the names that concern a subscriber.
type Concerns = Box<dyn Fn(&[u8]) -> bool + Send>;

struct Subscription {
    id: u64,
    target: Target,
    concerns: Concerns,
    change: Arc<watch::Sender<()>>,
}

/// Subscribers to notify once the lock is free: a woken subscriber may drop others.
#[must_use = "call `send` to notify them"]
struct Concerned(Vec<Arc<watch::Sender<()>>>);

impl Hub {
    /// `this` is the hub itself.
    fn register(
        &mut self,
        this: &'static Mutex<Self>,
        file: impl AsFd,
        target: Target,
        concerns: Concerns,
    ) -> Option<Registered> {
        let sources = self.sources(this)?;
        // By the descriptor, because the path may lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        // If this fails, the thread stays for the next subscriber.
        let number = inotify::add_watch(&sources.inotify, path, target.flags()).ok()?;
        Some(self.add(number, target, concerns))
    }

    fn register_mounts(&mut self, this: &'static Mutex<Self>) -> Option<Registered> {
        self.sources(this)?.mounts.as_ref()?;
        Some(self.add(MOUNTS, Target::Moving, Box::new(|_| true)))
    }

    fn sources(&mut self, this: &'static Mutex<Self>) -> Option<Arc<Sources>> {
        match &self.sources {
            Some(sources) => Some(Arc::clone(sources)),
            None => self.start(this),
        }
    }

    fn add(&mut self, number: i32, target: Target, concerns: Concerns) -> Registered {
        self.next_id += 1;
        let (change, changed) = watch::channel(());
        let watcher = Subscription { id: self.next_id, target, concerns, change: Arc::new(change) };
        self.watched.entry(number).or_default().push(watcher);
        (number, self.next_id, changed)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one thread that reads the kernel's hints, and its owner"
    )]
    fn start(&mut self, this: &'static Mutex<Self>) -> Option<Arc<Sources>> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let mounts = std::fs::File::open("/proc/self/mountinfo").ok();
        let sources = Arc::new(Sources { inotify, mounts });
        let reading = Arc::clone(&sources);
        let thread = std::thread::Builder::new().name("tenure-watch".into());
        thread.spawn(move || read(&reading, this)).ok()?;
        self.sources = Some(Arc::clone(&sources));
        Some(sources)
    }

    fn unregister(&mut self, number: i32, id: u64) {
        let Some(watchers) = self.watched.get_mut(&number) else { return };
        watchers.retain(|watcher| watcher.id != id);
        if !watchers.is_empty() {
            return;
        }
        self.watched.remove(&number);
        if let Some(sources) = &self.sources
            && number != MOUNTS
        {
            // The kernel answers with a last event, which wakes the thread, and the thread sees that it is idle.
            let _ = inotify::remove_watch(&sources.inotify, number);
        }
    }

    fn stop_if_idle(&mut self) -> bool {
        if self.watched.is_empty() {
            self.sources = None;
        }
        self.sources.is_none()
    }

    fn concerned(&mut self, number: i32, events: ReadFlags, name: Option<&[u8]>) -> Concerned {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            // The queue overflowed: any file may have changed.
            return Concerned::of(self.watched.values().flatten());
        }
        if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            // The file is gone: a last change, and no more.
            return Concerned::of(self.watched.remove(&number).iter().flatten());
        }
        let name = name.unwrap_or_default();
        let watchers = self.watched.get(&number).into_iter().flatten();
        Concerned::of(watchers.filter(|watcher| watcher.target.covers(events) && (watcher.concerns)(name)))
    }

    fn concerned_by_mounts(&self) -> Concerned {
        Concerned::of(self.watched.get(&MOUNTS).into_iter().flatten())
    }
}

impl Concerned {
    fn of<'a>(watchers: impl Iterator<Item = &'a Subscription>) -> Self {
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
        // A forked copy has nothing to unsubscribe: hub, lock and watch belong to the parent.
        if self.fork_guard.is_present() {
            lock(self.hub).unregister(self.number, self.id);
        }
    }
}

/// The thread: notifies subscribers until there are none.
fn read(sources: &Sources, hub: &'static Mutex<Hub>) {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut events = inotify::Reader::new(&sources.inotify, &mut buffer);
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
            Err(Errno::AGAIN) => {
                if wait(sources) {
                    let concerned = lock(hub).concerned_by_mounts();
                    concerned.send();
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => {
                // This should not happen. All streams end, and subscribers poll.
                let mut hub = lock(hub);
                let ended = std::mem::take(&mut hub.watched);
                hub.sources = None;
                drop(hub);
                return drop(ended);
            }
        }
    }
}

/// Waits for an event of either kind; `true` if the mounts have changed.
fn wait(sources: &Sources) -> bool {
    let inotify = PollFd::new(&sources.inotify, PollFlags::IN);
    let Some(mounts) = &sources.mounts else {
        let _ = poll(&mut [inotify], None);
        return false;
    };
    let mut both = [inotify, PollFd::new(mounts, PollFlags::PRI)];
    poll(&mut both, None).is_ok() && both[1].revents().contains(PollFlags::PRI)
}

fn lock(hub: &'static Mutex<Hub>) -> MutexGuard<'static, Hub> {
    hub.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Room for a few hundred events.
const BUFFER: usize = 16 * 1024;

/// Watch number of the list of mounts. The kernel's numbers are positive.
const MOUNTS: i32 = -2;

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(watchers: &[(i32, Target, &'static str)]) -> (Hub, Vec<watch::Receiver<()>>) {
        let mut hub = Hub::default();
        let mut receivers = Vec::new();
        for (number, target, name) in watchers {
            let (change, changed) = watch::channel(());
            let concerns = Box::new(|there: &[u8]| there.starts_with(name.as_bytes()));
            hub.watched.entry(*number).or_default().push(Subscription {
                id: 0,
                target: *target,
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
    fn a_change_wakes_its_watches_and_an_overflow_wakes_every_watch() {
        let (mut hub, mut all) = hub(&[
            (1, Target::Names, "jobs"),
            (1, Target::Names, "other"),
            (2, Target::Names, "jobs"),
            (3, Target::Closing, ""),
        ]);
        hub.concerned(1, ReadFlags::MOVED_TO, Some(b"jobs+a")).send();
        assert_eq!(told(&mut all), [true, false, false, false]);
        hub.concerned(3, ReadFlags::CLOSE_WRITE, None).send();
        assert_eq!(told(&mut all), [false, false, false, true]);
        hub.concerned(-1, ReadFlags::QUEUE_OVERFLOW, None).send();
        assert_eq!(told(&mut all), [true; 4]);
    }

    #[test]
    fn each_watch_of_a_file_gets_its_own_events_and_mount_watches_get_mounts() {
        let all = [(1, Target::Names, ""), (1, Target::Moving, ""), (MOUNTS, Target::Moving, "")];
        let (mut hub, mut all) = hub(&all);
        hub.concerned(1, ReadFlags::MOVED_TO, Some(b"jobs+a")).send();
        assert_eq!(told(&mut all), [true, false, false]);
        hub.concerned(1, ReadFlags::MOVE_SELF, None).send();
        assert_eq!(told(&mut all), [false, true, false]);
        hub.concerned_by_mounts().send();
        assert_eq!(told(&mut all), [false, false, true]);
    }

    #[test]
    fn a_deleted_directory_ends_its_watches_and_other_watches_stay() {
        let (mut hub, all) = hub(&[(1, Target::Names, ""), (2, Target::Names, "")]);
        hub.concerned(1, ReadFlags::IGNORED, None).send();
        assert!(all[0].has_changed().is_err() && all[1].has_changed().is_ok());
        assert_eq!(hub.watched.len(), 1);
    }
}
