use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tenure_core::Token;
use tenure_fence::{FenceError, FencingToken};
use tenure_store::{Applied, Expect, Put, Reading, Reason, Store, StoreError, StoreFuture, Write};
use tokio_util::sync::CancellationToken;

use super::machine::{Act, Input, NextCall, Sighting, ValueMachine, went_back};
use super::pace::{Pace, transfer};
use super::rules::Standard;
use super::{ValueEnvelope, ValueState};
use crate::clock::{Clock, timeout};
use crate::host::entropy::Entropy;
use crate::keeper::calls::is_new;
use crate::keeper::{WeakKeeper, next_write};
use crate::trust::breach::Breach;

/// One operation on a fenced value: it turns the steps of the machine into calls on the store, with timeouts and pauses.
#[derive(Clone)]
pub(super) struct ValueCall {
    pub(super) value: Arc<ValueState>,
    pub(super) clock: Arc<dyn Clock>,
    /// Cancelled when the caller has dropped its future: no further call begins.
    pub(super) dropped: CancellationToken,
    /// True once a write was sent.
    pub(super) sent: Arc<AtomicBool>,
    /// The keeper, if there is one: it ends the trust in a store that broke a promise.
    pub(super) keeper: Option<WeakKeeper>,
}

impl ValueCall {
    /// Writes or seals.
    pub(super) async fn change(
        self,
        store: Arc<dyn Store>,
        offered: FencingToken,
        act: Act,
    ) -> Result<(), FenceError> {
        // Two writes of one handle would only get in each other's way.
        let _turn = self.value.turn.lock().await;
        let (highest, latest) = self.value.with(|memory| (memory.highest.clone(), memory.latest.clone()));
        let mut pace = Pace::new(self.clock.now());
        if let Act::Write(content) = &act {
            pace.allow(content.len());
        }
        let machine = ValueMachine::new(Standard, Arc::clone(&self.value.resource), offered, act);
        let mut machine = machine.knowing(highest, latest);
        let mut input = Input::Start;
        loop {
            input = match machine.step(Entropy.nonce(), input) {
                NextCall::Done(result) => {
                    let sighting = result?;
                    self.value.with(|memory| memory.saw(sighting));
                    return Ok(());
                }
                NextCall::Read => {
                    if let Err(why) = self.pause(&mut pace).await {
                        return Err(machine.gives_up(why));
                    }
                    let answer = self.read(&*store).await;
                    pace.learn(answer.as_ref().err());
                    if let Ok(Reading { entry: Some(entry), .. }) = &answer {
                        pace.allow(entry.value.len());
                    }
                    Input::Read(answer)
                }
                NextCall::Write { value, expect } => {
                    let answer = self.write(&*store, value, expect.clone()).await;
                    self.check(&answer, &expect);
                    pace.learn(answer.as_ref().err());
                    if !matches!(answer, Ok(Put::Applied(_))) {
                        // The next write reads first, also if this call ends here.
                        self.value.with(|memory| memory.latest = None);
                    }
                    if matches!(answer, Ok(Put::Conflict(_))) {
                        pace.count_conflict();
                    }
                    Input::Written(answer)
                }
            };
        }
    }

    /// Reads the entry; `None` if there is none.
    pub(super) async fn look(self, store: Arc<dyn Store>) -> Result<Option<ValueEnvelope>, FenceError> {
        let resource = &self.value.resource;
        let mut pace = Pace::new(self.clock.now());
        loop {
            let highest = self.value.with(|memory| memory.highest.clone());
            let answer = self.read(&*store).await;
            pace.learn(answer.as_ref().err());
            let entry = match answer {
                Ok(reading) => reading.entry,
                Err(StoreError::Refused(refused)) => {
                    return Err(FenceError::refused(&**resource, refused.reason, refused.source));
                }
                Err(error) => {
                    if self.pause(&mut pace).await.is_err() {
                        return Err(FenceError::refused(&**resource, Reason::Unreachable, error));
                    }
                    continue;
                }
            };
            let shown = entry.map(|entry| match ValueEnvelope::decode(&entry.value) {
                Ok(envelope) => Ok((entry.version, envelope)),
                Err(flaw) => {
                    Err(FenceError::Foreign { resource: resource.to_string(), what: flaw.to_string() })
                }
            });
            let shown = shown.transpose()?;
            let token = shown.as_ref().map_or(Token::ZERO, |(_, envelope)| envelope.header.mark.token());
            if let Some(highest) = highest.filter(|highest| token < highest.token()) {
                return Err(went_back(resource, &highest, highest.token(), token));
            }
            return Ok(shown.map(|(version, envelope)| {
                let header = envelope.header.clone();
                self.value.with(|memory| memory.saw(Sighting { version, header }));
                envelope
            }));
        }
    }

    async fn read(&self, store: &dyn Store) -> Result<Reading, StoreError> {
        self.call(call_max(self.value.guarantees.value_max), store.get(&self.value.key)).await
    }

    async fn write(&self, store: &dyn Store, value: Bytes, expect: Expect) -> Result<Put, StoreError> {
        let interval = self.value.guarantees.write_interval;
        let now = self.clock.now();
        let wait = self.value.with(|memory| next_write(&mut memory.next_write_at, interval, now));
        if !wait.is_zero() {
            tokio::select! {
                biased;
                () = self.dropped.cancelled() => {}
                () = self.clock.sleep_until(now + wait) => {}
            }
        }
        if self.dropped.is_cancelled() {
            return Err(StoreError::refused(Reason::Unreachable, NOT_WANTED));
        }
        self.sent.store(true, Ordering::SeqCst);
        let limit = call_max(value.len());
        self.call(limit, store.write(&self.value.key, Write::new(value, expect))).await
    }

    /// Waits for the answer to a call, as long as the caller wants it.
    async fn call<T>(&self, limit: Duration, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
        tokio::select! {
            biased;
            answer = timeout(&*self.clock, limit, call) => {
                answer.unwrap_or_else(|| Err(StoreError::unknown("no answer within the timeout")))
            }
            () = self.dropped.cancelled() => Err(StoreError::unknown(NOT_WANTED)),
        }
    }

    /// Reports a write that got no new version. The machine does not believe it.
    fn check(&self, answer: &Result<Put, StoreError>, expect: &Expect) {
        if let (Some(keeper), Ok(Put::Applied(Applied { version, .. }))) = (&self.keeper, answer)
            && !is_new(version, expect)
        {
            keeper.suspect(&self.value.key, Some(Breach::OldVersion(version.clone())));
        }
    }

    /// Waits before the next read. Fails if the operation is to end instead.
    async fn pause(&self, pace: &mut Pace) -> Result<(), &'static str> {
        let now = self.clock.now();
        let pause = pace.next(now)?;
        if !pause.is_zero() {
            tokio::select! {
                biased;
                () = self.dropped.cancelled() => {}
                () = self.clock.sleep_until(now + pause) => {}
            }
        }
        if self.dropped.is_cancelled() { Err(NOT_WANTED) } else { Ok(()) }
    }
}

/// Time after which the outcome of one call with this many bytes counts as unknown.
fn call_max(bytes: usize) -> Duration {
    CALL_MAX + transfer(bytes)
}

const NOT_WANTED: &str = "the call is no longer wanted";

/// Time after which the outcome of one small call counts as unknown.
const CALL_MAX: Duration = Duration::from_secs(5);
