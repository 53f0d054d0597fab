//! Measures the speed of a store, and observes its clock.

mod clock_seen;
mod latency;
mod rate;

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::Clock;
use tenure_store::{Expect, Key, Put, Store, StoreError, StoreTime, Version};

pub use clock_seen::ClockSeen;
pub use latency::Latency;
pub use rate::WriteRate;

/// Measurements, made with one call at a time on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// Reads of existing entries.
    pub read: Latency,
    /// Conditional creates.
    pub create: Latency,
    /// Conditional replaces: the write of a renewal.
    pub replace: Latency,
    /// Rate of writes to one key.
    pub rate: WriteRate,
    /// The store's own clock.
    pub clock: ClockSeen,
}

/// Measures one store.
pub(crate) struct Stopwatch<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) samples: usize,
    seen: ClockSeen,
    nonce: u64,
}

impl<'a> Stopwatch<'a> {
    pub(crate) fn new(store: &'a dyn Store, clock: &'a Arc<dyn Clock>, samples: usize) -> Self {
        Self { store, clock, samples, seen: ClockSeen::default(), nonce: 0 }
    }

    /// Makes all creates, then all reads, then all replaces, so that no key is written twice within a short time.
    pub(crate) async fn latencies(&mut self) -> [Latency; 3] {
        let (mut creates, mut reads, mut replaces) =
            (CallTimes::default(), CallTimes::default(), CallTimes::default());
        let mut created: Vec<(Key, Version)> = Vec::new();
        for number in 0..self.samples {
            let key = key(&format!("latency/{number}"));
            if let Some((version, time)) = self.timed_put(&key, Expect::Absent, &mut creates).await {
                self.note_time(time);
                created.push((key, version));
            }
        }
        for (key, _) in &created {
            let began = self.clock.now();
            let answer = self.store.get(key).await;
            reads.note(self.clock.now().since(began), answer.is_ok());
            if let Ok(reading) = answer {
                self.note_time(reading.time);
            }
        }
        self.pause(self.store.guarantees().write_interval).await;
        for (key, version) in created {
            if let Some((_, time)) = self.timed_put(&key, Expect::Version(version), &mut replaces).await {
                self.note_time(time);
            }
        }
        [reads, creates, replaces].map(|timed| Latency::of(timed.taken, timed.failed))
    }

    /// Replaces one key repeatedly, as fast as possible.
    pub(crate) async fn rate(&mut self) -> WriteRate {
        let key = key("rate");
        let mut rate = WriteRate::default();
        let mut expect = Expect::Absent;
        let began = self.clock.now();
        for _ in 0..self.samples.min(RATE_WRITES_MAX) {
            let took = self.clock.now().since(began);
            if took > RATE_MAX {
                break;
            }
            let value = self.value();
            match self.store.put(&key, value.into(), expect.clone()).await {
                Ok(Put::Applied(applied)) => {
                    rate.writes += 1;
                    rate.took = self.clock.now().since(began);
                    expect = Expect::Version(applied.version);
                    continue;
                }
                Ok(Put::Conflict(_)) => {}
                Err(StoreError::Throttled(throttled)) => {
                    rate.throttled += 1;
                    let wait = throttled.after.unwrap_or(THROTTLED_PAUSE).min(RATE_MAX);
                    self.pause(wait).await;
                }
                Err(_) => rate.failed += 1,
            }
            // The write may have been applied, or a component on the way sent it twice.
            if let Ok(reading) = self.store.get(&key).await {
                expect = reading.entry.map_or(Expect::Absent, |entry| Expect::Version(entry.version));
            }
        }
        rate
    }

    pub(crate) fn seen(&self) -> ClockSeen {
        self.seen
    }

    async fn timed_put(
        &mut self,
        key: &Key,
        expect: Expect,
        timed: &mut CallTimes,
    ) -> Option<(Version, Option<StoreTime>)> {
        let value = self.value();
        let began = self.clock.now();
        let answer = self.store.put(key, value.into(), expect).await;
        let took = self.clock.now().since(began);
        timed.note(took, answer.is_ok());
        match answer {
            Ok(Put::Applied(applied)) => Some((applied.version, applied.time)),
            _ => None,
        }
    }

    fn note_time(&mut self, time: Option<StoreTime>) {
        self.seen.note(time, self.clock.wall());
    }

    /// A value of about the size of a record, different each time.
    fn value(&mut self) -> String {
        self.nonce += 1;
        format!("{{\"probe\":{},\"room\":\"{}\"}}", self.nonce, "r".repeat(RECORD_SIZE))
    }

    async fn pause(&self, wait: Duration) {
        if !wait.is_zero() {
            self.clock.sleep_until(self.clock.now() + wait).await;
        }
    }
}

/// Durations of calls.
#[derive(Debug, Default)]
struct CallTimes {
    taken: Vec<Duration>,
    failed: usize,
}

impl CallTimes {
    fn note(&mut self, took: Duration, answered: bool) {
        if answered {
            self.taken.push(took);
        } else {
            self.failed += 1;
        }
    }
}

fn key(name: &str) -> Key {
    Key::parse(name).expect("the names here are keys")
}

/// A record with its history has about a kilobyte.
const RECORD_SIZE: usize = 1_000;

/// Enough writes to show a limit of a few per second.
const RATE_WRITES_MAX: usize = 200;

/// Within this time a server that accepts one write per second has shown its limit.
const RATE_MAX: Duration = Duration::from_secs(5);

const THROTTLED_PAUSE: Duration = Duration::from_millis(100);
