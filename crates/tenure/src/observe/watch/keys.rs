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
use crate::observe::Observation;

/// The keys that are watched: what was reported of each, and when it is looked at next.
#[derive(Debug)]
pub(crate) struct Keys {
    renewals: bool,
    all: BTreeMap<Key, Watched>,
    queue: BTreeSet<(Instant, Key)>,
    /// Whether they were ever listed: what is found later is new.
    listed: bool,
}

#[derive(Debug)]
struct Watched {
    /// `None` until it could be read.
    reported: Option<Reported>,
    next: Next,
    problem: Option<Problem>,
}

/// When a key is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    At(Instant),
    /// It is being looked at. `again` if it may have changed since.
    Now {
        again: bool,
    },
    /// When a listing has it.
    Listed,
}

/// A key cannot be shown.
#[derive(Debug)]
struct Problem {
    /// What was reported.
    sentence: String,
    /// How long after the next failure it is tried again.
    pause: Duration,
}

impl Keys {
    pub(crate) fn new(renewals: bool) -> Self {
        Self { renewals, all: BTreeMap::new(), queue: BTreeSet::new(), listed: false }
    }

    /// How many there are, those that were there and are gone included.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// A key that is to be looked at now, which the caller does.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Key> {
        let (at, key) = self.queue.first()?;
        if *at > now {
            return None;
        }
        let key = key.clone();
        self.set(&key, Next::Now { again: false });
        Some(key)
    }

    /// When the next look is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// All of them may have changed.
    pub(crate) fn look_at_all(&mut self, now: Instant) {
        let keys: Vec<Key> = self.all.keys().cloned().collect();
        for key in &keys {
            self.look_again(key, now);
        }
    }

    /// Looks that were under way are not any more.
    pub(crate) fn give_up_looks(&mut self, now: Instant) {
        let looked_at = |(_, watched): &(&Key, &Watched)| matches!(watched.next, Next::Now { .. });
        let keys: Vec<Key> = self.all.iter().filter(looked_at).map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.set(key, Next::At(now));
        }
    }

    /// These are the keys that there are.
    pub(crate) fn take_in(&mut self, keys: Vec<Key>, prefix: &Prefix, now: Instant) {
        let listed: BTreeSet<Key> = match Key::parse(prefix.as_str()) {
            // Something is reported also of a key that is not there.
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

    /// The suspect, and some others to compare it with.
    pub(crate) fn sample(&self, suspect: Option<Key>, max: usize) -> Vec<Key> {
        let others = self.all.iter().filter(|(_, watched)| watched.next != Next::Listed);
        let others = others.map(|(key, _)| key).filter(|key| Some(*key) != suspect.as_ref()).cloned();
        suspect.clone().into_iter().chain(others).take(max).collect()
    }

    /// Whether it was reported already that this key cannot be shown.
    pub(crate) fn has_problem(&self, key: &Key) -> bool {
        self.all.get(key).is_some_and(|watched| watched.problem.is_some())
    }

    /// The nonce of the record whose holder was reported to have died.
    pub(crate) fn dead(&self, key: &Key) -> Option<Nonce> {
        self.all.get(key)?.reported.as_ref()?.dead()
    }

    /// Takes in a look, and gives what there is to tell.
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

    /// Takes in that a key cannot be shown, and gives what there is to tell.
    pub(crate) fn failed(
        &mut self,
        key: &Key,
        error: Error,
        now: Instant,
        seen_at: WallTime,
    ) -> Vec<WatchEvent> {
        let Some(watched) = self.all.get_mut(key) else { return Vec::new() };
        let sentence = error.to_string();
        let (known, pause) = match watched.problem.take() {
            Some(problem) => (problem.sentence == sentence, problem.pause),
            None => (false, RETRY),
        };
        watched.problem = Some(Problem { sentence, pause: (pause * 2).min(SLOW) });
        self.looked(key, Next::At(now + pause), now);
        if known { Vec::new() } else { vec![WatchEvent::Problem { key: key.clone(), error, seen_at }] }
    }

    /// A look is over.
    fn looked(&mut self, key: &Key, next: Next, now: Instant) {
        let again = self.all.get(key).map(|watched| watched.next) == Some(Next::Now { again: true });
        self.set(key, if again { Next::At(now) } else { next });
    }

    /// Looks again at a key that may have changed. Those that are gone are found by the listing.
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

/// How long after this a key is looked at again, whatever is hinted; `None` if there is nothing to look at.
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

/// How many keys are remembered that are gone, beside those that are there: beyond that, terms that were reported may be reported
/// again when such a key comes back.
const KEYS_MAX: usize = 100_000;
