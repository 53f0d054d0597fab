use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_store::{Reason, StoreError};
use tokio::sync::oneshot;

use crate::host::simulation::simulated;

/// A few threads that wait for the disk in place of the keeper.
///
/// A sync can take tens of milliseconds, and minutes on a failing disk. Meanwhile the keeper must watch the deadlines
/// of all leases. Threads start when there is work, and end when there is none.
///
/// The last one stays, because a renewal needs it: where the number of processes is limited, a thread that has ended
/// may not start again, and a healthy holder would lose its lease.
///
/// A coordinator has one pool for all local files. A file store has its own, so that a failing disk under a store does
/// not delay witnesses elsewhere.
pub(crate) struct Workers {
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<QueueState>,
    work: Condvar,
    /// Time after which an idle thread ends.
    idle_max: Duration,
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<Job>,
    /// Jobs of which only [`LIMITED_MAX`] run at the same time.
    limited: VecDeque<Job>,
    limited_running: usize,
    threads: usize,
    idle: usize,
    /// Threads that have done their job, and only have to pass on the result.
    answering: usize,
    closed: bool,
}

struct Job {
    run: Box<dyn FnOnce() -> Answer + Send>,
    limited: bool,
}

/// Passes on the result of a job, without waiting. Returns a result that no caller wants any more: to drop it may take as
/// long as a job, because it may close a file.
type Answer = Box<dyn FnOnce() -> Option<Unwanted> + Send>;

type Unwanted = Box<dyn Any + Send>;

impl Workers {
    pub(crate) fn new() -> Self {
        Self::with_idle_max(IDLE_MAX)
    }

    fn with_idle_max(idle_max: Duration) -> Self {
        let queue = Queue { state: Mutex::default(), work: Condvar::new(), idle_max };
        Self { queue: Arc::new(queue) }
    }

    /// Runs the job on a worker. If the future is dropped before a worker has started the job, it does not run; after
    /// that it runs to its end, and its result is discarded.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_job(job, false).await
    }

    /// Runs a job that leases can do without, such as one on the logbook. Only some of the threads run such jobs, so that a
    /// disk that hangs leaves the other threads to the witnesses.
    pub(crate) async fn run_limited<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_job(job, true).await
    }

    async fn run_job<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
        limited: bool,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let run = move || -> Answer {
            let done = (!answer.is_closed()).then(job);
            Box::new(move || answer.send(done?).err().map(|unwanted| Box::new(unwanted) as Unwanted))
        };
        self.submit(Job { run: Box::new(run), limited })?;
        answered.await.map_err(|_| StoreError::unknown("the thread that did it has failed"))
    }

    /// Runs the job if a worker is available, and discards the result.
    pub(crate) fn run_unheard(&self, job: impl FnOnce() + Send + 'static) {
        let _ = self.submit(Job::unheard(job, false));
    }

    /// The same for a job that leases can do without.
    pub(crate) fn run_limited_unheard(&self, job: impl FnOnce() + Send + 'static) {
        let _ = self.submit(Job::unheard(job, true));
    }

    fn submit(&self, job: Job) -> Result<(), StoreError> {
        let mut job = Some(job);
        let simulated =
            simulated(|host| job.take().is_some_and(|job| host.run_job(Box::new(|| drop((job.run)()())))));
        let Some(job) = job else {
            return match simulated {
                Some(true) => Ok(()),
                _ => Err(StoreError::refused(Reason::Unreachable, "no thread can be started")),
            };
        };
        let mut state = self.queue.lock();
        if state.jobs.len() + state.limited.len() >= JOBS_MAX {
            let sentence =
                format!("{JOBS_MAX} calls are already waiting for the disk: check the kernel's log");
            return Err(StoreError::refused(Reason::Unreachable, sentence));
        }
        let limited = job.limited;
        let queue = if limited { &mut state.limited } else { &mut state.jobs };
        queue.push_back(job);
        // If there are threads, they will run it.
        if let Err(error) = self.queue.start_if_short(&mut state)
            && state.threads == 0
        {
            let queue = if limited { &mut state.limited } else { &mut state.jobs };
            queue.pop_back();
            return Err(StoreError::refused(
                Reason::Unreachable,
                format!("no thread can be started: {error}"),
            ));
        }
        drop(state);
        self.queue.work.notify_one();
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.work.notify_all();
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.queue.lock();
        let (threads, waiting) = (state.threads, state.jobs.len() + state.limited.len());
        drop(state);
        f.debug_struct("Workers").field("threads", &threads).field("waiting", &waiting).finish()
    }
}

impl Job {
    fn unheard(job: impl FnOnce() + Send + 'static, limited: bool) -> Self {
        let run = move || -> Answer {
            job();
            Box::new(|| None)
        };
        Self { run: Box::new(run), limited }
    }
}

impl QueueState {
    /// Number of queued jobs that may run now.
    fn runnable(&self) -> usize {
        self.jobs.len() + self.limited.len().min(LIMITED_MAX - self.limited_running)
    }

    /// Takes the next job that may run.
    fn pop(&mut self) -> Option<Job> {
        if let Some(job) = self.jobs.pop_front() {
            return Some(job);
        }
        if self.limited_running == LIMITED_MAX {
            return None;
        }
        let job = self.limited.pop_front()?;
        self.limited_running += 1;
        Some(job)
    }
}

impl Queue {
    /// Runs a job to its end. A panic costs this job alone: its caller receives an unknown outcome.
    fn run(self: &Arc<Self>, job: Job) -> MutexGuard<'_, QueueState> {
        let answer = catch_unwind(AssertUnwindSafe(job.run));
        self.lock().answering += 1;
        let unwanted = answer.and_then(|answer| catch_unwind(AssertUnwindSafe(answer)));
        let mut state = self.lock();
        state.answering -= 1;
        if !matches!(unwanted, Ok(None)) {
            // A job may have been submitted that counts on this thread.
            let _ = self.start_if_short(&mut state);
            drop(state);
            let _ = catch_unwind(AssertUnwindSafe(|| drop(unwanted)));
            state = self.lock();
        }
        if job.limited {
            state.limited_running -= 1;
            // This thread may take another job first.
            self.work.notify_one();
        }
        state
    }

    /// Starts another thread if the free ones are fewer than the jobs. A thread that only passes on its result is free: the
    /// caller that receives the result submits its next job before that thread waits again.
    fn start_if_short(self: &Arc<Self>, state: &mut QueueState) -> std::io::Result<()> {
        if state.idle + state.answering < state.runnable() && state.threads < THREADS_MAX {
            start(Arc::clone(self))?;
            state.threads += 1;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No job runs under the lock, so a panic leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; `None` after a long idle time, or when the pool is closed. The thread is then counted out under
    /// the same lock, so that no job waits for a thread that ends.
    fn next<'a>(&'a self, mut state: MutexGuard<'a, QueueState>) -> Option<Job> {
        loop {
            if let Some(job) = state.pop() {
                return Some(job);
            }
            if state.closed {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            if state.threads <= STAY {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            }
            let (woken, waited) =
                self.work.wait_timeout(state, self.idle_max).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.runnable() == 0 && state.threads > STAY {
                state.threads -= 1;
                return None;
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "these are the threads that wait for the disk, and this is their owner"
)]
fn start(queue: Arc<Queue>) -> std::io::Result<()> {
    std::thread::Builder::new().name("tenure-disk".into()).spawn(move || {
        let mut state = queue.lock();
        while let Some(job) = queue.next(state) {
            state = queue.run(job);
        }
    })?;
    Ok(())
}

/// Maximum number of concurrent syncs; file systems combine them.
const THREADS_MAX: usize = 8;

/// Maximum queue length: more jobs only pile up while the disk hangs.
const JOBS_MAX: usize = 16_384;

/// Number of threads that stay when there is no work.
const STAY: usize = 1;

/// Maximum number of limited jobs that run at the same time.
const LIMITED_MAX: usize = THREADS_MAX / 2;

const IDLE_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;
    use crate::clock::{BootClock, Clock};

    #[tokio::test]
    async fn many_jobs_share_few_threads_and_each_runs_once() {
        let workers = Workers::new();
        let done = Arc::new(AtomicUsize::new(0));
        let jobs = (0..1_000).map(|number| {
            let done = Arc::clone(&done);
            workers.run(move || {
                done.fetch_add(1, Ordering::SeqCst);
                number
            })
        });
        let answers = join_all(jobs).await;
        assert!(answers.into_iter().enumerate().all(|(at, answer)| answer.unwrap() == at));
        assert_eq!(done.load(Ordering::SeqCst), 1_000);
        assert!(workers.queue.lock().threads <= THREADS_MAX);
    }

    #[tokio::test]
    async fn a_job_without_a_waiting_caller_is_not_started() {
        let workers = Workers::new();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let blocked: Vec<_> = (0..THREADS_MAX)
            .map(|_| {
                let gate = Arc::clone(&gate);
                Box::pin(workers.run(move || gate.lock().unwrap().recv()))
            })
            .collect();
        let mut blocked = join_all(blocked);
        assert!((&mut blocked).now_or_never().is_none());
        let done = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&done);
        assert!(workers.run(move || counted.fetch_add(1, Ordering::SeqCst)).now_or_never().is_none());
        for _ in 0..THREADS_MAX {
            go.send(()).unwrap();
        }
        blocked.await;
        workers.run(|| ()).await.unwrap();
        assert_eq!(done.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_panic_in_a_job_is_an_unknown_outcome_and_the_next_job_runs() {
        let workers = Workers::new();
        for _ in 0..2 * THREADS_MAX {
            let answer = workers.run(|| std::panic::resume_unwind(Box::new("on purpose"))).await;
            let answer: Result<(), _> = answer;
            assert!(matches!(answer, Err(StoreError::Unknown(_))), "{answer:?}");
        }
        assert_eq!(workers.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn limited_jobs_leave_threads_to_others_and_each_is_done() {
        let workers = Workers::new();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let running = Arc::new(AtomicUsize::new(0));
        let limited = (0..4 * THREADS_MAX).map(|_| {
            let (gate, running) = (Arc::clone(&gate), Arc::clone(&running));
            workers.run_limited(move || {
                let at_once = running.fetch_add(1, Ordering::SeqCst) + 1;
                let _ = gate.lock().unwrap().recv();
                running.fetch_sub(1, Ordering::SeqCst);
                at_once
            })
        });
        let mut limited = Box::pin(join_all(limited));
        assert!((&mut limited).now_or_never().is_none());
        assert_eq!(workers.run(|| 7).await.unwrap(), 7, "half of the threads are free");
        drop(go);
        let at_once = limited.await.into_iter().map(Result::unwrap).max();
        assert!(at_once <= Some(LIMITED_MAX), "{at_once:?}");
        // A thread counts its job out after it has sent the answer.
        let clock = BootClock::new();
        let ends = clock.now() + Duration::from_secs(10);
        while workers.queue.lock().limited_running > 0 {
            assert!(clock.now() < ends, "a place of a limited job is never free again");
            clock.sleep_until(clock.now() + Duration::from_millis(1)).await;
        }
    }

    /// A panic must not keep the place of a limited job.
    #[tokio::test]
    async fn limited_jobs_that_panic_do_not_stop_the_next_ones() {
        let workers = Workers::new();
        for _ in 0..2 * LIMITED_MAX {
            let answer: Result<(), _> =
                workers.run_limited(|| std::panic::resume_unwind(Box::new("deliberately"))).await;
            assert!(matches!(answer, Err(StoreError::Unknown(_))), "{answer:?}");
        }
        assert_eq!(workers.run_limited(|| 7).await.unwrap(), 7);
    }

    /// At the limit of processes, no new thread can start.
    #[tokio::test]
    async fn the_last_thread_outlives_the_idle_time_and_does_the_next_job() {
        let workers = Workers::with_idle_max(Duration::from_millis(5));
        let many = (0..THREADS_MAX).map(|_| workers.run(|| std::thread::current().id()));
        join_all(many).await;
        let is_alone = || {
            let state = workers.queue.lock();
            (state.threads, state.idle) == (1, 1)
        };
        let clock = BootClock::new();
        let mut seen = Vec::new();
        for _ in 0..2 {
            while !is_alone() {
                clock.sleep_until(clock.now() + Duration::from_millis(1)).await;
            }
            seen.push(workers.run(|| std::thread::current().id()).await.unwrap());
            // Several idle times; the thread could exit after each of them.
            clock.sleep_until(clock.now() + Duration::from_millis(50)).await;
        }
        assert_eq!(seen[0], seen[1], "a new thread was started");
    }

    /// A caller often submits its next job as soon as it has an answer.
    #[tokio::test]
    async fn jobs_one_after_the_other_need_one_thread() {
        let workers = Workers::new();
        for number in 0..1_000 {
            assert_eq!(workers.run(move || number).await.unwrap(), number);
        }
        assert_eq!(workers.queue.lock().threads, 1);
    }

    /// To drop a result may close a file on a disk that hangs.
    #[tokio::test]
    async fn a_result_that_is_dropped_slowly_delays_no_other_job() {
        struct SlowToDrop(std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>);
        impl Drop for SlowToDrop {
            fn drop(&mut self) {
                let _ = self.0.send(());
                let _ = self.1.recv();
            }
        }
        let workers = Workers::new();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let (begun, begins) = oneshot::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let (dropped, drops) = std::sync::mpsc::channel();
        let mut slow = Box::pin(workers.run(move || {
            let _ = begun.send(());
            let _ = ends.recv();
            SlowToDrop(dropped, gate)
        }));
        assert!((&mut slow).now_or_never().is_none());
        begins.await.unwrap();
        drop(slow);
        end.send(()).unwrap();
        drops.recv().unwrap();
        assert_eq!(workers.run(|| 7).await.unwrap(), 7);
        drop(go);
    }

    #[tokio::test]
    async fn threads_exit_when_the_store_is_dropped() {
        let workers = Workers::new();
        workers.run(|| ()).await.unwrap();
        let queue = Arc::downgrade(&workers.queue);
        drop(workers);
        for _ in 0..1_000 {
            if queue.strong_count() == 0 {
                return;
            }
            tokio::task::yield_now().await;
            std::thread::yield_now();
        }
        assert!(queue.upgrade().is_none_or(|queue| queue.lock().closed));
    }
}
