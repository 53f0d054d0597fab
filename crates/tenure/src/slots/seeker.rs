use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, TryStreamExt};
use tenure_core::Drift;
use tenure_core::machine::{Denied, Patience, Remaining, Standing};
use tenure_core::record::Record;
use tenure_core::slots::{
    GroupListing, GroupSize, SizeAnswer, SlotEffect, SlotEvent, SlotHolder, SlotInput, SlotMachine,
    SlotParams, SlotSight,
};
use tenure_store::{BoxFuture, Key, Prefix, Reason, Store, StoreError};
use tokio_util::sync::CancellationToken;

use super::outlived_slots::OutlivedSlots;
use super::size_key::SizeKey;
use super::slot_hints::SlotHints;
use super::{GroupFull, HeldSlot, Slot};
use crate::clock::{Clock, Instant, call_timeout, timeout};
use crate::host::entropy::Entropy;
use crate::host::simulation::{Duty, does};
use crate::keeper::shut_down_error;
use crate::lease::Request;
use crate::observe::{Observation, Observers};
use crate::{Error, ErrorKind, Lease};

/// The driver of one contender for a slot, on the keeper's runtime.
pub(super) struct SlotSeeker {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    observers: Arc<Observers>,
    group: Key,
    /// Prefix of the keys of the group.
    prefix: Prefix,
    /// The keys of the slots, by index.
    keys: Vec<Key>,
    request: Request,
    size_key: SizeKey,
    params: SlotParams,
    machine: SlotMachine,
    calls: FuturesUnordered<BoxFuture<'static, SlotAnswer>>,
    hints: Option<SlotHints>,
    outlived: OutlivedSlots,
    asleep: Option<(Instant, BoxFuture<'static, ()>)>,
    /// The granted slot, until the caller has it.
    lease: Option<Lease>,
    /// The error of the latest failed call.
    last_error: Option<Error>,
}

/// A call of the machine that has ended.
enum SlotAnswer {
    Size { sent: Instant, size: Result<Option<GroupSize>, Error> },
    Tried { index: u16, granted: Result<Lease, Error> },
    Read { index: u16, seen: Result<Observation, Error> },
    Listed { sent: Instant, listing: Option<GroupListing> },
}

impl SlotSeeker {
    pub(super) fn new(
        store: Arc<dyn Store>,
        group: Key,
        request: Request,
        observers: Arc<Observers>,
        size_key: SizeKey,
        params: SlotParams,
    ) -> Result<Self, Error> {
        let keys = (0..params.size.get()).map(|index| Key::group_slot(&group, index));
        let clock = Arc::clone(&request.connection().clock);
        Ok(Self {
            outlived: OutlivedSlots::new(Arc::clone(&clock), request.heeded_tree_limit()),
            clock,
            keys: keys.collect::<Result<_, _>>()?,
            store,
            observers,
            prefix: Prefix::of_group(&group)?,
            group,
            request,
            size_key,
            machine: SlotMachine::new(params.clone()),
            params,
            calls: FuturesUnordered::new(),
            hints: None,
            asleep: None,
            lease: None,
            last_error: None,
        })
    }

    /// Runs until a slot is granted or the wait is over. Ends when the caller has cancelled, or at a shutdown.
    pub(super) async fn run(mut self, cancelled: CancellationToken) -> Result<Slot, Error> {
        let connection = self.request.connection().clone();
        let closing = connection.keeper.closing();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => {
                if !does(Duty::ReleaseCancelledSlot) {
                    std::mem::forget(self.lease.take());
                }
                // No caller receives this.
                Err(connection.gone_error())
            }
            () = closing.cancelled() => Err(shut_down_error(&self.keys[0], &connection.store)),
            sought = self.seek() => sought,
        }
    }

    async fn seek(&mut self) -> Result<Slot, Error> {
        let mut inputs = VecDeque::from([SlotInput::Start]);
        loop {
            while let Some(input) = inputs.pop_front() {
                let (_, jitter) = Entropy.step();
                let mut effects = Vec::new();
                self.machine.step(self.clock.now(), jitter, input, &mut effects);
                for effect in effects {
                    if let Some(event) = self.execute(effect).await {
                        return self.outcome(event);
                    }
                }
            }
            tokio::select! {
                // Hints come last: a stream that is always ready must not delay answers and the timer.
                biased;
                Some(ended) = self.calls.next() => inputs.push_back(self.answer(ended)?),
                () = async { self.asleep.as_mut().expect("guarded").1.as_mut().await }, if self.asleep.is_some() => {
                    self.asleep = None;
                    inputs.push_back(self.if_held(SlotInput::Wake));
                }
                Some(index) = self.outlived.next_end() => inputs.push_back(SlotInput::Hinted { index }),
                Some(index) = next_hint(&mut self.hints) => inputs.push_back(SlotInput::Hinted { index }),
            }
        }
    }

    // ── effects ───────────────────────────────────────────────────────────────────────────────────────────────────

    async fn execute(&mut self, effect: SlotEffect) -> Option<SlotEvent> {
        match effect {
            SlotEffect::ReadSize => {
                let (clock, limit) = (Arc::clone(&self.clock), self.params.timing.timeout());
                let what = format!("reading the number of slots of {}", self.group);
                self.call_size(move |key| {
                    Box::pin(async move { call_timeout(&*clock, limit, &what, key.read()).await })
                });
            }
            SlotEffect::CreateSize(size) => {
                self.call_size(move |key| Box::pin(async move { key.create(size).await.map(Some) }));
            }
            SlotEffect::Try(index) => self.try_slot(index, Patience::Once),
            SlotEffect::Wait { index, until } => self.try_slot(index, Patience::Until(until)),
            SlotEffect::Read(index) => self.read(index),
            SlotEffect::List => self.list(),
            SlotEffect::Listen => {
                let hints = SlotHints::listen(&*self.store, &self.clock, &self.observers, &self.keys);
                self.hints = Some(hints).filter(|_| does(Duty::HearSlotHints));
            }
            SlotEffect::Release(_) => {
                if let Some(lease) = self.lease.take() {
                    // If it fails, the slot runs out by its ttl.
                    let _ = lease.release().await;
                }
            }
            SlotEffect::SleepUntil(at) => self.asleep = Some((at, self.clock.sleep_until(at))),
            SlotEffect::Tell(event) => return Some(event),
        }
        None
    }

    fn call_size(&self, call: impl FnOnce(SizeKey) -> BoxFuture<'static, Result<Option<GroupSize>, Error>>) {
        let (sent, size) = (self.clock.now(), call(self.size_key.clone()));
        self.calls.push(Box::pin(async move { SlotAnswer::Size { sent, size: size.await } }));
    }

    fn try_slot(&self, index: u16, patience: Patience) {
        let key = self.keys[usize::from(index)].clone();
        let recalled = self.observers.recalled(&key);
        let request = self.request.with_key(key).with_tree_limit(self.outlived.remaining(index));
        self.calls.push(Box::pin(async move {
            SlotAnswer::Tried { index, granted: request.acquire_recalling(patience, recalled).await }
        }));
    }

    fn read(&self, index: u16) {
        let (store, observers) = (Arc::clone(&self.store), Arc::clone(&self.observers));
        let (clock, limit) = (Arc::clone(&self.clock), self.params.timing.timeout());
        let key = self.keys[usize::from(index)].clone();
        self.calls.push(Box::pin(async move {
            let seen = observers.observe(&*store, &key);
            let seen = call_timeout(&*clock, limit, &format!("reading {}", key.titled()), seen).await;
            SlotAnswer::Read { index, seen }
        }));
    }

    fn list(&self) {
        let (store, clock, sent) = (Arc::clone(&self.store), Arc::clone(&self.clock), self.clock.now());
        let (prefix, size_key) = (self.prefix.clone(), self.size_key.key().clone());
        let limit = self.params.timing.timeout();
        self.calls.push(Box::pin(async move {
            let listed = async {
                let listed: Result<Vec<_>, _> = store.list_stamped(&prefix)?.try_collect().await;
                Some(GroupListing::new(&size_key, listed.ok()?))
            };
            SlotAnswer::Listed { sent, listing: timeout(&*clock, limit, listed).await.flatten() }
        }));
    }

    // ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// The input for an answer; an error that no retry changes ends the wait.
    fn answer(&mut self, ended: SlotAnswer) -> Result<SlotInput, Error> {
        match ended {
            SlotAnswer::Size { sent, size } => {
                let answer = match size {
                    Ok(Some(_)) if !does(Duty::CompareGroupSize) => SizeAnswer::Is(self.params.size),
                    Ok(size) => size.map_or(SizeAnswer::Absent, SizeAnswer::Is),
                    Err(error) => {
                        self.note_failure(error)?;
                        SizeAnswer::Unknown
                    }
                };
                Ok(self.if_held(SlotInput::Size { sent, answer }))
            }
            SlotAnswer::Tried { index, granted: Ok(lease) } => {
                self.lease = Some(lease);
                Ok(SlotInput::Granted { index })
            }
            SlotAnswer::Tried { index, granted: Err(error) } => self.not_granted(index, error),
            SlotAnswer::Read { index, seen: Ok(seen) } => {
                if let Some(hints) = &mut self.hints {
                    hints.expect(&seen);
                }
                self.outlived.saw(index, seen.record.as_ref());
                if let Standing::Foreign(_) = seen.standing {
                    self.last_error = seen.clone().into_record(&self.request.connection().store).err();
                }
                Ok(SlotInput::Seen { index, sight: self.sight(seen) })
            }
            // The slots can be read without listings, also where the store refuses them.
            SlotAnswer::Listed { sent, listing } => Ok(match listing {
                Some(listing) => SlotInput::Listed { sent, listing },
                None => SlotInput::NotListed,
            }),
            SlotAnswer::Read { index, seen: Err(error) } => {
                self.note_failure(error)?;
                Ok(SlotInput::Failed { index })
            }
        }
    }

    fn not_granted(&mut self, index: u16, error: Error) -> Result<SlotInput, Error> {
        let sight = match error.denied() {
            Some(Denied::Held(held)) => {
                self.outlived.saw(index, Some(&held.record));
                SlotSight::Held { record: Arc::clone(&held.record), due: self.due(&held.record) }
            }
            Some(Denied::Outlived { record, .. }) => {
                self.outlived.insert(index, record);
                return Ok(SlotInput::Denied { index });
            }
            Some(Denied::Unstoppable(_)) => return Ok(SlotInput::Denied { index }),
            Some(
                Denied::Foreign(_) | Denied::Closed(_) | Denied::WentBack { .. } | Denied::TokensExhausted,
            ) => {
                self.last_error = Some(error);
                SlotSight::Unusable
            }
            Some(Denied::Unavailable(_) | Denied::Withheld(_) | Denied::Refused(Reason::Unreachable)) => {
                self.last_error = Some(error);
                return Ok(SlotInput::Failed { index });
            }
            _ => return Err(error),
        };
        Ok(SlotInput::Seen { index, sight })
    }

    /// Keeps the error of a call that may succeed later, and returns any other.
    fn note_failure(&mut self, error: Error) -> Result<(), Error> {
        let refused = match std::error::Error::source(&error).and_then(|source| source.downcast_ref()) {
            Some(StoreError::Refused(refused)) => Some(refused.reason),
            Some(StoreError::Unknown(_) | StoreError::Throttled(_)) | None => match error.denied() {
                Some(Denied::Refused(reason)) => Some(*reason),
                _ => None,
            },
        };
        let is_final = refused.is_some_and(|reason| reason != Reason::Unreachable);
        let is_withheld = matches!(error.denied(), Some(Denied::Withheld(_)));
        if is_final || (error.kind() != ErrorKind::Unavailable && !is_withheld) {
            return Err(error);
        }
        self.last_error = Some(error);
        Ok(())
    }

    fn sight(&self, seen: Observation) -> SlotSight {
        match (&seen.standing, seen.record) {
            (standing, _) if standing.is_free() => SlotSight::Free,
            (Standing::Closed | Standing::Foreign(_), _) | (_, None) => SlotSight::Unusable,
            (standing, Some(record)) => {
                let remaining = standing.remaining().map(|remaining| self.clock.now() + remaining.at_most);
                SlotSight::Held { due: remaining.unwrap_or_else(|| self.due(&record)), record }
            }
        }
    }

    /// Latest instant at which a version that was just seen has run out.
    fn due(&self, record: &Record) -> Instant {
        let ttl = record.ttl.unwrap_or(self.params.timing.ttl());
        self.clock.now() + Drift::DEFAULT.lengthen(ttl.as_duration())
    }

    /// The input, unless the granted slot was lost before it.
    fn if_held(&mut self, input: SlotInput) -> SlotInput {
        match self.lease.take_if(|lease| lease.check().is_err()) {
            Some(_) => SlotInput::Lost,
            None => input,
        }
    }

    /// The holders, and those whose slot has run out while their work still runs, by index.
    fn with_outlived(&self, holders: Vec<SlotHolder>) -> Vec<HeldSlot> {
        let now = self.clock.now();
        let held = holders.into_iter().map(|SlotHolder { index, record, due }| HeldSlot {
            index,
            record,
            remaining: Remaining::new(due.since(now), true),
        });
        let mut held: Vec<_> = held.collect();
        for index in 0..self.params.size.get() {
            if let Some(record) = self.outlived.record(index)
                && !held.iter().any(|slot| slot.index == index)
            {
                let remaining = Remaining::new(Duration::ZERO, true);
                held.push(HeldSlot { index, record: Arc::clone(record), remaining });
            }
        }
        held.sort_by_key(|slot| slot.index);
        held
    }

    fn outcome(&mut self, event: SlotEvent) -> Result<Slot, Error> {
        let store = &self.request.connection().store;
        let group = self.group.clone();
        match (event, self.lease.take()) {
            (SlotEvent::Believe { index }, Some(lease)) => Ok(Slot::new(lease, group, index)),
            (SlotEvent::Full { holders }, _) => {
                let holders = self.with_outlived(holders);
                if holders.is_empty()
                    && let Some(error) = self.last_error.take()
                {
                    return Err(error);
                }
                Err(GroupFull { group, slots: self.params.size.get(), holders }.into_error(store))
            }
            (SlotEvent::Refused { own, stored, resized }, _) => {
                let what = if resized { "was resized to" } else { "has" };
                let sentence = format!(
                    "group {group} on {store} {what} {stored} slot{}, and this contender expects {own}: use the same \
                     number everywhere, or resize the group",
                    if stored.get() == 1 { "" } else { "s" }
                );
                Err(Error::new(ErrorKind::Invalid, sentence))
            }
            (SlotEvent::Believe { .. } | SlotEvent::Unavailable, _) => {
                Err(self.last_error.take().unwrap_or_else(|| {
                    let sentence =
                        format!("no slot of {group} on {store} could be granted in time: try again later");
                    Error::new(ErrorKind::Unavailable, sentence)
                }))
            }
        }
    }
}

/// The next hint; never without a subscription.
async fn next_hint(hints: &mut Option<SlotHints>) -> Option<u16> {
    hints.as_mut()?.next().await
}
