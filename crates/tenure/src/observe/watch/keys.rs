use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::machine::{Rules, Standard};
use tenure_core::record::Nonce;
use tenure_store::{Key, Prefix};

use super::changes::Reported;
use super::event::WatchEvent;
use super::{RETRY, SLOW};
use crate::Error;
use crate::clock::{Instant, WallTime};
use crate::observe::{Observation, ReportedCauses};

/// The watched keys: the reported state of each, and the time of its next read.
#[derive(Debug)]
pub(crate) struct WatchedKeys {
    renewals: bool,
    all: BTreeMap<Key, Watched>,
    queue: BTreeSet<(Instant, Key)>,
    /// True after the first listing: keys found later are new.
    listed: bool,
}

#[derive(Debug)]
struct Watched {
    /// `None` until it could be read.
    reported: Option<Reported>,
    next: Next,
    problem: Option<Problem>,
}

/// Time of the next read of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    At(Instant),
    /// A read is pending. `again` if the key may have changed since.
    Now {
        again: bool,
    },
    /// When a listing contains it.
    Listed,
}

/// A key that cannot be read.
#[derive(Debug)]
struct Problem {
    causes: ReportedCauses,
    /// Delay of the retry after the next failure.
    pause: Duration,
}

impl WatchedKeys {
    pub(crate) fn new(renewals: bool) -> Self {
        Self { renewals, all: BTreeMap::new(), queue: BTreeSet::new(), listed: false }
    }

    /// Number of keys, including deleted ones.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// A key that is due for a read by the caller.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Key> {
        let (at, key) = self.queue.first()?;
        if *at > now {
            return None;
        }
        let key = key.clone();
        self.set(&key, Next::Now { again: false });
        Some(key)
    }

    /// Time of the next read.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Marks all keys as possibly changed.
    pub(crate) fn look_at_all(&mut self, now: Instant) {
        let keys: Vec<Key> = self.all.keys().cloned().collect();
        for key in &keys {
            self.look_again(key, now);
        }
    }

    /// Cancels all pending reads.
    pub(crate) fn give_up_looks(&mut self, now: Instant) {
        let looked_at = |(_, watched): &(&Key, &Watched)| matches!(watched.next, Next::Now { .. });
        let keys: Vec<Key> = self.all.iter().filter(looked_at).map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.set(key, Next::At(now));
        }
    }

    /// Takes in a listing.
    pub(crate) fn take_in(&mut self, keys: Vec<Key>, prefix: &Prefix, now: Instant) {
        let listed: BTreeSet<Key> = match Key::parse(prefix.as_str()) {
            // A key without a record is reported, too.
            Ok(named) if !self.listed && keys.is_empty() => [named].into(),
            _ => keys.into_iter().collect(),
        };
        if self.all.len() > KEYS_MAX {
            self.all.retain(|key, watched| watched.next != Next::Listed || listed.contains(key));
        }
        let gone: Vec<Key> = self.all.keys().filter(|key| !listed.contains(*key)).cloned().collect();
        for key in &gone {
            self.look_again(key, now);
        }
        for key in listed {
            match self.all.get(&key).map(|watched| watched.next) {
                None => {
                    let reported = self.listed.then(Reported::absent);
                    self.all.insert(key.clone(), Watched { reported, next: Next::Listed, problem: None });
                    self.set(&key, Next::At(now));
                }
                Some(Next::Listed) => self.set(&key, Next::At(now)),
                Some(Next::At(_) | Next::Now { .. }) => {}
            }
        }
        self.listed = true;
    }

    /// The suspect, and some other keys to compare it with.
    pub(crate) fn sample(&self, suspect: Option<Key>, max: usize) -> Vec<Key> {
        let others = self.all.iter().filter(|(_, watched)| watched.next != Next::Listed);
        let others = others.map(|(key, _)| key).filter(|key| Some(*key) != suspect.as_ref()).cloned();
        suspect.clone().into_iter().chain(others).take(max).collect()
    }

    /// True if the watch has reported that this key cannot be read.
    pub(crate) fn has_problem(&self, key: &Key) -> bool {
        self.all.get(key).is_some_and(|watched| watched.problem.is_some())
    }

    /// The nonce of the record whose holder was reported dead.
    pub(crate) fn dead(&self, key: &Key) -> Option<Nonce> {
        self.all.get(key)?.reported.as_ref()?.dead()
    }

    /// Takes in an observation, and returns the reports.
    pub(crate) fn saw(&mut self, seen: Observation, now: Instant, jitter: u32) -> Vec<WatchEvent> {
        let Some(watched) = self.all.get_mut(&seen.key) else { return Vec::new() };
        let key = seen.key.clone();
        let next = look_after(&seen, jitter).map_or(Next::Listed, |span| Next::At(now + span));
        let had_problem = watched.problem.take().is_some();
        let changes = match &mut watched.reported {
            Some(reported) => reported.update(&seen, self.renewals),
            None => Vec::new(),
        };
        let events = match &watched.reported {
            Some(_) if !changes.is_empty() => changes.into_iter().map(WatchEvent::Changed).collect(),
            Some(_) if !had_problem => Vec::new(),
            _ => {
                watched.reported.get_or_insert_with(|| Reported::of(&seen));
                vec![WatchEvent::Stands(seen)]
            }
        };
        self.looked(&key, next, now);
        events
    }

    /// Takes in a failed read of one key, and returns the reports.
    pub(crate) fn failed(
        &mut self,
        key: &Key,
        error: Error,
        now: Instant,
        seen_at: WallTime,
    ) -> Vec<WatchEvent> {
        let Some(watched) = self.all.get_mut(key) else { return Vec::new() };
        let problem = watched
            .problem
            .get_or_insert_with(|| Problem { causes: ReportedCauses::default(), pause: RETRY });
        let is_due = problem.causes.is_due(&error, now);
        let pause = problem.pause;
        problem.pause = (pause * 2).min(SLOW);
        self.looked(key, Next::At(now + pause), now);
        if is_due { vec![WatchEvent::Problem { key: key.clone(), error, seen_at }] } else { Vec::new() }
    }

    /// Ends a pending read.
    fn looked(&mut self, key: &Key, next: Next, now: Instant) {
        let again = self.all.get(key).map(|watched| watched.next) == Some(Next::Now { again: true });
        self.set(key, if again { Next::At(now) } else { next });
    }

    /// Schedules a read of a key that may have changed. The listing finds deleted keys.
    pub(crate) fn look_again(&mut self, key: &Key, now: Instant) {
        match self.all.get(key).map(|watched| watched.next) {
            Some(Next::At(_)) => self.set(key, Next::At(now)),
            Some(Next::Now { .. }) => self.set(key, Next::Now { again: true }),
            Some(Next::Listed) | None => {}
        }
    }

    fn set(&mut self, key: &Key, next: Next) {
        let Some(watched) = self.all.get_mut(key) else { return };
        if let Next::At(before) = std::mem::replace(&mut watched.next, next) {
            self.queue.remove(&(before, key.clone()));
        }
        if let Next::At(at) = next {
            self.queue.insert((at, key.clone()));
        }
    }
}

/// Time until the next read of a key without a hint; `None` if there is nothing to read.
fn look_after(seen: &Observation, jitter: u32) -> Option<Duration> {
    if Reported::of(seen).is_absent() {
        return None;
    }
    let lasts = seen.standing.remaining().zip(seen.record.as_ref().and_then(|record| record.ttl));
    Some(match lasts {
        Some((remaining, ttl)) => Standard.poll_after(ttl, jitter).min(remaining.at_most),
        None => SLOW,
    })
}

/// Maximum number of deleted keys to remember. Beyond it, a key that comes back may have its terms reported again.
const KEYS_MAX: usize = 100_000;
