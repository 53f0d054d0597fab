use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_store::{BoxFuture, BoxStream, Key, Prefix, Store};
use tokio::sync::{mpsc, oneshot};

use super::calls::{self, Answer};
use super::entropy::Entropy;
use super::kept::Kept;
use super::recorder::{AttemptReport, EventReport, Operation};
use super::reporter::{Report, Reporter};
use super::timers::{CallId, Timer, Timers};
use crate::clock::{Clock, Instant};
use crate::lease::fork::Incarnation;
use crate::lease::shared::{Granted, Shared};
use crate::machine::{
    Ambient, Ask, Effect, Event, Fault, Input, Left, Outcome, Purpose, Sighting, Sightings, Write,
};
use crate::record::{self, Holder, Token};
use crate::{Error, Kind, lease};

/// One lease of one coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(u64);

/// What a keeper is asked.
pub(crate) enum Command {
    /// Get this lease.
    Acquire { id: LeaseId, key: Key, ask: Box<Ask>, reply: oneshot::Sender<Result<Arc<Shared>, Error>> },
    /// Renew it now.
    Renew { id: LeaseId, reply: oneshot::Sender<Result<(), Error>> },
    /// Let it go.
    Release { id: LeaseId, reply: Option<oneshot::Sender<Result<(), Error>>> },
    /// No work goes on under it any more.
    Drained { id: LeaseId },
    /// Its holder saw the deadline pass.
    Latched { id: LeaseId },
    /// Make calls on the store, here on the keeper's own runtime.
    Visit(Box<dyn FnOnce(Arc<dyn Store>) -> BoxFuture<'static, ()> + Send>),
    /// Let everything go, and take nothing more.
    ShutDown { reply: oneshot::Sender<Vec<Error>> },
}

/// The way to a keeper. When all of them are dropped, the keeper lets everything go and ends.
#[derive(Clone, Debug)]
pub(crate) struct KeeperHandle {
    commands: mpsc::UnboundedSender<Command>,
    ids: Arc<AtomicU64>,
}

impl KeeperHandle {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Command>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        (Self { commands, ids: Arc::default() }, receiver)
    }

    pub(crate) fn next_id(&self) -> LeaseId {
        LeaseId(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a command. If the keeper is gone, every lease is lost already, and there is nothing to tell it.
    pub(crate) fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// Sends a command and gives the way to its answer. The receiver fails if the keeper is gone.
    pub(crate) fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer
    }
}

/// Keeps all leases of a coordinator: the loop that turns effects into calls and answers into inputs.
pub(super) struct Keeper {
    store: Arc<dyn Store>,
    store_name: Arc<str>,
    watch: bool,
    clock: Arc<dyn Clock>,
    incarnation: Incarnation,
    reporter: Reporter,
    entropy: Entropy,
    leases: HashMap<LeaseId, Kept>,
    keys: HashMap<Key, Watched>,
    timers: Timers,
    calls: FuturesUnordered<BoxFuture<'static, Done>>,
    timeouts: HashMap<CallId, AbortHandle>,
    next_call: u64,
    hints: FuturesUnordered<BoxFuture<'static, Option<Hint>>>,
    closing: Option<Closing>,
    effects: Vec<Effect>,
}

/// What the keeper knows of one key.
#[derive(Debug, Default)]
struct Watched {
    sightings: Sightings,
    leases: Vec<LeaseId>,
    hints: Option<AbortHandle>,
}

/// A key has perhaps changed, and this is where the next hint comes from.
struct Hint {
    key: Key,
    stream: BoxStream<'static, ()>,
}

/// Somebody waits until everything is let go.
#[derive(Default)]
struct Closing {
    replies: Vec<oneshot::Sender<Vec<Error>>>,
    errors: Vec<Error>,
}

/// A call has ended.
enum Done {
    Lease { id: LeaseId, call: Call, answer: Option<Answer> },
    Visit,
}

/// A call that is under way.
#[derive(Clone, Copy, Debug)]
struct Call {
    id: CallId,
    sent: Instant,
    operation: Operation,
    token: Option<Token>,
}

impl Keeper {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        incarnation: Incarnation,
        reporter: Reporter,
    ) -> Self {
        Self {
            store_name: store.to_string().into(),
            watch: store.guarantees().watch,
            store,
            clock,
            incarnation,
            reporter,
            entropy: Entropy,
            leases: HashMap::new(),
            keys: HashMap::new(),
            timers: Timers::default(),
            calls: FuturesUnordered::new(),
            timeouts: HashMap::new(),
            next_call: 0,
            hints: FuturesUnordered::new(),
            closing: None,
            effects: Vec::new(),
        }
    }

    /// Runs until nobody can ask for anything any more and everything is let go.
    pub(super) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut asleep: Option<(Instant, BoxFuture<'static, ()>)> = None;
        let mut open = true;
        while open || !self.leases.is_empty() {
            self.fire_timers();
            let next = self.timers.next();
            if asleep.as_ref().map(|(at, _)| *at) != next {
                asleep = next.map(|at| (at, self.clock.sleep_until(at)));
            }
            tokio::select! {
                command = commands.recv(), if open => match command {
                    Some(command) => self.obey(command),
                    None => {
                        open = false;
                        self.release_all();
                    }
                },
                Some(done) = self.calls.next() => self.call_ended(done),
                Some(hint) = self.hints.next() => self.hinted(hint),
                () = async { asleep.as_mut().expect("guarded").1.as_mut().await }, if asleep.is_some() => asleep = None,
            }
        }
    }

    // ── what wakes it ─────────────────────────────────────────────────────────────────────────────────────────────

    fn obey(&mut self, command: Command) {
        match command {
            Command::Acquire { id, key, ask, reply } => self.acquire(id, key, *ask, reply),
            Command::Renew { id, reply } => {
                if let Some(kept) = self.leases.get_mut(&id) {
                    kept.renewed.push(reply);
                    self.step(id, Input::Renew);
                }
            }
            Command::Release { id, reply } => {
                if let Some(kept) = self.leases.get_mut(&id) {
                    kept.left.extend(reply);
                    self.step(id, Input::Release);
                }
            }
            Command::Drained { id } => self.step(id, Input::Drained),
            Command::Latched { id } => self.step(id, Input::Latched),
            Command::Visit(visit) => {
                let visit = visit(Arc::clone(&self.store));
                self.calls.push(Box::pin(visit.map(|()| Done::Visit)));
            }
            Command::ShutDown { reply } => {
                self.closing.get_or_insert_default().replies.push(reply);
                self.release_all();
                self.maybe_closed();
            }
        }
    }

    fn fire_timers(&mut self) {
        while let Some((at, timer)) = self.timers.due(self.clock.now()) {
            match timer {
                Timer::Wake(id) => {
                    if self.leases.get(&id).is_some_and(|kept| kept.wake == Some(at)) {
                        self.step(id, Input::Wake);
                    }
                }
                Timer::Timeout(call) => {
                    if let Some(timeout) = self.timeouts.remove(&call) {
                        timeout.abort();
                    }
                }
            }
        }
    }

    fn call_ended(&mut self, done: Done) {
        let Done::Lease { id, call, answer } = done else { return };
        self.timeouts.remove(&call.id);
        let Some(kept) = self.leases.get_mut(&id) else { return };
        let answer = answer.unwrap_or_else(|| timed_out(call, kept));
        if answer.error.is_some() {
            kept.trouble.clone_from(&answer.error);
        }
        let report = AttemptReport {
            store: Arc::clone(&self.store_name),
            key: kept.key.clone(),
            holder: Arc::clone(&kept.holder),
            token: call.token,
            operation: call.operation,
            outcome: calls::outcome(&answer.input),
            error: answer.error,
            latency: self.clock.now().since(call.sent),
        };
        self.reporter.report(Report::Attempt(report));
        self.step(id, answer.input);
    }

    fn hinted(&mut self, hint: Option<Hint>) {
        let Some(Hint { key, stream }) = hint else { return };
        let Some(watched) = self.keys.get(&key) else { return };
        let leases = watched.leases.clone();
        self.await_hint(key, stream);
        for id in leases {
            self.step(id, Input::Changed);
        }
    }

    // ── leases ────────────────────────────────────────────────────────────────────────────────────────────────────

    fn acquire(
        &mut self,
        id: LeaseId,
        key: Key,
        ask: Ask,
        reply: oneshot::Sender<Result<Arc<Shared>, Error>>,
    ) {
        if self.closing.is_some() {
            let sentence =
                format!("lease {key} on {} is not granted: the coordinator is shut down", self.store_name);
            let _ = reply.send(Err(Error::new(Kind::Unavailable, sentence)));
            return;
        }
        self.make_room_for(&key);
        self.keys.entry(key.clone()).or_default().leases.push(id);
        self.leases.insert(id, Kept::new(key, ask, reply));
        self.step(id, Input::Start);
    }

    /// Gives a lease an input, and does what it wants done.
    fn step(&mut self, id: LeaseId, input: Input) {
        let Some(kept) = self.leases.get_mut(&id) else { return };
        let ambient = Ambient {
            now: self.clock.now(),
            wall: self.clock.wall(),
            nonce: self.entropy.nonce(),
            jitter: self.entropy.jitter(),
        };
        let mut effects = std::mem::take(&mut self.effects);
        let watched = self.keys.get_mut(&kept.key).expect("a lease's key is known");
        kept.machine.step(&ambient, &mut watched.sightings, input, &mut effects);
        let mut then = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Read => self.read(id, ambient.now),
                Effect::Write(write) => self.write(id, ambient.now, write),
                Effect::SleepUntil(at) => {
                    if let Some(kept) = self.leases.get_mut(&id) {
                        kept.wake = Some(at);
                    }
                    self.timers.set(at, Timer::Wake(id));
                }
                // Witnesses come with the first store whose users share a kernel. Until then nobody knows anything.
                Effect::LookAtWitness { nonce, .. } => {
                    then = Some(Input::Witness { nonce, sighting: Sighting::default() });
                }
                Effect::Tell(event) => then = self.tell(id, event).or(then),
            }
        }
        self.effects = effects;
        if let Some(input) = then {
            self.step(id, input);
        }
        self.listen(id);
        self.forget_if_ended(id);
    }

    /// Listens for hints while somebody waits for the key, and only then: each costs the store something.
    fn listen(&mut self, id: LeaseId) {
        let Some(kept) = self.leases.get(&id) else { return };
        let Some(watched) = self.keys.get_mut(&kept.key) else { return };
        match &watched.hints {
            None if kept.machine.is_waiting() && self.watch => {
                let key = kept.key.clone();
                let Some(stream) = self.store.watch(&Prefix::of(&key)) else { return };
                self.await_hint(key, stream);
                // What changed between the look and now gave no hint.
                self.step(id, Input::Changed);
            }
            Some(hints) if !kept.machine.is_seeking() => {
                let anybody = |id| self.leases.get(id).is_some_and(|kept| kept.machine.is_seeking());
                if !watched.leases.iter().any(anybody) {
                    hints.abort();
                    watched.hints = None;
                }
            }
            _ => {}
        }
    }

    /// Tells whoever asked. The machine may have to be told something in return.
    fn tell(&mut self, id: LeaseId, event: Event) -> Option<Input> {
        let kept = self.leases.get_mut(&id)?;
        let mut back = None;
        match &event {
            Event::Granted { token, deadline, .. } => {
                let granted = Granted {
                    key: kept.key.clone(),
                    holder: Arc::clone(&kept.holder),
                    token: *token,
                    store: Arc::clone(&self.store_name),
                    deadline: *deadline,
                };
                let shared = Arc::new(Shared::new(granted, Arc::clone(&self.clock), self.incarnation));
                kept.shared = Some(Arc::clone(&shared));
                // If nobody waits for it any more, it is let go at once.
                let wanted = kept.granted.take().is_some_and(|reply| reply.send(Ok(shared)).is_ok());
                if !wanted {
                    back = Some(Input::Release);
                }
            }
            Event::Renewed { deadline } => {
                let extended = kept.shared.as_ref().is_some_and(|shared| shared.extend(*deadline));
                if extended {
                    for reply in kept.renewed.drain(..) {
                        let _ = reply.send(Ok(()));
                    }
                } else {
                    back = Some(Input::Latched);
                }
            }
            Event::AtRisk(_) => {
                if let Some(shared) = &kept.shared {
                    shared.at_risk();
                }
            }
            Event::Lost(why) => {
                if let Some(shared) = &kept.shared {
                    shared.latch(why.clone());
                    for reply in kept.renewed.drain(..) {
                        let _ = reply.send(Err(shared.lost_error()));
                    }
                    if shared.is_drained() {
                        back = Some(Input::Drained);
                    }
                }
            }
            Event::Denied(denied) => {
                let mut error = lease::denied(&kept.key, &self.store_name, &kept.holder, denied);
                if let Some(trouble) = kept.trouble.take() {
                    error = error.because(trouble.to_string());
                }
                if let Some(reply) = kept.granted.take() {
                    let _ = reply.send(Err(error));
                }
            }
            Event::Left(left) => {
                let result = || left_error(kept, &self.store_name, *left);
                if let Some(closing) = &mut self.closing {
                    closing.errors.extend(result());
                }
                let results: Vec<_> = kept.left.iter().map(|_| result().map_or(Ok(()), Err)).collect();
                for (reply, result) in kept.left.drain(..).zip(results) {
                    let _ = reply.send(result);
                }
            }
            Event::WentBack { .. } => {}
        }
        let (token, holder, key) = (kept.token(), Arc::clone(&kept.holder), kept.key.clone());
        let store = Arc::clone(&self.store_name);
        self.reporter.report(Report::Event(EventReport { store, key, holder, token, event }));
        back
    }

    fn forget_if_ended(&mut self, id: LeaseId) {
        if !self.leases.get(&id).is_some_and(|kept| kept.machine.is_ended()) {
            return;
        }
        let kept = self.leases.remove(&id).expect("just seen");
        if let Some(watched) = self.keys.get_mut(&kept.key) {
            watched.leases.retain(|other| *other != id);
        }
        self.maybe_closed();
    }

    fn release_all(&mut self) {
        let ids: Vec<_> = self.leases.keys().copied().collect();
        for id in ids {
            if let Some(shared) = self.leases.get(&id).and_then(|kept| kept.shared.as_ref()) {
                shared.latch(crate::Lost::Released);
            }
            self.step(id, Input::Release);
        }
    }

    fn maybe_closed(&mut self) {
        if self.leases.is_empty()
            && let Some(closing) = &mut self.closing
        {
            for reply in closing.replies.drain(..) {
                let _ = reply.send(std::mem::take(&mut closing.errors));
            }
        }
    }

    // ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────

    fn read(&mut self, id: LeaseId, now: Instant) {
        let Some(kept) = self.leases.get(&id) else { return };
        let call = calls::read(Arc::clone(&self.store), kept.key.clone());
        self.call(id, now, Operation::Read, None, Box::pin(call));
    }

    fn write(&mut self, id: LeaseId, now: Instant, write: Write) {
        let Some(kept) = self.leases.get(&id) else { return };
        let token = Some(write.record.token).filter(|_| write.purpose != Purpose::Plant);
        let value = record::encode(&write.record);
        let call = calls::write(Arc::clone(&self.store), kept.key.clone(), value, write.expect);
        self.call(id, now, Operation::Write(write.purpose), token, Box::pin(call));
    }

    /// Starts a call that is over, one way or the other, when its time is.
    fn call(
        &mut self,
        id: LeaseId,
        now: Instant,
        operation: Operation,
        token: Option<Token>,
        future: BoxFuture<'static, Answer>,
    ) {
        let timeout = self.leases[&id].timing.timeout();
        let call = Call { id: CallId(self.next_call), sent: now, operation, token };
        self.next_call += 1;
        let (abort, registration) = AbortHandle::new_pair();
        self.timeouts.insert(call.id, abort);
        self.timers.set(now + timeout, Timer::Timeout(call.id));
        let future = Abortable::new(future, registration);
        self.calls.push(Box::pin(async move { Done::Lease { id, call, answer: future.await.ok() } }));
    }

    fn await_hint(&mut self, key: Key, mut stream: BoxStream<'static, ()>) {
        let Some(watched) = self.keys.get_mut(&key) else { return };
        let (abort, registration) = AbortHandle::new_pair();
        watched.hints = Some(abort);
        let hint = async move { stream.next().await.map(|()| Hint { key, stream }) };
        self.hints.push(Box::pin(async move { Abortable::new(hint, registration).await.ok().flatten() }));
    }

    /// Forgets a key that nobody uses, if there are too many. Its next acquire costs one more read.
    fn make_room_for(&mut self, key: &Key) {
        if self.keys.len() < KEYS_MAX || self.keys.contains_key(key) {
            return;
        }
        let idle =
            self.keys.iter().find(|(_, watched)| watched.leases.is_empty()).map(|(key, _)| key.clone());
        if let Some(idle) = idle {
            self.keys.remove(&idle);
        }
    }
}

fn timed_out(call: Call, kept: &Kept) -> Answer {
    let error = format!("no answer within {:?}", kept.timing.timeout()).into();
    let input = match call.operation {
        Operation::Read => Input::Read(Err(Fault::Unknown)),
        Operation::Write(_) => Input::Written(Outcome::Fault(Fault::Unknown)),
    };
    Answer { input, error: Some(error) }
}

fn left_error(kept: &Kept, store: &str, left: Left) -> Option<Error> {
    let holder: &Holder = &kept.holder;
    match left {
        Left::Vacated | Left::Nothing => None,
        Left::Lapsing => {
            let token = kept.token().unwrap_or_default();
            let what =
                format!("lease {} of {holder} (token {token}) on {store} could not be vacated", kept.key);
            let error = Error::new(
                Kind::Unavailable,
                format!("{what}: it has lapsed, and others may have waited for it"),
            );
            Some(match &kept.trouble {
                Some(trouble) => error.because(trouble.to_string()),
                None => error,
            })
        }
    }
}

/// How many keys the keeper remembers.
const KEYS_MAX: usize = 10_000;
