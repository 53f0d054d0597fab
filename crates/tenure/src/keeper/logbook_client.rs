use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use tenure_core::machine::{Content, Look, Recalled};
use tenure_core::record::State;
use tenure_store::{BoxFuture, Key, StoreClock};

use crate::clock::{Clock, Domain, Instant, timeout};
use crate::host::logbook::{Logbook, LogbookEntry, LogbookPage};
use crate::host::workers::Workers;

/// The logbook, as the keeper and the observers of one coordinator use it.
///
/// It is read once, at the first record whose age the store does not report. It is written when a contender or an
/// observer leaves before it could confirm an expiry. Workers do both, each time with a limit, and the caller continues
/// without a result that misses its limit.
pub(crate) struct LogbookClient {
    /// The store's name.
    store: String,
    clock: Arc<dyn Clock>,
    workers: Arc<Workers>,
    disk: Arc<LogbookDisk>,
    page: Mutex<Option<Shared<BoxFuture<'static, Arc<LogbookPage>>>>>,
    /// True if a read of the page missed its limit. No caller waits for it again.
    read_timed_out: AtomicBool,
}

/// The part of the client that workers use.
#[derive(Debug)]
struct LogbookDisk {
    logbook: Logbook,
    clock: Arc<dyn Clock>,
    /// Sightings that are not in the logbook yet.
    pending: Mutex<HashMap<Key, LogbookEntry>>,
    /// Sentence about the last problem with the logbook.
    problem: Mutex<Option<String>>,
}

impl LogbookClient {
    pub(crate) fn new(logbook: Logbook, store: String, clock: Arc<dyn Clock>, workers: Arc<Workers>) -> Self {
        let disk = LogbookDisk {
            logbook,
            clock: Arc::clone(&clock),
            pending: Mutex::default(),
            problem: Mutex::default(),
        };
        Self {
            store,
            clock,
            workers,
            disk: Arc::new(disk),
            page: Mutex::default(),
            read_timed_out: AtomicBool::new(false),
        }
    }

    /// Sighting of a key by an earlier process.
    pub(crate) async fn recall(&self, key: &Key) -> Option<Recalled> {
        let page = lock(&self.page).get_or_insert_with(|| self.read()).clone();
        let page = if self.read_timed_out.load(Ordering::Relaxed) {
            page.now_or_never()?
        } else {
            let mut waiting = PageWait { read_timed_out: &self.read_timed_out, done: false };
            let page = self.disk_timeout(page).await?;
            waiting.done = true;
            page
        };
        page.find(&self.store, key)?.to_recall()
    }

    /// Queues a sighting. [`flush`](Self::flush) or [`write_job`](Self::write_job) writes it.
    pub(crate) fn add(&self, key: &Key, seen: &Recalled, last: Instant, wanted: bool) {
        let mut pending = lock(&self.disk.pending);
        // The logbook has no room for more.
        if pending.len() < PENDING_MAX || pending.contains_key(key) {
            let wanted = wanted || pending.get(key).is_some_and(LogbookEntry::is_wanted);
            pending.insert(key.clone(), LogbookEntry::new(&self.store, key, seen, last, wanted));
        }
    }

    /// Writes all queued sightings.
    pub(crate) async fn flush(&self) {
        if !lock(&self.disk.pending).is_empty() {
            let written = self.workers.run_limited(self.write_job());
            self.disk_timeout(written).await;
        }
    }

    /// The job that writes all queued sightings.
    pub(crate) fn write_job(&self) -> impl FnOnce() + Send + 'static {
        let disk = Arc::clone(&self.disk);
        move || disk.write()
    }

    /// Sentence about the last problem with the logbook.
    pub(crate) fn problem(&self) -> Option<String> {
        lock(&self.disk.problem).clone()
    }

    fn read(&self) -> Shared<BoxFuture<'static, Arc<LogbookPage>>> {
        let disk = Arc::clone(&self.disk);
        let (answer, answered) = tokio::sync::oneshot::channel();
        // The read continues if the first caller is dropped.
        self.workers.run_limited_unheard(move || drop(answer.send(disk.read())));
        async move { Arc::new(answered.await.unwrap_or_default()) }.boxed().shared()
    }

    /// The output of the future; `None` and a recorded problem if the disk takes too long.
    async fn disk_timeout<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let outcome = timeout(&*self.clock, DISK_MAX, future).await;
        if outcome.is_none() {
            self.disk.report_problem(format!(
                "sightings are not stored in {}: the disk took longer than {DISK_MAX:?}. Check the kernel's log",
                self.disk.logbook.directory().display()
            ));
        }
        outcome
    }
}

/// Marks the page as late if it is dropped before the page has arrived: the call that waited for it has timed out, and
/// the next call must not time out for the same reason.
struct PageWait<'a> {
    read_timed_out: &'a AtomicBool,
    done: bool,
}

impl Drop for PageWait<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.read_timed_out.store(true, Ordering::Relaxed);
        }
    }
}

impl LogbookDisk {
    fn read(&self) -> LogbookPage {
        let Some(domain) = self.clock.domain() else { return LogbookPage::default() };
        self.logbook.read(&domain, &*self.clock).unwrap_or_else(|why| {
            self.report_problem(why);
            LogbookPage::default()
        })
    }

    fn write(&self) {
        let entries: Vec<_> = std::mem::take(&mut *lock(&self.pending)).into_values().collect();
        let domain: Option<Domain> = self.clock.domain().filter(|_| !entries.is_empty());
        if let Some(domain) = domain
            && let Err(why) = self.logbook.write(&domain, &*self.clock, entries)
        {
            self.report_problem(why);
        }
    }

    fn report_problem(&self, why: String) {
        lock(&self.problem).get_or_insert(why);
    }
}

impl fmt::Debug for LogbookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogbookClient").field("disk", &self.disk).finish_non_exhaustive()
    }
}

/// True if a sighting is worth logging: the record may be held, and only an observer that saw it for the length of the
/// ttl can confirm its expiry.
pub(crate) fn is_worth_logging(look: &Look, clock: StoreClock) -> bool {
    let aged = clock >= StoreClock::Ages && look.age.is_some();
    !aged && runs_out(&look.content)
}

/// True if the content can run out.
pub(crate) fn runs_out(content: &Content) -> bool {
    let Content::Record(record, _) = content else { return false };
    // The entry of a plain key may have no ttl.
    matches!(record.state, State::Held | State::Revoked(_) | State::Reserved(_)) && record.ttl.is_some()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic under these locks can leave the data inconsistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest time that a caller waits for the disk.
const DISK_MAX: Duration = Duration::from_millis(200);

const PENDING_MAX: usize = 1_000;
