//! The keeper renews, reads back and vacates for all leases of a coordinator.
//!
//! It turns effects of the machine into calls on a store and a clock, and answers into inputs. It has its own thread
//! and runtime. The store is connected and called there, so a starved, blocked or dropped executor of the user does not
//! lose a lease. One keeper serves all leases of a coordinator with one timer. If it dies, every lease is lost at once.

mod atomic;
mod background;
mod belief_mirror;
mod call_time;
pub(crate) mod calls;
mod closing;
mod command;
mod connection;
mod deadlines;
mod deliver;
mod distrust;
mod event;
mod held_lease;
mod hints;
mod host_state;
mod in_flight;
mod jobs;
mod last_error;
mod lease_entry;
mod lease_state;
pub(crate) mod logbook_client;
mod pace;
mod place_queue;
mod places;
mod recorder;
mod reply_to;
mod reporter;
mod spare_witness;
mod timers;
mod trouble_pace;
mod urgency;
mod weak_keeper;
pub(crate) mod witnesses;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::num::NonZero;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tenure_core::machine::{Ambient, Effect, Input, Left, Lost, Machine, Recalled, Sighting, Sightings};
use tenure_core::record;
use tenure_store::{BoxFuture, Key, Store, StoreClock};
use tokio::sync::mpsc;

use crate::clock::{Clock, Instant};
use crate::host::entropy::Entropy;
use crate::host::fork::ForkGuard;
use crate::host::simulation::{Duty, does, preemption_point, simulated};
use crate::host::witness::Lock;
use crate::trust::Trust;
use background::Background;
use call_time::CallTime;
use closing::Closing;
use deadlines::Deadlines;
use distrust::Distrust;
use hints::Hints;
use in_flight::{EndedCall, InFlight};
use jobs::Jobs;
use lease_entry::{LeaseEntry, WitnessSetup};
use logbook_client::LogbookClient;
use places::Places;
use reporter::Report;
use timers::Timers;
use urgency::Urgency;
use witnesses::{NewWitness, WitnessEvent, Witnesses};

pub(crate) use belief_mirror::BeliefMirror;
pub(crate) use closing::SHUTDOWN_MAX;
pub(crate) use command::{Command, KeeperHandle, LeaseId};
pub(crate) use connection::Connection;
pub(crate) use deliver::{shut_down_error, stale_handle_error};
pub use event::Event;
pub(crate) use held_lease::HeldLease;
pub(crate) use host_state::HostState;
pub(crate) use last_error::LastError;
pub use lease_state::{LeaseState, Renewal};
pub(crate) use pace::next_write;
pub use recorder::{AttemptOutcome, AttemptReport, EventReport, Operation, Recorder};
pub(crate) use reply_to::ReplyTo;
pub(crate) use reporter::Reporter;
pub(crate) use weak_keeper::WeakKeeper;

/// The loop that turns effects into calls and answers into inputs, for all leases of a coordinator.
pub(crate) struct Keeper {
    store_name: Arc<str>,
    store_clock: StoreClock,
    write_interval: Duration,
    clock: Arc<dyn Clock>,
    fork_guard: ForkGuard,
    reporter: Reporter,
    entropy: Entropy,
    /// Boxed, like the others: a map keeps up to half of the room in its nodes free.
    leases: BTreeMap<LeaseId, Box<LeaseEntry>>,
    /// Leases whose record has run out while work still runs under them.
    lapsed: BTreeMap<LeaseId, Box<LeaseEntry>>,
    keys: BTreeMap<Key, Box<KeyState>>,
    timers: Timers,
    /// Deadlines of calls and jobs.
    deadlines: Deadlines,
    in_flight: InFlight,
    places: Places,
    background: Background,
    hints: Hints,
    losses: Hints,
    witnesses: Witnesses,
    logbook: Option<Arc<LogbookClient>>,
    trust: Arc<Trust>,
    distrust: Distrust,
    closing: Option<Closing>,
    effects: Vec<Effect>,
    /// The one timer, and the time at which it fires.
    asleep: Option<(Instant, BoxFuture<'static, ()>)>,
    /// Time at which the timer last fired.
    woken_at: Instant,
    /// The source of events that is asked first.
    turn: usize,
}

/// An event for the keeper.
enum Happening {
    Command(Command),
    /// Every `KeeperHandle` is dropped.
    NoMoreCommands,
    /// A call has ended; `None` if it belonged to no lease.
    CallEnded(Option<EndedCall>),
    /// The store hints that the key may have changed.
    Changed(Key),
    /// The store hints that the key may be lost.
    Doubted(Key),
    Witness(WitnessEvent),
    JobDone,
    TimerFired,
    /// Something is due before the timer fires.
    DueEarlier,
}

impl Happening {
    /// Number of sources of events.
    const SOURCES: usize = 7;
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// True while the lease is wanted or held.
fn is_wanted(machine: &Machine) -> bool {
    machine.is_seeking() || machine.is_holding()
}

/// The keeper's state of one key.
#[derive(Debug, Default)]
struct KeyState {
    sightings: Sightings,
    /// True if the latest read is worth logging.
    worth_logging: bool,
    /// True if the latest read showed the state that `forget` leaves behind.
    forgotten: bool,
    /// Earliest time of the next write, by the store's write interval.
    next_write_at: Option<Instant>,
    leases: Vec<LeaseId>,
}

impl Keeper {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        fork_guard: ForkGuard,
        reporter: Reporter,
        HostState { workers, location, logbook, trust }: HostState,
        calls_max: NonZero<usize>,
    ) -> Self {
        let (deadlines, places) = (Deadlines::default(), Places::new(calls_max.get()));
        let jobs = Jobs::new(workers, Arc::clone(&clock), deadlines.clone());
        Self {
            store_name: store.to_string().into(),
            store_clock: store.guarantees().clock,
            write_interval: store.guarantees().write_interval,
            in_flight: InFlight::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                deadlines.clone(),
                places.clone(),
            ),
            places,
            deadlines,
            background: Background::new(jobs.clone()),
            witnesses: Witnesses::new(location, jobs),
            hints: Hints::on_changes(Arc::clone(&store), Arc::clone(&clock)),
            losses: Hints::on_losses(store, Arc::clone(&clock)),
            clock,
            fork_guard,
            reporter,
            entropy: Entropy,
            leases: BTreeMap::new(),
            lapsed: BTreeMap::new(),
            keys: BTreeMap::new(),
            timers: Timers::default(),
            logbook,
            trust,
            distrust: Distrust::default(),
            closing: None,
            effects: Vec::new(),
            asleep: None,
            woken_at: Instant::default(),
            turn: 0,
        }
    }

    /// Runs until all handles are dropped and all leases are released.
    pub(crate) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut open = true;
        loop {
            // A source that is always ready must not starve the sockets and timers of this runtime.
            tokio::task::coop::consume_budget().await;
            self.fire_timers();
            if !open && (self.is_idle() || !does(Duty::OutliveHandles)) {
                return;
            }
            // A timer that fires too early costs one check of the queue; setting a new one costs five system calls. So
            // the timer stays unless it would fire too late: most deadlines never pass.
            if let Some(at) = self.due_before_timer() {
                self.asleep = Some((at, self.clock.sleep_until(at)));
            }
            match self.next(&mut commands, open).await {
                Happening::Command(command) => self.on_command(command),
                Happening::NoMoreCommands => {
                    open = false;
                    self.release_all();
                    self.retire_spare();
                }
                Happening::CallEnded(ended) => self.on_call_ended(ended),
                Happening::Changed(key) => self.on_hint(&key, &Input::Changed),
                Happening::Doubted(key) => self.on_hint(&key, &Input::Doubted),
                Happening::Witness(event) => self.on_witness_event(event),
                Happening::JobDone => self.maybe_closed(),
                Happening::TimerFired => {
                    self.asleep = None;
                    self.woken_at = self.clock.now();
                }
                Happening::DueEarlier => {}
            }
        }
    }

    /// The instant at which something is due, if that is before the timer fires.
    fn due_before_timer(&self) -> Option<Instant> {
        let limit = self.closing.as_ref().and_then(Closing::limit);
        let due = [self.timers.next(), self.deadlines.next(), self.places.next_at(), limit];
        let next = due.into_iter().flatten().min()?;
        self.asleep.as_ref().is_none_or(|(ends, _)| next < *ends).then_some(next)
    }

    // ── events ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// The next event. The sources take turns at being asked first, so that one that is always ready starves no other.
    async fn next(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>, open: bool) -> Happening {
        let first = self.turn;
        self.turn = (first + 1) % Happening::SOURCES;
        poll_fn(|context| {
            let sources = (first..first + Happening::SOURCES).map(|turn| turn % Happening::SOURCES);
            for source in sources {
                if let Some(happening) = self.poll_source(source, commands, open, context) {
                    return Poll::Ready(happening);
                }
            }
            // A call may have set a deadline, or given its place back, while it was polled.
            if self.due_before_timer().is_some() {
                return Poll::Ready(Happening::DueEarlier);
            }
            Poll::Pending
        })
        .await
    }

    /// Asks one source for an event; `None` if it has none now.
    fn poll_source(
        &mut self,
        source: usize,
        commands: &mut mpsc::UnboundedReceiver<Command>,
        open: bool,
        context: &mut Context<'_>,
    ) -> Option<Happening> {
        match source {
            0 if open => match ready(commands.poll_recv(context))? {
                Some(command) => Some(Happening::Command(command)),
                None => Some(Happening::NoMoreCommands),
            },
            1 => ready(pin!(self.in_flight.next()).poll(context))?.map(Happening::CallEnded),
            2 => ready(pin!(self.hints.next()).poll(context))?.map(Happening::Changed),
            3 => ready(pin!(self.losses.next()).poll(context))?.map(Happening::Doubted),
            4 => ready(pin!(self.witnesses.next()).poll(context))?.map(Happening::Witness),
            5 => ready(pin!(self.background.next()).poll(context))?.map(|()| Happening::JobDone),
            6 => ready(self.asleep.as_mut()?.1.as_mut().poll(context)).map(|()| Happening::TimerFired),
            _ => None,
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Acquire { id, key, params, witnessed, token, failures, recalled, reply_to } => {
                let mut entry = LeaseEntry::new(key, *params, reply_to);
                entry.resumes = token;
                entry.failures = failures;
                self.acquire(id, entry, witnessed, recalled);
            }
            Command::Renew { id, reply } => {
                if let Some(entry) = self.leases.get_mut(&id) {
                    entry.renewal_replies.push(reply);
                    self.step(id, Input::Renew);
                }
            }
            Command::Release { id, reply } => {
                if let Some(entry) = self.leases.get_mut(&id) {
                    entry.release_replies.extend(reply);
                    if entry.machine.is_seeking() && !does(Duty::WatchCancelledAcquires) {
                        return self.forget(id);
                    }
                    if !does(Duty::StopRenewingAtRelease) {
                        self.step(id, Input::Renew);
                    }
                    self.step(id, Input::Release);
                }
            }
            Command::Drained { id } => {
                self.resume_lapsed(id);
                self.step(id, Input::Drained);
            }
            Command::CannotStop { id, because } => {
                self.resume_lapsed(id);
                self.step(id, Input::CannotStop(because));
            }
            Command::Succeeded { id, reply } => {
                self.step(id, Input::Succeeded);
                // After a loss there is no reply.
                if let Some(entry) = self.leases.get(&id).filter(|entry| entry.machine.is_holding()) {
                    let _ = reply.send(deliver::success_answer(entry, &self.store_name));
                }
            }
            Command::Report(report) => self.reporter.report(report),
            Command::Suspect { key, breach } => self.suspect(&key, breach),
            Command::Visit(visit) => self.in_flight.visit(visit),
            Command::ShutDown { reply } => {
                let limit = self.clock.now() + SHUTDOWN_MAX;
                self.closing.get_or_insert_default().wait(limit, reply);
                self.release_all();
                self.retire_spare();
                self.maybe_closed();
            }
        }
    }

    /// Fires every timer that is due, each once. A lease that asks again for a past instant must not keep calls from
    /// completing.
    fn fire_timers(&mut self) {
        let now = self.clock.now();
        self.deadlines.end(now);
        self.places.give(now);
        self.close_in_time(now);
        let due: Vec<_> = std::iter::from_fn(|| self.timers.due(now)).collect();
        for id in due {
            if let Some(entry) = self.leases.get_mut(&id) {
                entry.wake = None;
                self.step(id, Input::Wake);
            }
        }
    }

    fn on_call_ended(&mut self, ended: Option<EndedCall>) {
        let Some(EndedCall { lease, call, answer, was_sent }) = ended else { return };
        let Some(entry) = self.leases.get_mut(&lease) else { return };
        if let Some(failures) = &entry.failures {
            failures.set(answer.error.clone());
        }
        if answer.error.is_some() {
            entry.last_error.clone_from(&answer.error);
            if let (Some(held), Some(error)) = (&entry.held_lease, &entry.last_error) {
                held.set_last_error(Arc::clone(error));
            }
        }
        let now = self.clock.now();
        if was_sent {
            let ttl = entry.timing.ttl().as_duration();
            self.places.call_ended(now, calls::is_sign_of_trouble(&answer.input).then_some(ttl));
        }
        let report = AttemptReport {
            store: Arc::clone(&self.store_name),
            key: entry.key.clone(),
            holder: Arc::clone(&entry.holder),
            token: call.token,
            operation: call.operation,
            outcome: calls::outcome(&answer.input),
            error: answer.error.clone(),
            latency: now.since(call.sent),
        };
        self.reporter.report(Report::Attempt(report));
        let key = entry.key.clone();
        self.check_answer(&key, call.sent, &answer);
        let Some(entry) = self.leases.get_mut(&lease) else { return };
        if let (Input::Read(Ok(look)), Some(known)) = (&answer.input, self.keys.get_mut(&entry.key)) {
            known.worth_logging = logbook_client::is_worth_logging(look, self.store_clock);
            if let Some(recalled) = answer.recalled {
                known.sightings.recall(recalled);
            }
        }
        match &mut entry.witness_setup {
            WitnessSetup::Beside(_) if !does(Duty::KeepEarlyAnswers) => {}
            WitnessSetup::Beside(early) => *early = Some(answer.input),
            WitnessSetup::Done | WitnessSetup::First => self.step(lease, answer.input),
        }
    }

    fn on_hint(&mut self, key: &Key, hint: &Input) {
        let Some(known) = self.keys.get(key) else { return };
        for id in known.leases.clone() {
            self.step(id, hint.clone());
        }
    }

    fn on_witness_event(&mut self, event: WitnessEvent) {
        match event {
            WitnessEvent::Made(id, made) => {
                match self.leases.get_mut(&id) {
                    Some(entry) => {
                        entry.set_witness(made);
                        match std::mem::take(&mut entry.witness_setup) {
                            WitnessSetup::First => self.step(id, Input::Start),
                            WitnessSetup::Beside(Some(early)) => self.step(id, early),
                            WitnessSetup::Beside(None) | WitnessSetup::Done => {}
                        }
                    }
                    // The request was cancelled.
                    None => self.remove_witness(made),
                }
            }
            WitnessEvent::SpareMade(made) => {
                let unneeded = self.witnesses.spare_made(made);
                self.remove_witness(unneeded);
            }
            WitnessEvent::Seen { lease, witness, nonce, sighting } => {
                self.on_sighting(lease, witness, nonce, sighting)
            }
        }
    }

    /// Removes the spare witness: no further lease is granted.
    fn retire_spare(&mut self) {
        let spare = self.witnesses.retire_spare();
        self.remove_witness(spare);
    }

    /// Removes a witness that no record names.
    fn remove_witness(&mut self, witness: Option<Lock>) {
        match witness {
            Some(lock) => self.background.run(move || drop(lock.remove())),
            None => self.maybe_closed(),
        }
    }

    fn on_sighting(
        &mut self,
        id: LeaseId,
        witness: Arc<record::Witness>,
        nonce: record::Nonce,
        sighting: Sighting,
    ) {
        let Some(entry) = self.leases.get_mut(&id) else { return };
        if sighting.same_file && !sighting.is_locked() {
            entry.dead_witness = Some(Arc::clone(&witness));
        }
        self.step(id, Input::Witness { nonce, sighting });
        let seeking = self.leases.get(&id).is_some_and(|entry| entry.machine.is_seeking());
        if seeking && sighting.same_file && sighting.is_locked() {
            self.witnesses.watch(id, &witness, nonce);
        }
    }

    // ── leases ────────────────────────────────────────────────────────────────────────────────────────────────────

    fn acquire(&mut self, id: LeaseId, mut entry: LeaseEntry, witnessed: bool, recalled: Option<Recalled>) {
        if self.closing.is_some() && does(Duty::RefuseAfterShutdown) {
            entry.deny(deliver::shut_down_error(&entry.key, &self.store_name));
            return entry.replies.drain(..).for_each(|answer| answer());
        }
        if let Some(error) = self.refusal_of(&entry) {
            entry.deny(error);
            return self.reply_after(std::mem::take(&mut entry.replies), Vec::new());
        }
        self.make_room_for(&entry.key);
        let known = self.keys.entry(entry.key.clone()).or_default();
        known.leases.push(id);
        if let Some(recalled) = recalled {
            known.sightings.recall(recalled);
        }
        // A contender without a sighting of the key reads first.
        let reads_first = known.sightings.latest().is_none();
        let witness = if witnessed {
            self.witnesses.provide(id, self.entropy.nonce().to_bits())
        } else {
            NewWitness::None
        };
        entry.witness_setup = match witness {
            NewWitness::Ready(lock) => {
                entry.set_witness(Some(lock));
                WitnessSetup::Done
            }
            NewWitness::Pending if !does(Duty::WaitForWitness) => WitnessSetup::Done,
            NewWitness::Pending if reads_first => WitnessSetup::Beside(None),
            NewWitness::Pending => WitnessSetup::First,
            NewWitness::None => WitnessSetup::Done,
        };
        let starts = !matches!(entry.witness_setup, WitnessSetup::First);
        self.insert(id, Box::new(entry));
        if starts {
            self.step(id, Input::Start);
        }
    }

    /// Gives a lease an input, and executes the effects.
    fn step(&mut self, id: LeaseId, input: Input) {
        let Some(entry) = self.leases.get_mut(&id) else { return };
        let (nonce, jitter) = self.entropy.step();
        let now = if does(Duty::ReadClockForEachInput) { self.clock.now() } else { self.woken_at };
        let ambient = Ambient { now, wall: self.clock.wall(), nonce, jitter };
        let mut effects = std::mem::take(&mut self.effects);
        let known = self.keys.get_mut(&entry.key).expect("a lease's key is known");
        let was_wanted = is_wanted(&entry.machine);
        entry.machine.step(&ambient, &mut known.sightings, input, &mut effects);
        if was_wanted && !is_wanted(&entry.machine) {
            self.in_flight.withdraw(id);
        }
        let mut then = None;
        for effect in effects.drain(..) {
            preemption_point();
            match effect {
                Effect::Read => {
                    let key = self.leases[&id].key.clone();
                    let first = self.keys[&key].sightings.latest().is_none();
                    let logbook = self.logbook.clone().filter(|_| first);
                    let time = self.time_of_call(id, ambient.now, Duration::ZERO);
                    self.in_flight.read(id, key, time, logbook);
                }
                Effect::Write(write) => {
                    let first = self.before_write(id, &write);
                    let key = self.leases[&id].key.clone();
                    let interval = self.pace(&key, ambient.now);
                    let time = self.time_of_call(id, ambient.now, interval);
                    self.in_flight.write(id, key, time, first, write);
                }
                Effect::SleepUntil(at) => {
                    if !self.moves_timer(id) {
                        continue;
                    }
                    if let Some(stale) = self.leases.get_mut(&id).and_then(|entry| entry.wake.replace(at)) {
                        self.timers.unset(stale, id);
                    }
                    self.timers.set(at, id);
                }
                Effect::LookAtWitness { witness, nonce } => {
                    if !self.witnesses.look(id, &witness, nonce) {
                        then = Some(Input::Witness { nonce, sighting: Sighting::default() });
                    }
                }
                Effect::Tell(event) => then = self.deliver(id, event).or(then),
            }
        }
        self.effects = effects;
        if let Some(input) = then {
            self.step(id, input);
        }
        self.listen(id);
        self.listen_for_loss(id);
        self.send_replies(id);
    }

    /// Sends the replies that are due. Before that, an orderly leave removes the witness and writes the logbook and the
    /// verdicts: a program may exit as soon as it has its reply.
    fn send_replies(&mut self, id: LeaseId) {
        let Some(entry) = self.leases.get_mut(&id) else { return };
        let answers = std::mem::take(&mut entry.replies);
        let left = entry.machine.left();
        let witness = entry.witness.take_if(|_| matches!(left, Some(Left::Vacated | Left::Nothing)));
        let logbook = self.logbook.as_ref().filter(|_| std::mem::take(&mut entry.logbook_pending));
        let write = logbook.map(|logbook| logbook.write_job());
        let removed = witness.map(|witness| self.background.job(move || drop(witness.remove())));
        let written = write.map(|write| self.background.limited_job(write));
        let first = removed.into_iter().chain(written).collect();
        if does(Duty::RemoveWitnessBeforeReply) {
            self.reply_after(answers, first);
        } else {
            answers.into_iter().for_each(|answer| answer());
            self.reply_after(Vec::new(), first);
        }
        if left.is_some() || self.leases.get(&id).is_some_and(|entry| entry.detached) {
            self.forget(id);
        }
    }

    /// True if the timer of this lease moves to the next instant.
    fn moves_timer(&self, id: LeaseId) -> bool {
        let Some(entry) = self.leases.get(&id) else { return true };
        let stays = entry.wake.is_some() && !does(Duty::MoveTimers);
        let relies_on_hints =
            entry.machine.is_seeking() && self.hints.listens_to(&entry.key) && !does(Duty::PollDespiteHints);
        !stays && !relies_on_hints
    }

    /// Time of a call of this lease.
    ///
    /// A renewal waits for a place for half of its timeout at most, and the other half is left for its answer. A poll may
    /// wait longer: when many contenders start at once, each of them gets its turn.
    fn time_of_call(&self, id: LeaseId, sent: Instant, interval: Duration) -> CallTime {
        let entry = &self.leases[&id];
        let timeout = entry.timing.timeout();
        let (urgency, wait_max) = if entry.machine.is_seeking() {
            (Urgency::Poll, entry.timing.ttl().as_duration())
        } else {
            // A lease that ends has no deadline. The end of its timeout ranks it among the renewals.
            let deadline = entry.machine.term_ref().map(|term| term.deadline);
            (Urgency::Renewal(deadline.unwrap_or(sent + interval + timeout)), timeout / 2)
        };
        CallTime { sent, interval, timeout, urgency, wait_max }
    }

    /// Listens for hints while a contender waits for the key, and only then, because a subscription costs the store
    /// something.
    fn listen(&mut self, id: LeaseId) {
        let Some(entry) = self.leases.get(&id) else { return };
        let key = entry.key.clone();
        if !entry.machine.is_seeking() {
            self.witnesses.stop(id);
        }
        if entry.machine.is_waiting() && !self.hints.listens_to(&key) {
            if self.hints.listen(&key) {
                // A change between the read and now gave no hint.
                self.step(id, Input::Changed);
            }
        } else if !entry.machine.is_seeking() && self.hints.listens_to(&key) {
            let seeks = |id| self.leases.get(id).is_some_and(|entry| entry.machine.is_seeking());
            if !self.keys[&key].leases.iter().any(seeks) {
                self.hints.stop(&key);
            }
        }
    }

    /// Listens for hints about a loss while the key is held here, so that the holder stops before its next renewal.
    fn listen_for_loss(&mut self, id: LeaseId) {
        let Some(entry) = self.leases.get(&id) else { return };
        let key = entry.key.clone();
        let holds =
            |id| self.leases.get(id).is_some_and(|entry| entry.machine.is_holding() && !entry.detached);
        let held = self.keys.get(&key).is_some_and(|known| known.leases.iter().any(holds));
        match (held, self.losses.listens_to(&key)) {
            (true, false) => drop(self.losses.listen(&key)),
            (false, true) => self.losses.stop(&key),
            (true, true) | (false, false) => {}
        }
    }

    fn forget(&mut self, id: LeaseId) {
        let Some(entry) = self.leases.remove(&id) else { return };
        self.places.remove_lease(entry.timing.period());
        if let Some(wake) = entry.wake {
            self.timers.unset(wake, id);
        }
        if let Some(known) = self.keys.get_mut(&entry.key) {
            known.leases.retain(|other| *other != id);
        }
        if entry.machine.has_lapsed_under_work() {
            self.lapsed.insert(id, entry);
        }
        self.maybe_closed();
    }

    /// Keeps a lapsed lease again: its work has ended or cannot be stopped, and perhaps no contender has been granted the
    /// lease yet.
    fn resume_lapsed(&mut self, id: LeaseId) {
        let Some(entry) = self.lapsed.remove(&id) else { return };
        self.make_room_for(&entry.key);
        self.keys.entry(entry.key.clone()).or_default().leases.push(id);
        self.insert(id, entry);
    }

    fn insert(&mut self, id: LeaseId, entry: Box<LeaseEntry>) {
        self.places.add_lease(entry.timing.period());
        self.leases.insert(id, entry);
    }

    fn release_all(&mut self) {
        let waits = |entry: &LeaseEntry| entry.machine.is_seeking() && !does(Duty::EndRequestsAtShutdown);
        let ending = self.leases.iter().filter(|(_, entry)| !waits(entry));
        let ids: Vec<_> = ending.map(|(id, _)| *id).collect();
        // The time of a shutdown is limited, and its calls are few: one for each lease.
        self.places.lift_pace();
        for id in ids {
            if let Some(held) = self.leases.get(&id).and_then(|entry| entry.held_lease.as_ref()) {
                held.latch(Lost::Released);
            }
            self.step(id, Input::Release);
        }
    }

    /// True if the keeper may end without leaving anything behind.
    fn is_idle(&self) -> bool {
        self.leases.is_empty() && self.background.is_idle() && !self.witnesses.is_making()
    }

    fn maybe_closed(&mut self) {
        if self.is_idle()
            && let Some(closing) = &mut self.closing
        {
            closing.reply_to_all();
        }
    }

    /// Forgets an unused key, if there are too many. Its next acquire costs one more read.
    fn make_room_for(&mut self, key: &Key) {
        let keys_max = simulated(|host| host.keys_max()).unwrap_or(KEYS_MAX);
        if self.keys.len() < keys_max || self.keys.contains_key(key) {
            return;
        }
        let is_unused = |known: &KeyState| known.leases.is_empty() || !does(Duty::KeepUsedKeys);
        let idle = self.keys.iter().find(|(_, known)| is_unused(known)).map(|(key, _)| key.clone());
        if let Some(idle) = idle {
            self.keys.remove(&idle);
        }
    }
}

/// Maximum number of keys that the keeper remembers.
const KEYS_MAX: usize = 10_000;
