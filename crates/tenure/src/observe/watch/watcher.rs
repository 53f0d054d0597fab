use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::machine::Standing;
use tenure_core::record::Nonce;
use tenure_store::{BoxFuture, Key, Prefix, Store};
use tokio::sync::mpsc;

use super::event::WatchEvent;
use super::hints::ChangeHints;
use super::holder_exits::HolderExits;
use super::keys::WatchedKeys;
use crate::clock::{Clock, Instant, call_timeout};
use crate::host::entropy::Entropy;
use crate::observe::observers::Observers;
use crate::observe::{Observation, keys};
use crate::{Error, ErrorKind};

/// Reads the keys under a prefix repeatedly, and reports their changes.
pub(crate) struct Watcher {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    observers: Arc<Observers>,
    prefix: Prefix,
    out: mpsc::Sender<WatchEvent>,
    keys: WatchedKeys,
    list_at: Instant,
    hints: ChangeHints,
    holder_exits: HolderExits,
}

type Look = (Key, Result<Observation, Error>);
type Listing = Result<Vec<Key>, Error>;

/// The reader of the reports is gone.
struct NoReader;

impl Watcher {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        observers: Arc<Observers>,
        prefix: Prefix,
        renewals: bool,
        out: mpsc::Sender<WatchEvent>,
    ) -> Self {
        let (keys, list_at) = (WatchedKeys::new(renewals), clock.now());
        let holder_exits = HolderExits::new(observers.host().clone(), Arc::clone(&clock));
        Self { store, clock, observers, prefix, out, keys, list_at, hints: ChangeHints::None, holder_exits }
    }

    /// Runs until the reader is gone.
    pub(crate) async fn run(mut self) {
        let out = self.out.clone();
        tokio::select! {
            biased;
            () = out.closed() => {}
            Err(NoReader) = self.watch() => {}
        }
    }

    async fn watch(&mut self) -> Result<Infallible, NoReader> {
        loop {
            let suspect = self.watch_until_failure().await?;
            self.recover(suspect).await?;
        }
    }

    /// Reads keys when they are due, as long as the store answers. Returns the key whose read failed, if it was one.
    async fn watch_until_failure(&mut self) -> Result<Option<Key>, NoReader> {
        let mut looks: FuturesUnordered<BoxFuture<'static, Look>> = FuturesUnordered::new();
        let mut listing: Option<BoxFuture<'static, Listing>> = None;
        let suspect = loop {
            // A source that is always ready must not starve the sockets and timers of the keeper's runtime.
            tokio::task::coop::consume_budget().await;
            let now = self.clock.now();
            if listing.is_none() && self.list_at <= now {
                self.hints.listen(&*self.store, &self.prefix);
                listing = Some(self.list());
            }
            while looks.len() < LOOKS_AT_ONCE
                && let Some(key) = self.keys.due(now)
            {
                looks.push(self.look(key));
            }
            let next_look = self.keys.next_due().filter(|_| looks.len() < LOOKS_AT_ONCE);
            let next_list = Some(self.list_at).filter(|_| listing.is_none());
            let wake = [next_look, next_list].into_iter().flatten().min();
            let asleep = wake.map(|at| self.clock.sleep_until(at));
            tokio::select! {
                biased;
                Some((key, seen)) = looks.next() => match seen {
                    Err(error) if error.kind() == ErrorKind::Unavailable && !self.keys.has_problem(&key) => {
                        break Some(key);
                    }
                    seen => self.on_look(&key, seen).await?,
                },
                keys = async { listing.as_mut().expect("guarded").await }, if listing.is_some() => {
                    listing = None;
                    match keys {
                        Ok(keys) => self.take_in(keys),
                        Err(_) => break None,
                    }
                }
                hint = self.hints.next() => self.on_hint(hint),
                Some(key) = self.holder_exits.next() => self.keys.look_again(&key, self.clock.now()),
                () = async { asleep.expect("guarded").await }, if asleep.is_some() => {}
            }
        };
        self.keys.give_up_looks(self.clock.now());
        Ok(suspect)
    }

    /// After a failed read: tests whether the store can be read at all, and waits until it can. A key that cannot be
    /// read although others can is reported as a problem of that key.
    async fn recover(&mut self, suspect: Option<Key>) -> Result<(), NoReader> {
        let suspects = self.keys.sample(suspect, LOOKS_AT_ONCE);
        let (mut since, mut pause) = (None, super::RETRY);
        let (keys, looks) = loop {
            match self.probe(&suspects).await {
                Ok(found) => break found,
                Err(error) if since.is_none() => {
                    let seen_at = self.clock.wall();
                    since = Some(seen_at);
                    self.send([WatchEvent::Unavailable { error, seen_at }]).await?;
                }
                Err(_) => {}
            }
            self.clock.sleep_until(self.clock.now() + pause).await;
            pause = (pause * 2).min(super::SLOW);
        };
        if let Some(since) = since {
            self.send([WatchEvent::Available { since, seen_at: self.clock.wall() }]).await?;
            self.keys.look_at_all(self.clock.now());
        }
        self.take_in(keys);
        for (key, seen) in looks {
            self.on_look(&key, seen).await?;
        }
        Ok(())
    }

    /// The keys, and the observations of some of them. An error if nothing can be read.
    async fn probe(&mut self, suspects: &[Key]) -> Result<(Vec<Key>, Vec<Look>), Error> {
        let keys = self.list().await?;
        let looks = FuturesUnordered::from_iter(suspects.iter().map(|key| self.look(key.clone())));
        let mut looks: Vec<Look> = looks.collect().await;
        let is_failed =
            |(_, seen): &Look| matches!(seen, Err(error) if error.kind() == ErrorKind::Unavailable);
        if !looks.is_empty() && looks.iter().all(is_failed) {
            let (_, first) = looks.swap_remove(0);
            return Err(first.expect_err("all failed"));
        }
        Ok((keys, looks))
    }

    fn list(&self) -> BoxFuture<'static, Listing> {
        let (clock, store) = (Arc::clone(&self.clock), Arc::clone(&self.store));
        let prefix = self.prefix.clone();
        Box::pin(async move { keys(&*clock, &*store, &store.to_string(), &prefix).await })
    }

    fn look(&self, key: Key) -> BoxFuture<'static, Look> {
        let (clock, store) = (Arc::clone(&self.clock), Arc::clone(&self.store));
        let observers = Arc::clone(&self.observers);
        let dead = self.keys.dead(&key);
        Box::pin(async move {
            let look = observe_surely(&observers, &*store, &key, dead);
            let seen = call_timeout(&*clock, LOOK_MAX, "reading a lease", look).await;
            (key, seen)
        })
    }

    /// Takes in a listing.
    fn take_in(&mut self, keys: Vec<Key>) {
        let now = self.clock.now();
        self.keys.take_in(keys, &self.prefix, now);
        self.list_at = now + super::SLOW;
    }

    /// A key may have changed. `None` if the subscription has ended: the next listing subscribes again.
    fn on_hint(&mut self, hint: Option<()>) {
        let Some(()) = hint else { return self.hints = ChangeHints::None };
        let now = self.clock.now();
        self.keys.look_at_all(now);
        self.list_at = now;
        let calls = u32::try_from(self.keys.len()).unwrap_or(u32::MAX).saturating_add(1);
        let pause = CALL_PAUSE.saturating_mul(calls).min(super::SLOW);
        self.hints.pause(self.clock.sleep_until(now + pause));
    }

    async fn on_look(&mut self, key: &Key, seen: Result<Observation, Error>) -> Result<(), NoReader> {
        let (_, jitter) = Entropy.step();
        let events = match seen {
            Ok(seen) => {
                self.holder_exits.expect(&seen);
                self.keys.saw(seen, self.clock.now(), jitter)
            }
            Err(error) => self.keys.failed(key, error, self.clock.now(), self.clock.wall()),
        };
        self.send(events).await
    }

    async fn send(&mut self, events: impl IntoIterator<Item = WatchEvent>) -> Result<(), NoReader> {
        for event in events {
            self.out.send(event).await.map_err(|_| NoReader)?;
        }
        Ok(())
    }
}

/// Observes a key. If its holder seems dead, the record is read again: an orderly release vacates the record before it
/// removes the witness, and both may have happened since the first read. `dead` is the nonce of a death that is known
/// already.
pub(crate) async fn observe_surely(
    observers: &Observers,
    store: &dyn Store,
    key: &Key,
    mut dead: Option<Nonce>,
) -> Result<Observation, Error> {
    for _ in 0..CONFIRMATIONS_MAX {
        let seen = observers.observe(store, key).await?;
        let found =
            seen.record.as_ref().filter(|_| seen.standing == Standing::Dead).map(|record| record.nonce);
        if found.is_none() || found == dead {
            return Ok(seen);
        }
        dead = found;
    }
    observers.observe(store, key).await
}

/// Number of repeated reads when each shows another dead holder.
const CONFIRMATIONS_MAX: u32 = 4;

/// Number of concurrent reads, as in a listing.
const LOOKS_AT_ONCE: usize = 16;

/// Longest time for a read before the store counts as unavailable.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// Pause per key after a hint. A hint does not name a key, so all are read. The pause limits a busy store's hints to a
/// hundred calls per second, or to the number of calls without hints.
const CALL_PAUSE: Duration = Duration::from_millis(10);
