use std::sync::Arc;
use std::time::Duration;

use tenure_core::keys::{KeyAnswer, KeyMachine, KeyOperation, KeyOwner, KeyParams};
use tenure_core::machine::{
    Ambient, Content, Effect, Event, Fault, Input, Look, Outcome, Purpose, Seen, Write,
};
use tenure_core::record::{self, Ttl};
use tenure_core::{Drift, Holder};
use tenure_store::{BoxFuture, Key, Prefix, Reach, Reason, Store, StoreClock};
use tokio_util::sync::CancellationToken;

use super::key_memory::{KeyMemory, KnownKey};
use crate::clock::{Clock, Instant, timeout};
use crate::host::entropy::Entropy;
use crate::host::simulation::{Duty, does};
use crate::keeper::calls::{self, CallAnswer};
use crate::keeper::{
    AttemptReport, Connection, EventReport, Operation, WeakKeeper, logbook_client, next_write,
};
use crate::observe::ChangeHints;
use crate::store::caught::Caught;
use crate::trust::breach;
use crate::{Error, ErrorKind};

/// One operation on one plain key, on the keeper's runtime: it turns the effects of the machine into calls on the store,
/// and answers into inputs.
pub(super) struct KeyCall {
    clock: Arc<dyn Clock>,
    store_name: Arc<str>,
    store_clock: StoreClock,
    write_interval: Duration,
    memory: Arc<KeyMemory>,
    keeper: WeakKeeper,
    key: Key,
    holder: Arc<Holder>,
    changes: bool,
    machine: KeyMachine,
    /// True if the operation waits for an entry, with hints if the store has them.
    waits: bool,
    /// Minimum time between two reads after hints.
    hint_pause: Duration,
    /// Cancelled when the caller has dropped its future.
    dropped: CancellationToken,
    /// True if the latest read showed the state that `forget` leaves behind.
    forgotten: bool,
    /// Error of the latest failed call.
    last_error: Option<Arc<str>>,
}

impl KeyCall {
    #[expect(clippy::too_many_arguments, reason = "the parts of one operation")]
    pub(super) fn new(
        connection: &Connection,
        memory: Arc<KeyMemory>,
        keeper: WeakKeeper,
        key: &Key,
        owner: KeyOwner,
        operation: KeyOperation,
        wait: Option<Duration>,
        dropped: CancellationToken,
    ) -> Self {
        let (clock, guarantees) = (Arc::clone(&connection.clock), &connection.guarantees);
        let retry = RETRY.max(guarantees.write_interval);
        let wait_until = wait.map(|limit| clock.now() + limit);
        let holder = Arc::clone(&owner.holder);
        let changes = operation != KeyOperation::Get;
        let params = KeyParams {
            operation,
            owner,
            store_clock: guarantees.clock,
            clock_tick: guarantees.clock_tick,
            drift: Drift::DEFAULT,
            fresh_for: FRESH_FOR,
            retry,
            retry_max: RETRY_MAX.max(retry),
            wait_until,
            give_up_at: wait_until.unwrap_or_else(|| clock.now()) + GIVE_UP_AFTER,
        };
        Self {
            clock,
            store_name: Arc::clone(&connection.store),
            store_clock: guarantees.clock,
            write_interval: guarantees.write_interval,
            memory,
            keeper,
            key: key.clone(),
            holder,
            changes,
            machine: KeyMachine::new(params),
            waits: wait.is_some_and(|limit| !limit.is_zero()),
            hint_pause: match guarantees.reach {
                Reach::Process | Reach::Machine => HINT_PAUSE_MIN,
                // A read may cost a call on a network.
                _ => retry,
            },
            dropped,
            forgotten: false,
            last_error: None,
        }
    }

    /// Runs the operation to its answer.
    pub(super) async fn run(mut self, store: Arc<dyn Store>) -> Result<KeyAnswer, Error> {
        self.memory.with(&self.key, |known| known.in_use += 1);
        let answer = self.steps(&store).await;
        let seen = self.memory.with(&self.key, |known| {
            known.in_use -= 1;
            known.sightings.latest().cloned()
        });
        self.log(seen).await;
        let answer = answer?;
        match (&answer, self.last_error) {
            (KeyAnswer::Denied { why, in_doubt }, Some(cause)) => {
                Err(why.error(&self.key, &self.store_name, *in_doubt).because(cause.to_string()))
            }
            _ => Ok(answer),
        }
    }

    async fn steps(&mut self, store: &Arc<dyn Store>) -> Result<KeyAnswer, Error> {
        let mut input = Input::Start;
        // Before the first read: a change after it gives a hint.
        let mut hints = ChangeHints::None;
        loop {
            if self.waits {
                hints.listen(&**store, &Prefix::of(&self.key));
            }
            let mut effects = Vec::new();
            let (nonce, jitter) = Entropy.step();
            let now = self.clock.now();
            let ambient = Ambient { now, wall: self.clock.wall(), nonce, jitter };
            let answer = self.memory.with(&self.key, |known| {
                self.machine.step(&ambient, &mut known.sightings, input, &mut effects)
            });
            let mut next = None;
            for effect in effects {
                next = match effect {
                    Effect::Tell(event) => {
                        self.report(event);
                        continue;
                    }
                    call => Some(call),
                };
            }
            if let Some(answer) = answer {
                return Ok(answer);
            }
            if self.dropped.is_cancelled() {
                return Err(self.cancelled());
            }
            input = match next {
                Some(Effect::Read) => self.read(store, now).await?,
                Some(Effect::Write(write)) => self.write(store, write, now).await?,
                Some(Effect::SleepUntil(at)) => {
                    hints.pause(self.clock.sleep_until(now + self.hint_pause));
                    tokio::select! {
                        biased;
                        () = self.dropped.cancelled() => return Err(self.cancelled()),
                        () = self.clock.sleep_until(at) => Input::Wake,
                        hint = hints.next() => {
                            if hint.is_none() {
                                // It is not renewed: the reads without hints are enough.
                                (hints, self.waits) = (ChangeHints::None, false);
                            }
                            Input::Changed
                        }
                    }
                }
                other => {
                    unreachable!("an operation without an answer waits for a call or for a time: {other:?}")
                }
            };
        }
    }

    async fn read(&mut self, store: &Arc<dyn Store>, sent: Instant) -> Result<Input, Error> {
        let first = self.memory.with(&self.key, |known| known.sightings.latest().is_none());
        let logbook = self.memory.host.logbook.clone().filter(|_| first);
        let call = calls::read(Arc::clone(store), self.key.clone(), logbook);
        let answer = self.call(Box::pin(call), sent, Operation::Read, None).await;
        self.check(sent, &answer)?;
        if let Some(recalled) = answer.recalled {
            self.memory.with(&self.key, |known| known.sightings.recall(recalled));
        }
        Ok(answer.input)
    }

    async fn write(
        &mut self,
        store: &Arc<dyn Store>,
        write: Write,
        mut sent: Instant,
    ) -> Result<Input, Error> {
        if let Some(error) = self.breach_error() {
            return Err(error);
        }
        let interval = self.write_interval;
        let wait = self.memory.with(&self.key, |known| next_write(&mut known.next_write_at, interval, sent));
        if !wait.is_zero() {
            tokio::select! {
                biased;
                () = self.dropped.cancelled() => return Err(self.cancelled()),
                () = self.clock.sleep_until(sent + wait) => {}
            }
            sent = self.clock.now();
            if !self.memory.with(&self.key, |known| self.machine.send_later(&mut known.sightings, sent)) {
                return Ok(Input::Wake);
            }
        }
        let operation = Operation::Write(write.purpose);
        let token = Some(write.record.token).filter(|_| write.purpose != Purpose::Plant);
        let answer = match record::try_encode(&write.record) {
            Ok(value) => {
                let call = calls::write(Arc::clone(store), self.key.clone(), value, write);
                self.call(Box::pin(call), sent, operation, token).await
            }
            // Nothing is sent, so nothing can land.
            Err(foreign) => calls::unwritable(&foreign),
        };
        self.check(sent, &answer)?;
        Ok(answer.input)
    }

    /// Waits for the answer to a call, up to its timeout, and reports it.
    async fn call(
        &mut self,
        call: BoxFuture<'static, CallAnswer>,
        sent: Instant,
        operation: Operation,
        token: Option<tenure_core::Token>,
    ) -> CallAnswer {
        let answer = match timeout(&*self.clock, CALL_MAX, Caught::new(call)).await {
            Some(Ok(answer)) => answer,
            Some(Err(panicked)) => unknown(operation, format!("the code of the call {panicked}").into()),
            None => unknown(operation, "no answer within the request timeout".into()),
        };
        if answer.error.is_some() {
            self.last_error.clone_from(&answer.error);
        }
        self.keeper.report_attempt(AttemptReport {
            store: Arc::clone(&self.store_name),
            key: self.key.clone(),
            holder: Arc::clone(&self.holder),
            token,
            operation,
            outcome: calls::outcome(&answer.input),
            error: answer.error.clone(),
            latency: self.clock.now().since(sent),
        });
        answer
    }

    /// Checks an answer for breaches of the store's promises, before the machine gets it.
    fn check(&mut self, sent: Instant, answer: &CallAnswer) -> Result<(), Error> {
        let (breach, doubtful) = match &answer.input {
            Input::Read(Ok(look)) => {
                let memory = Arc::clone(&self.memory);
                memory.with(&self.key.clone(), |known| self.judge(known, sent, look))
            }
            _ => (answer.breach.clone(), false),
        };
        if breach.is_some() || doubtful {
            self.keeper.suspect(&self.key, breach.clone());
        }
        match breach.filter(|_| self.changes) {
            Some(breach) => Err(self.not_changed(&breach, &self.key)),
            None => Ok(()),
        }
    }

    fn judge(&mut self, known: &KnownKey, sent: Instant, look: &Look) -> (Option<breach::Breach>, bool) {
        let (before, highest) = (known.sightings.latest(), known.sightings.highest());
        self.forgotten = breach::is_forgotten(before, sent, look, highest, self.store_clock);
        let shown = match &look.content {
            Content::Record(record, _) => Some(record.token),
            Content::Absent if !self.forgotten => None,
            Content::Absent | Content::Foreign { .. } => Some(highest),
        };
        let went_back = before.is_some_and(|before| before.returned <= sent) && shown < Some(highest);
        let doubtful = breach::is_doubtful(before, sent, look);
        (breach::Breach::shown(before, look, self.store_clock), doubtful || went_back)
    }

    /// Reports an event of the machine, unless an operator has only forgotten a released key.
    fn report(&self, event: Event) {
        if self.forgotten && matches!(event, Event::WentBack { shown: None, .. }) {
            return;
        }
        let report = EventReport {
            store: Arc::clone(&self.store_name),
            key: self.key.clone(),
            holder: Arc::clone(&self.holder),
            token: None,
            event: event.into(),
        };
        self.keeper.report_event(report);
    }

    /// Writes the sighting to the logbook, so that it counts for the next process.
    async fn log(&self, seen: Option<Seen>) {
        let Some(logbook) = self.memory.host.logbook.as_ref().filter(|_| self.store_clock < StoreClock::Ages)
        else {
            return;
        };
        let seen = seen.filter(|seen| logbook_client::runs_out(&seen.content));
        if let Some((recalled, returned)) = seen.and_then(|seen| Some((seen.to_recall()?, seen.returned))) {
            logbook.add(&self.key, &recalled, returned, self.changes);
            logbook.flush().await;
        }
    }

    fn breach_error(&self) -> Option<Error> {
        let (breach, on) = self.memory.host.trust.breach()?;
        Some(self.not_changed(breach, on))
    }

    fn not_changed(&self, breach: &breach::Breach, on: &Key) -> Error {
        let sentence = format!(
            "key {} on {} is not changed: the store broke a promise, {breach} (key {on}). Two participants could change \
             one revision, so nothing more is changed on it: repair the store, and connect again",
            self.key, self.store_name
        );
        Error::new(ErrorKind::Unsupported, sentence)
    }

    fn cancelled(&self) -> Error {
        let sentence = format!("the call for key {} on {} is no longer wanted", self.key, self.store_name);
        Error::new(ErrorKind::Unavailable, sentence)
    }
}

/// Answer to a call whose outcome is unknown.
fn unknown(operation: Operation, why: Arc<str>) -> CallAnswer {
    let fault =
        if does(Duty::KeyTimeoutIsUnknown) { Fault::Unknown } else { Fault::Refused(Reason::Unreachable) };
    let input = match operation {
        Operation::Read => Input::Read(Err(fault)),
        Operation::Write(_) => Input::Written(Outcome::Fault(fault)),
    };
    CallAnswer::new(input, Some(why))
}

/// Time after which the outcome of one call counts as unknown.
const CALL_MAX: Duration = Duration::from_secs(5);

/// Time for which an operation is tried, beyond the time that it waits.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// First pause after a failed call.
const RETRY: Duration = Duration::from_millis(100);

/// Longest pause after repeated failures.
const RETRY_MAX: Duration = Duration::from_secs(2);

/// A store that hints all the time must not keep the keeper busy.
const HINT_PAUSE_MIN: Duration = Duration::from_millis(10);

/// Time for which a sighting may be acted on: the default ttl of a lease.
const FRESH_FOR: Ttl = Ttl::from_millis(15_000).expect("within the range");
