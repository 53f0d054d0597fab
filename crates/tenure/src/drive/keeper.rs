use std::collections::HashMap;
use std::sync::Arc;

use tenure_store::{BoxFuture, Key, Store};
use tokio::sync::{mpsc, oneshot};

use super::calls;
use super::command::{Command, LeaseId};
use super::entropy::Entropy;
use super::flights::{Flights, Landed};
use super::hints::Hints;
use super::kept::Kept;
use super::recorder::{AttemptReport, EventReport};
use super::reporter::{Report, Reporter};
use super::timers::{CallId, Timer, Timers};
use crate::clock::{Clock, Instant};
use crate::lease::fork::Incarnation;
use crate::lease::shared::{Granted, Shared};
use crate::machine::{Ambient, Ask, Denied, Effect, Event, Input, Left, Lost, Sighting, Sightings};
use crate::record::Holder;
use crate::{Error, Kind, lease};

/// Keeps all leases of a coordinator: the loop that turns effects into calls and answers into inputs.
#[derive(Debug)]
pub(super) struct Keeper {
    store_name: Arc<str>,
    clock: Arc<dyn Clock>,
    incarnation: Incarnation,
    reporter: Reporter,
    entropy: Entropy,
    leases: HashMap<LeaseId, Kept>,
    keys: HashMap<Key, Known>,
    timers: Timers,
    flights: Flights,
    hints: Hints,
    closing: Option<Closing>,
    effects: Vec<Effect>,
}

/// What the keeper knows of one key.
#[derive(Debug, Default)]
struct Known {
    sightings: Sightings,
    leases: Vec<LeaseId>,
}

/// Somebody waits until everything is let go.
#[derive(Debug, Default)]
struct Closing {
    replies: Vec<oneshot::Sender<Vec<Error>>>,
    errors: Vec<Error>,
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
            flights: Flights::new(Arc::clone(&store)),
            hints: Hints::new(store, Arc::clone(&clock)),
            clock,
            incarnation,
            reporter,
            entropy: Entropy,
            leases: HashMap::new(),
            keys: HashMap::new(),
            timers: Timers::default(),
            closing: None,
            effects: Vec::new(),
        }
    }

    /// Runs until nobody can ask for anything any more and everything is let go.
    pub(super) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut asleep: Option<(Instant, BoxFuture<'static, ()>)> = None;
        let mut open = true;
        loop {
            // Whatever is always ready must not keep this runtime from its sockets and timers.
            tokio::task::coop::consume_budget().await;
            self.fire_timers();
            if !open && self.leases.is_empty() {
                return;
            }
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
                Some(landed) = self.flights.next() => self.landed(landed),
                Some(key) = self.hints.next() => self.hinted(&key),
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
            Command::Visit(visit) => self.flights.visit(visit),
            Command::ShutDown { reply } => {
                self.closing.get_or_insert_default().replies.push(reply);
                self.release_all();
                self.maybe_closed();
            }
        }
    }

    /// Everything that is due by now, each once: a lease that wants to be woken again for an instant that has passed must
    /// not keep its own call, or anybody else's, from ending.
    fn fire_timers(&mut self) {
        let now = self.clock.now();
        let due: Vec<_> = std::iter::from_fn(|| self.timers.due(now)).collect();
        for timer in due {
            match timer {
                Timer::Wake(id) => {
                    if let Some(kept) = self.leases.get_mut(&id) {
                        kept.wake = None;
                        self.step(id, Input::Wake);
                    }
                }
                Timer::Timeout(call) => self.flights.give_up(call),
            }
        }
    }

    fn landed(&mut self, landed: Option<Landed>) {
        let Some(Landed { lease, call, answer }) = landed else { return };
        let Some(kept) = self.leases.get_mut(&lease) else { return };
        self.timers.unset(call.sent + kept.timing.timeout(), Timer::Timeout(call.id));
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
        self.step(lease, answer.input);
    }

    fn hinted(&mut self, key: &Key) {
        let Some(known) = self.keys.get(key) else { return };
        for id in known.leases.clone() {
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
            let _ = reply.send(Err(shut_down(&key, &self.store_name)));
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
        let known = self.keys.get_mut(&kept.key).expect("a lease's key is known");
        kept.machine.step(&ambient, &mut known.sightings, input, &mut effects);
        let mut then = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Read => {
                    let call = self.flights.read(id, self.leases[&id].key.clone(), ambient.now);
                    self.bound(id, ambient.now, call);
                }
                Effect::Write(write) => {
                    let call = self.flights.write(id, self.leases[&id].key.clone(), ambient.now, write);
                    self.bound(id, ambient.now, call);
                }
                Effect::SleepUntil(at) => {
                    if let Some(stale) = self.leases.get_mut(&id).and_then(|kept| kept.wake.replace(at)) {
                        self.timers.unset(stale, Timer::Wake(id));
                    }
                    self.timers.set(at, Timer::Wake(id));
                }
                // No holder has a witness yet. Whoever finds a record that names one knows nothing, and waits.
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

    /// A call is over, one way or the other, when its time is.
    fn bound(&mut self, id: LeaseId, sent: Instant, call: CallId) {
        let timeout = self.leases[&id].timing.timeout();
        self.timers.set(sent + timeout, Timer::Timeout(call));
    }

    /// Listens for hints while somebody waits for the key, and only then: each costs the store something.
    fn listen(&mut self, id: LeaseId) {
        let Some(kept) = self.leases.get(&id) else { return };
        let key = kept.key.clone();
        if kept.machine.is_waiting() && !self.hints.listens_to(&key) {
            if self.hints.listen(&key) {
                // What changed between the look and now gave no hint.
                self.step(id, Input::Changed);
            }
        } else if !kept.machine.is_seeking() && self.hints.listens_to(&key) {
            let anybody = |id| self.leases.get(id).is_some_and(|kept| kept.machine.is_seeking());
            if !self.keys[&key].leases.iter().any(anybody) {
                self.hints.stop(&key);
            }
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
                if let Some(shared) = &kept.shared {
                    if shared.extend(*deadline) {
                        for reply in kept.renewed.drain(..) {
                            let _ = reply.send(Ok(()));
                        }
                    } else {
                        back = Some(over(shared));
                    }
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
            Event::Denied(Denied::Cancelled) if self.closing.is_some() => {
                if let Some(reply) = kept.granted.take() {
                    let _ = reply.send(Err(shut_down(&kept.key, &self.store_name)));
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
        if let Some(wake) = kept.wake {
            self.timers.unset(wake, Timer::Wake(id));
        }
        if let Some(known) = self.keys.get_mut(&kept.key) {
            known.leases.retain(|other| *other != id);
        }
        self.maybe_closed();
    }

    fn release_all(&mut self) {
        let ids: Vec<_> = self.leases.keys().copied().collect();
        for id in ids {
            if let Some(shared) = self.leases.get(&id).and_then(|kept| kept.shared.as_ref()) {
                shared.latch(Lost::Released);
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

    /// Forgets a key that nobody uses, if there are too many. Its next acquire costs one more read.
    fn make_room_for(&mut self, key: &Key) {
        if self.keys.len() < KEYS_MAX || self.keys.contains_key(key) {
            return;
        }
        let idle = self.keys.iter().find(|(_, known)| known.leases.is_empty()).map(|(key, _)| key.clone());
        if let Some(idle) = idle {
            self.keys.remove(&idle);
        }
    }
}

fn shut_down(key: &Key, store: &str) -> Error {
    let sentence = format!("lease {key} on {store} is not granted: the coordinator is shut down");
    Error::new(Kind::Unavailable, sentence)
}

/// What to tell a machine whose lease was latched by somebody else: that it was let go, or that the deadline passed.
fn over(shared: &Shared) -> Input {
    match shared.why() {
        Some(Lost::Released) => Input::Release,
        _ => Input::Latched,
    }
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
