//! Locks of other libraries beside Tenure's, on the same server, in the same run of a benchmark.

mod accident;
mod holder;
mod lock;
mod slow_link;

use std::sync::Arc;
use std::time::{Duration, Instant};

use accident::{Crash, Pause};
pub use lock::{ComparedLock, LockKind, OpenedLock};
pub use slow_link::SlowLink;
use tenure_store::BoxFuture;

use crate::proxy::FaultyProxy;
use crate::samples::Samples;

/// The locks that a benchmark compares, and the server that they share.
///
/// A benchmark calls [`serve_holder`](Self::serve_holder) first, because the comparison starts the benchmark's own program
/// again for each holder that it kills or pauses.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// The locks.
    pub kinds: &'static [LockKind],
    /// Opens a lock on a connection of its own. Parameters: URL of the server, name in `kinds`, name of the lock, ttl.
    pub open: for<'a> fn(&'a str, &'a str, &'a str, Duration) -> OpenedLock<'a>,
    /// Writes to the resource that the lock protects, as a holder with this token, if it has one. `false` if the resource
    /// refuses the token. Parameters: URL of the server, name of the lock, token.
    pub write: for<'a> fn(&'a str, &'a str, Option<u64>) -> BoxFuture<'a, bool>,
}

/// Measurements of one lock.
#[derive(Debug)]
struct ComparedRow {
    kind: &'static LockKind,
    calls: [usize; 3],
    spans: [Samples; 3],
    handed_over: Samples,
    crash: Crash,
    pause: Pause,
}

impl Comparison {
    /// Runs as a holder, and never returns, if this process was started as one.
    pub fn serve_holder(&self) {
        if let Ok(order) = std::env::var(holder::VARIABLE) {
            crate::block_on(holder::serve(self, &order));
            std::process::exit(0);
        }
    }

    /// Measures all locks on the server at `url`, prints a table, and returns the failovers of the first one: the times
    /// from the last renewal of a killed holder to the next grant.
    ///
    /// `proxy` counts the requests of a lock that is opened at `proxied`: the server's own statistics also count the
    /// commands inside scripts.
    pub async fn run(&self, url: &str, proxy: &FaultyProxy, proxied: &str, effort: Effort) -> Samples {
        let spans = self.time(url, &effort).await;
        let mut rows = Vec::new();
        for (kind, spans) in self.kinds.iter().zip(spans) {
            let calls = self.count(kind, proxy, proxied).await;
            rows.push((kind, calls, spans, self.hand_over(kind, url, &effort).await));
        }
        // All at once: they mostly wait.
        let this = Arc::new((*self, url.to_owned()));
        let accidents: Vec<_> = self
            .kinds
            .iter()
            .map(|kind| {
                let this = Arc::clone(&this);
                tokio::spawn(async move {
                    let (comparison, url) = &*this;
                    let crashes = Crash::rounds(comparison, url, kind, effort.crashes);
                    tokio::join!(crashes, Pause::suffer(comparison, url, kind))
                })
            })
            .collect();
        let mut finished = Vec::new();
        for ((kind, calls, spans, handed_over), accident) in rows.into_iter().zip(accidents) {
            let (crash, pause) = accident.await.expect("an accident is measured");
            finished.push(ComparedRow { kind, calls, spans, handed_over, crash, pause });
        }
        print_table(&finished);
        finished.swap_remove(0).crash.since_renewal
    }

    /// Requests of an acquire, a renewal and a release.
    async fn count(&self, kind: &LockKind, proxy: &FaultyProxy, proxied: &str) -> [usize; 3] {
        let mut lock = (self.open)(proxied, kind.name, "counted", TTL).await;
        // The first use connects, and loads scripts.
        for _ in 0..2 {
            lock.acquire().await;
            lock.renew().await;
            lock.release().await;
        }
        let counted = || {
            proxy.settle(PATIENCE);
            let count = proxy.log().len();
            proxy.clear_log();
            count
        };
        counted();
        lock.acquire().await;
        let acquire = counted();
        lock.renew().await;
        let renew = counted();
        lock.release().await;
        [acquire, renew, counted()]
    }

    /// Durations of an acquire, a renewal and a release of each lock without contention.
    async fn time(&self, url: &str, effort: &Effort) -> Vec<[Samples; 3]> {
        let mut locks = Vec::new();
        for kind in self.kinds {
            let samples = ["acquire", "renew", "release"].map(Samples::new);
            locks.push(((self.open)(url, kind.name, "timed", TTL).await, samples));
        }
        for _ in 0..effort.rounds {
            // In turns, so that other load on the machine affects all of them equally.
            for (lock, [acquire, renew, release]) in &mut locks {
                acquire.take_async(lock.acquire()).await;
                renew.take_async(lock.renew()).await;
                release.take_async(lock.release()).await;
            }
        }
        locks.into_iter().map(|(_, samples)| samples).collect()
    }

    /// Times from the call of a release to the grant of a waiting contender.
    async fn hand_over(&self, kind: &LockKind, url: &str, effort: &Effort) -> Samples {
        let mut pair = [
            (self.open)(url, kind.name, "passed", TTL).await,
            (self.open)(url, kind.name, "passed", TTL).await,
        ];
        let mut spans = Samples::new("hand-over");
        pair[0].acquire().await;
        for round in 0..effort.hand_overs {
            let [holder, waiter] = &mut pair;
            let released = async {
                // At any time since a poll of the contender.
                tokio::time::sleep(
                    Duration::from_millis(150) + Duration::from_millis(37) * (round as u32 % 7),
                )
                .await;
                let released = Instant::now();
                holder.release().await;
                released
            };
            let granted = async {
                waiter.acquire().await;
                Instant::now()
            };
            let (released, granted) = tokio::join!(released, granted);
            spans.add(granted - released);
            pair.swap(0, 1);
        }
        pair[0].release().await;
        spans
    }
}

/// Number of repetitions.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Uncontended operations of each kind.
    pub rounds: usize,
    /// Releases to a waiting contender.
    pub hand_overs: usize,
    /// Kills of a holder.
    pub crashes: u32,
}

impl Effort {
    /// Few repetitions, or `TENURE_BENCH_EFFORT` times as many.
    pub fn from_environment() -> Self {
        let times =
            std::env::var("TENURE_BENCH_EFFORT").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
        Self { rounds: 200 * times, hand_overs: 7 * times, crashes: 6 * times as u32 }
    }
}

fn print_table(rows: &[ComparedRow]) {
    println!(
        "ttl {TTL:?}; every holder renews each third of it; hand-over: from a release to the grant of a waiting contender;"
    );
    println!(
        "after kill -9: from the last renewal to the next grant, in ttl (without a ttl: from the kill), median and slowest\n"
    );
    println!(
        "| lock | requests: acquire, renew, release | acquire p50 | renew p50 | release p50 | hand-over p50 | after kill -9 | paused beyond the ttl |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for row in rows {
        let ComparedRow { kind, calls: [acquire, renew, release], spans, handed_over, crash, pause } = row;
        let [acquired, renewed, released] = spans.each_ref().map(|samples| format!("{:.2?}", samples.at(50)));
        println!(
            "| {} | {acquire}, {renew}, {release} | {acquired} | {renewed} | {released} | {:.2?} | {} | {pause} |",
            kind.name,
            handed_over.at(50),
            crash.shown(kind),
        );
    }
    println!();
}

/// The ttl of every lock that has one.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// Longest time until all requests are answered.
const PATIENCE: Duration = Duration::from_secs(10);
