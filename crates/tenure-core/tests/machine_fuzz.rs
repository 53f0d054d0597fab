//! Drives the machine with inputs in every order, legal and odd. The test finds panics, and machines that are stuck or
//! spin. It also finds states that no order may produce: two believers, repeated tokens, guessed outcomes, lost foreign
//! records.
//!
//! One thread, one clock, no ambient randomness: a failure names its seed. `MACHINE_FUZZ_SEED=n` runs only that seed,
//! with a trace. `MACHINE_FUZZ_SEEDS=n` sets the number of seeds.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{
    AcquireMode, AcquireParams, Ambient, Content, Effect, Event, Fault, Heed, Input, Look, Lost, Machine,
    Outcome, Patience, Purpose, Seen, Sighting, Sightings, TermRef, Write,
};
use tenure_core::record::{self, Nonce, Record, State, Witness};
use tenure_core::{Drift, Holder, Instant, ProcessInfo, Timing, Token, WallTime};
use tenure_store::{Expect, Reason, StoreClock, StoreTime, Version};

const SEEDS: u64 = 2_000;
const EVENTS: u32 = 600;
const SLOTS_MAX: usize = 6;
/// Maximum number of calls of one machine at one instant; more is hammering. Two lost answers in a row get a pause.
const CALLS_PER_INSTANT_MAX: u32 = 12;

#[test]
fn no_order_of_inputs_breaks_the_machine() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("MACHINE_FUZZ_SEED") {
        World::new(seed, true).run();
        return;
    }
    let mut inputs = 0;
    for seed in 0..number("MACHINE_FUZZ_SEEDS").unwrap_or(SEEDS) {
        let run = std::panic::catch_unwind(|| World::new(seed, false).run());
        inputs += run.unwrap_or_else(|panic| {
            eprintln!(
                "replay: MACHINE_FUZZ_SEED={seed} cargo test -p tenure --test machine_fuzz -- --nocapture"
            );
            std::panic::resume_unwind(panic)
        });
    }
    println!("{inputs} inputs");
}

/// SplitMix64: every number follows from the seed.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// One lease and its driver.
#[derive(Debug)]
struct Slot {
    machine: Machine,
    process: usize,
    wake: Option<Instant>,
    call: Option<Call>,
    look_at: Option<(Arc<Witness>, Nonce)>,
    /// Deadline of its belief; zero once it has ended.
    belief: Instant,
    /// The term of its belief.
    term: Nonce,
    witnessed: bool,
    secret: Option<[u8; 32]>,
    /// The latest handle, if the term was left to a script: the machine gets no more steps, and the belief stays.
    script: Option<TermRef>,
    /// The handle with which it continues.
    resumes: Option<TermRef>,
    /// The script whose command it is.
    command_of: Option<usize>,
    /// True if the loss was reported, and work may still run.
    undrained: bool,
    /// Limit of the wait for the grant.
    limit: Option<Instant>,
    crashed: bool,
    calls_now: u32,
    spins: u32,
}

/// A usable handle, and its origin.
#[derive(Clone, Debug)]
struct KnownHandle {
    handle: TermRef,
    secret: Option<[u8; 32]>,
    /// The slot of the script that got it; `None` if it was saved by a process that crashed.
    script: Option<usize>,
}

/// A pending call. `served` is the result of the store, once there is one.
#[derive(Debug)]
enum Call {
    Read { served: Option<Look> },
    Write { write: Write, sent: Instant, served: Option<Option<Version>> },
}

struct World {
    dice: Dice,
    loud: bool,
    now: Instant,
    nonces: u128,
    /// True if the key is deleted, restored and overwritten from outside: then only panics, spinning and hammering
    /// count.
    tampered: bool,
    /// True if some contenders take the lease without waiting. S2 excludes that by design, so belief is not checked;
    /// everything else is.
    takes: bool,
    faults: u64,
    /// Fault of every write after this many events: an outage of writes alone.
    stubborn: Option<(u32, Fault)>,
    events: u32,
    clock: StoreClock,
    tick: Duration,
    content: Content,
    versions: u64,
    /// Requests that the machine gave up and that may still arrive.
    late: Vec<(usize, Write, Instant)>,
    sightings: Vec<Sightings>,
    slots: Vec<Slot>,
    handles: Vec<KnownHandle>,
    older: Vec<Record>,
    granted: Token,
    /// Nonces of writes that landed, with the latest deadline that each allows.
    landed: HashMap<Nonce, Instant>,
    listed: HashSet<(usize, Nonce)>,
    inputs: u64,
}

impl World {
    fn new(seed: u64, loud: bool) -> Self {
        let mut dice = Dice(seed ^ 0x5EED);
        let tampered = dice.chance(25);
        let takes = dice.chance(10);
        let clock = dice.pick(&[StoreClock::Nothing, StoreClock::Floors, StoreClock::Ages]);
        let tick = dice.pick(&[Duration::ZERO, Duration::from_secs(1)]);
        let faults = dice.pick(&[0, 5, 20, 50, 90]);
        let unreachable = Fault::Refused(Reason::Unreachable);
        let outage = [Fault::Unknown, Fault::Throttled(None), unreachable][dice.below(3) as usize];
        let stubborn = dice.chance(20).then(|| (dice.below(u64::from(EVENTS)) as u32, outage));
        Self {
            dice,
            loud,
            now: Instant::from_nanos(1_000_000_000_000),
            nonces: 0,
            tampered,
            takes,
            faults,
            stubborn,
            events: 0,
            clock,
            tick,
            content: Content::Absent,
            versions: 0,
            late: vec![],
            sightings: vec![Sightings::default(); 3],
            slots: vec![],
            handles: vec![],
            older: vec![],
            granted: Token::ZERO,
            landed: HashMap::new(),
            listed: HashSet::new(),
            inputs: 0,
        }
    }

    fn run(mut self) -> u64 {
        for _ in 0..EVENTS {
            self.events += 1;
            self.event();
        }
        self.stubborn = None;
        self.come_to_rest();
        self.inputs
    }

    fn say(&self, what: impl Debug) {
        if self.loud {
            println!("{} {what:?}", self.now);
        }
    }

    // ── events ────────────────────────────────────────────────────────────────────────────────────────────────────

    fn event(&mut self) {
        self.now = self.now + Duration::from_nanos(self.dice.below(2));
        if self.slots.is_empty() {
            return self.spawn();
        }
        let id = self.any_slot();
        match self.dice.below(100) {
            0..=7 => self.spawn(),
            8..=9 => self.crash(id),
            10..=12 => self.detach(id),
            13..=29 => self.serve(id),
            30..=54 => self.answer(id),
            // Answered at once, again and again: a machine that does not pause hammers.
            55..=59 => (0..2 * CALLS_PER_INSTANT_MAX).for_each(|_| self.answer(id)),
            60..=64 => self.land_late(),
            65..=79 => self.advance(),
            80..=84 => self.witness(id),
            85..=92 => self.odd(id),
            93..=96 => self.drain(id),
            _ if self.tampered => self.tamper(),
            _ => self.wake_late(),
        }
        self.fire();
    }

    /// A random slot, in most cases a live one.
    fn any_slot(&mut self) -> usize {
        let alive: Vec<_> = (0..self.slots.len()).filter(|id| self.slots[*id].is_alive()).collect();
        if alive.is_empty() || self.dice.chance(3) {
            self.dice.below(self.slots.len() as u64) as usize
        } else {
            self.dice.pick(&alive)
        }
    }

    fn spawn(&mut self) {
        if self.slots.iter().filter(|slot| slot.is_alive()).count() >= SLOTS_MAX {
            return;
        }
        let ttl = self.dice.pick(&[1_000, 2_000, 5_000]);
        let timing = Timing::new(Duration::from_millis(ttl)).unwrap();
        let id = self.slots.len();
        let process = self.dice.below(self.sightings.len() as u64) as usize;
        let witness = Witness::new(format!("w{id}"), id as u64);
        let wait = Duration::from_millis(self.dice.below(12_000));
        let known = if self.handles.is_empty() {
            None
        } else {
            Some(self.handles[self.dice.below(self.handles.len() as u64) as usize].clone())
        };
        let secret = self.dice.chance(50).then_some([7; 32]);
        let mut params = AcquireParams {
            holder: Arc::new(Holder::new(&format!("h{}", id % 3)).unwrap()),
            timing,
            store_clock: self.clock,
            clock_tick: self.tick,
            process: Some(Arc::new(ProcessInfo::default().with_pid(id as u32))),
            witness: self.dice.chance(50).then(|| Arc::new(witness)),
            secret_hash: secret,
            value: None,
            patience: self.dice.pick(&[Patience::Once, Patience::Forever, Patience::Until(self.now + wait)]),
            strict: self.dice.chance(15),
            manual: self.dice.chance(25),
            hint_pause: self.dice.pick(&[Duration::ZERO, timing.retry()]),
            heed: self.dice.pick(&[
                Heed::Ttl,
                Heed::Tree { limit: None },
                Heed::Tree { limit: Some(timing.ttl().as_duration()) },
            ]),
            once_per: self.dice.chance(20).then_some(wait),
            mode: match (self.dice.below(100), &known) {
                (0..20, _) if self.takes => AcquireMode::TakeNow("at once".into()),
                (0..20, _) => AcquireMode::Revoke("because".into()),
                (20..50, Some(known)) => AcquireMode::Resume(known.handle.clone()),
                (50..65, Some(known)) => AcquireMode::Leave(known.handle.clone()),
                (65..75, Some(known)) => {
                    AcquireMode::EndTerm { term: known.handle.term, because: "resign".into() }
                }
                _ => AcquireMode::Wait,
            },
        };
        let command_of = known.and_then(|known| self.by_handle(&mut params, known));
        let resumes = match &params.mode {
            AcquireMode::Resume(handle) => Some(handle.clone()),
            _ => None,
        };
        let limit = match (params.patience, &params.mode) {
            // A machine that leaves waits for the pending answer.
            (_, AcquireMode::Leave(_)) | (Patience::Once | Patience::Forever, _) => None,
            // The limit does not interrupt a first grant, which may wait for the store's clock.
            (Patience::Until(limit), _) => {
                Some(limit + 2 * params.timing.drift().lengthen(params.clock_tick))
            }
        };
        let (witnessed, secret) = (params.witness.is_some(), params.secret_hash);
        self.say(("spawn", id, &params.patience, &params.mode));
        self.slots.push(Slot {
            machine: Machine::new(params),
            process,
            wake: None,
            call: None,
            look_at: None,
            belief: Instant::default(),
            term: Nonce::ZERO,
            witnessed,
            secret,
            script: None,
            resumes,
            command_of,
            undrained: false,
            limit,
            crashed: false,
            calls_now: 0,
            spins: 0,
        });
        self.step(id, Input::Start);
    }

    /// Sets up a machine that continues or ends a term by a handle. Returns the script that it is a command of.
    fn by_handle(&mut self, params: &mut AcquireParams, known: KnownHandle) -> Option<usize> {
        let leaves = match &params.mode {
            AcquireMode::Resume(_) => false,
            AcquireMode::Leave(_) => true,
            AcquireMode::Wait
            | AcquireMode::Revoke(_)
            | AcquireMode::TakeNow(_)
            | AcquireMode::EndTerm { .. } => return None,
        };
        if self.dice.chance(90) {
            params.secret_hash = known.secret;
            params.timing = Timing::new(known.handle.ttl.as_duration()).unwrap();
        }
        let script = known.script?;
        let current = self.slots[script].script.as_ref() == Some(&known.handle);
        if leaves && !current {
            // A used copy: it ends nothing, and the script continues.
            return None;
        }
        if leaves || params.witness.is_some() {
            // The process that releases a handle, or continues with it as a process, has made sure that no other one
            // acts under it.
            self.slots[script].belief = Instant::default();
            return None;
        }
        params.manual = true;
        Some(script)
    }

    /// The granted command ends, and a script has its handle.
    fn detach(&mut self, id: usize) {
        let (now, slot) = (self.now, &mut self.slots[id]);
        if slot.crashed || slot.witnessed || slot.belief <= now || slot.call.is_some() {
            return;
        }
        let Some(handle) = slot.machine.term_ref() else { return };
        (slot.crashed, slot.wake, slot.look_at, slot.limit) = (true, None, None, None);
        slot.script = Some(handle.clone());
        self.handles.push(KnownHandle { handle, secret: slot.secret, script: Some(id) });
        self.say(("detach", id));
    }

    /// The process dies: its belief ends, and its pending write may still arrive. Its handle may have been saved.
    fn crash(&mut self, id: usize) {
        self.say(("crash", id));
        let slot = &self.slots[id];
        if let Some(handle) = slot.machine.term_ref().filter(|_| !slot.crashed) {
            self.handles.push(KnownHandle { handle, secret: slot.secret, script: None });
        }
        if let Some(Call::Write { write, sent, served: None }) = self.slots[id].call.take() {
            self.late.push((id, write, sent));
        }
        let slot = &mut self.slots[id];
        (slot.crashed, slot.belief, slot.wake, slot.look_at) = (true, Instant::default(), None, None);
        slot.limit = None;
        let process = slot.process;
        if !self.slots.iter().any(|slot| slot.process == process && slot.is_alive()) {
            // Its process has exited. The next one has seen nothing itself, and may recall what this one saw.
            let saw = std::mem::take(&mut self.sightings[process]).latest().and_then(Seen::to_recall);
            if let Some(saw) = saw.filter(|_| self.dice.chance(50)) {
                self.sightings[process].recall(saw);
            }
        }
    }

    /// The store performs the call, and the answer is pending.
    fn serve(&mut self, id: usize) {
        match self.slots[id].call.take() {
            Some(Call::Read { served: None }) => {
                let served = Some(self.look());
                self.slots[id].call = Some(Call::Read { served });
            }
            Some(Call::Write { write, sent, served: None })
                if self.stubborn.is_none_or(|(from, _)| from > self.events) =>
            {
                let served = Some(self.apply(id, &write, sent));
                self.slots[id].call = Some(Call::Write { write, sent, served });
            }
            call => self.slots[id].call = call,
        }
    }

    fn answer(&mut self, id: usize) {
        let wrong = self.dice.chance(self.faults);
        match self.slots[id].call.take() {
            None => {}
            Some(Call::Read { .. }) if wrong => {
                let fault = self.fault();
                self.step(id, Input::Read(Err(fault)));
            }
            Some(Call::Read { served }) => {
                let look = served.unwrap_or_else(|| self.look());
                self.step(id, Input::Read(Ok(look)));
            }
            Some(Call::Write { served: None, .. })
                if self.stubborn.is_some_and(|(from, _)| from <= self.events) =>
            {
                let fault = self.stubborn.expect("just seen").1;
                self.step(id, Input::Written(Outcome::Fault(fault)));
            }
            Some(Call::Write { write, sent, served: None }) if wrong => {
                let fault = self.fault();
                if !matches!(fault, Fault::Refused(_)) {
                    self.late.push((id, write, sent));
                }
                self.step(id, Input::Written(Outcome::Fault(fault)));
            }
            // The answer is lost, or a balancer repeated the request and forwarded the second answer.
            Some(Call::Write { served: Some(_), .. }) if wrong => {
                let outcome = match self.fault() {
                    Fault::Refused(_) => Outcome::Conflict,
                    fault => Outcome::Fault(fault),
                };
                self.step(id, Input::Written(outcome));
            }
            Some(Call::Write { write, sent, served }) => {
                let served = served.unwrap_or_else(|| self.apply(id, &write, sent));
                let time = self.time();
                let outcome = served.map_or(Outcome::Conflict, |version| Outcome::Applied { version, time });
                self.step(id, Input::Written(outcome));
            }
        }
    }

    fn fault(&mut self) -> Fault {
        match self.dice.below(8) {
            0 => Fault::Throttled(None),
            1 => Fault::Throttled(Some(Duration::from_secs(self.dice.pick(&[0, 1, 60, 1 << 40])))),
            2 => Fault::Refused(Reason::Unreachable),
            3 if self.dice.chance(20) => Fault::Refused(Reason::Denied),
            _ => Fault::Unknown,
        }
    }

    fn land_late(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let at = self.dice.below(self.late.len() as u64) as usize;
        let (id, write, sent) = self.late.swap_remove(at);
        self.say(("late", id, write.purpose));
        self.apply(id, &write, sent);
    }

    fn advance(&mut self) {
        let next = self.slots.iter().filter_map(|slot| slot.wake).min();
        let jump = match self.dice.below(20) {
            0..=13 => next.map_or(Duration::from_millis(100), |next| next.since(self.now)),
            14..=17 => Duration::from_millis(self.dice.below(1_500)),
            18 => Duration::from_secs(self.dice.below(20)),
            // Suspended for hours.
            _ => Duration::from_secs(3_600 * self.dice.below(12)),
        };
        self.now = self.now + jump;
        if jump > Duration::ZERO {
            self.slots.iter_mut().for_each(|slot| (slot.calls_now, slot.spins) = (0, 0));
        }
    }

    /// A timer that fires late, or that is not the latest requested one.
    fn wake_late(&mut self) {
        let id = self.any_slot();
        self.step(id, Input::Wake);
    }

    fn witness(&mut self, id: usize) {
        let Some((witness, nonce)) = self.slots[id].look_at.take() else { return };
        let owner = witness.inode as usize;
        let acts = &self.slots[owner];
        let guards_locked =
            !acts.crashed && (!acts.machine.is_ended() || acts.undrained || acts.belief > self.now);
        let lists_nonce = self.listed.contains(&(owner, nonce));
        let tree_locked = self.dice.chance(20);
        let sighting = if self.dice.chance(70) {
            Sighting { found: true, same_file: true, guards_locked, tree_locked, lists_nonce }
        } else {
            Sighting::default()
        };
        self.step(id, Input::Witness { nonce, sighting });
    }

    /// Inputs from users and drivers that may come at any time.
    fn odd(&mut self, id: usize) {
        let input = match self.dice.below(11) {
            0 => Input::Renew,
            1 | 2 => {
                self.slots[id].belief = Instant::default();
                Input::Release
            }
            3 => Input::Changed,
            4 => Input::Doubted,
            5 => {
                self.slots[id].belief = Instant::default();
                Input::Latched
            }
            // Sent although nothing was lost: the last work may end just before the loss is reported.
            6 if !self.slots[id].undrained => Input::Drained,
            7 => {
                // Another thread latches, and the machine does not learn of it.
                self.slots[id].belief = Instant::default();
                return;
            }
            8 => Input::CannotStop("it is not mine".into()),
            9 => Input::Succeeded,
            _ => {
                self.nonces += 1;
                Input::Witness { nonce: Nonce::from_bits(self.nonces), sighting: Sighting::default() }
            }
        };
        self.step(id, input);
    }

    fn drain(&mut self, id: usize) {
        if std::mem::take(&mut self.slots[id].undrained) {
            self.step(id, Input::Drained);
        }
    }

    fn tamper(&mut self) {
        self.versions += 1;
        let version = Version::new(self.versions.to_string());
        let older = self.older.len() as u64;
        self.content = match self.dice.below(6) {
            0 => Content::Absent,
            1 => Content::Foreign { what: "not one of ours".into(), version },
            2 => match &self.content {
                Content::Record(record, _) => {
                    let closure = record::Closure::new("op", "retired");
                    let closed = bare(record, State::Closed(Arc::new(closure)));
                    Content::Record(Arc::new(closed), version)
                }
                _ => return,
            },
            3 => match &self.content {
                Content::Record(record, _) if record.ttl.is_some() => {
                    Content::Record(Arc::new(bare(record, State::Reserved("h1".into()))), version)
                }
                _ => return,
            },
            _ if older > 0 => {
                let at = self.dice.below(older) as usize;
                Content::Record(Arc::new(self.older[at].clone()), version)
            }
            _ => return,
        };
        self.say(("tamper", &self.content));
    }

    // ── the store ─────────────────────────────────────────────────────────────────────────────────────────────────

    fn time(&self) -> Option<StoreTime> {
        let micros = 1_700_000_000_000_000 + self.now.as_nanos() / 1_000;
        let micros = micros - micros % (self.tick.as_micros() as u64).max(1);
        (self.clock > StoreClock::Nothing).then(|| StoreTime::from_micros(micros))
    }

    fn look(&self) -> Look {
        Look { content: self.content.clone(), age: None, time: self.time() }
    }

    /// Applies one conditional write; `None` is a conflict.
    fn apply(&mut self, id: usize, write: &Write, sent: Instant) -> Option<Version> {
        let matches = match (&self.content, &write.expect) {
            (Content::Absent, Expect::Absent) => true,
            (Content::Record(_, is) | Content::Foreign { version: is, .. }, Expect::Version(was)) => {
                is == was
            }
            _ => false,
        };
        if !matches {
            return None;
        }
        let before = std::mem::replace(&mut self.content, Content::Absent);
        self.check_applied(id, write, &before);
        self.versions += 1;
        let version = Version::new(self.versions.to_string());
        self.say(("applied", id, write.purpose, &version, write.record.token));
        self.content = Content::Record(Arc::clone(&write.record), version.clone());
        self.older.push((*write.record).clone());
        let ttl = write.record.ttl.unwrap_or_default().as_duration();
        self.landed.insert(write.record.nonce, sent + Drift::DEFAULT.shorten(ttl));
        Some(version)
    }

    fn check_applied(&mut self, id: usize, write: &Write, before: &Content) {
        let new = &write.record;
        assert!(!matches!(before, Content::Foreign { .. }), "S9: {id} overwrote a foreign record");
        let old = match before {
            Content::Record(old, _) => old,
            _ => return assert_eq!(write.purpose, Purpose::Plant, "only a plant creates"),
        };
        assert!(new.token >= old.token, "S1: {:?} made the token go back", write.purpose);
        assert!(new.sequence > old.sequence, "the sequence is never reset");
        let reports = new.last_success != old.last_success;
        assert!(
            !reports || (write.purpose == Purpose::Vacate && new.last_success.is_some()),
            "only a release reports a success, and none forgets one"
        );
        let process = new.process.as_ref();
        assert!(
            process.is_none_or(|process| process.term == new.term && write.purpose != Purpose::Vacate),
            "{:?} left the process of another term",
            write.purpose
        );
        match write.purpose {
            Purpose::Plant => panic!("a plant replaced something"),
            Purpose::Grant => {
                assert_eq!(
                    process.and_then(|process| process.info.pid()),
                    Some(id as u32),
                    "a grant names its own"
                );
                assert!(
                    self.tampered || new.token > self.granted,
                    "S1: {} after {}",
                    new.token,
                    self.granted
                );
                self.granted = self.granted.max(new.token);
                let believer = self.slots.iter().position(|slot| slot.belief > self.now);
                assert!(!self.is_exclusive() || believer.is_none(), "S2: {id} was granted over {believer:?}");
            }
            _ => {
                let vacates = write.purpose == Purpose::Vacate;
                assert!(
                    vacates || new.secret_hash == old.secret_hash,
                    "{:?} with another secret",
                    write.purpose
                );
                let used = self.slots[id].resumes.as_ref().filter(|_| write.purpose == Purpose::Resume);
                assert!(
                    used.is_none_or(|used| used.nonce == old.nonce),
                    "S6: the handle of {id} was good twice"
                );
                let acts = |slot: &Slot| slot.belief > self.now && slot.term == old.term;
                let believer = self.slots.iter().position(acts).filter(|_| vacates && self.is_exclusive());
                assert!(believer.is_none(), "S6: {id} vacated what {believer:?} believes");
                assert_eq!(new.term, old.term, "{:?} of another term", write.purpose);
                assert_eq!((new.token, new.ttl), (old.token, old.ttl), "fixed for a term");
            }
        }
    }

    // ── the driver ────────────────────────────────────────────────────────────────────────────────────────────────

    fn fire(&mut self) {
        loop {
            let due = |slot: &Slot| slot.wake.is_some_and(|at| at <= self.now);
            let Some(id) = self.slots.iter().position(due) else { break };
            self.slots[id].wake = None;
            let calls = self.slots[id].calls_now;
            self.step(id, Input::Wake);
            let slot = &mut self.slots[id];
            let again = slot.wake.is_some_and(|at| at <= self.now) && slot.calls_now == calls;
            slot.spins = if again { slot.spins + 1 } else { 0 };
            assert!(slot.spins < 5, "{id} spins: it asks to be woken in the past: {:?}", slot.machine);
        }
        let late = self.slots.iter().find(|slot| slot.limit.is_some_and(|limit| limit <= self.now));
        assert!(late.is_none(), "a contender waits longer than its limit: {late:?}");
    }

    fn step(&mut self, id: usize, input: Input) {
        if self.slots[id].crashed {
            return;
        }
        self.say((id, &input));
        self.inputs += 1;
        self.nonces += 1;
        let ambient = Ambient {
            now: self.now,
            wall: WallTime::from_millis(self.now.as_nanos() / 1_000_000),
            nonce: Nonce::from_bits(self.nonces),
            jitter: self.dice.roll() as u32,
        };
        let mut effects = vec![];
        let slot = &mut self.slots[id];
        slot.machine.step(&ambient, &mut self.sightings[slot.process], input, &mut effects);
        for effect in effects {
            self.obey(id, effect);
        }
        let slot = &self.slots[id];
        let waits = slot.call.is_some() || slot.wake.is_some() || slot.look_at.is_some();
        assert!(waits || slot.machine.is_ended(), "{id} is stuck: {:?}", slot.machine);
        assert!(slot.calls_now <= CALLS_PER_INSTANT_MAX, "{id} hammers the store: {:?}", slot.machine);
        let believers: Vec<_> =
            (0..self.slots.len()).filter(|id| self.slots[*id].belief > self.now).collect();
        assert!(!self.is_exclusive() || believers.len() <= 1, "S2: {believers:?} believe at once");
    }

    /// True if S2 is guaranteed.
    fn is_exclusive(&self) -> bool {
        !self.tampered && !self.takes
    }

    fn obey(&mut self, id: usize, effect: Effect) {
        self.say((id, &effect));
        let now = self.now;
        let slot = &mut self.slots[id];
        match effect {
            Effect::Read => {
                assert!(slot.call.replace(Call::Read { served: None }).is_none(), "one call at a time");
                slot.calls_now += 1;
            }
            Effect::Write(write) => {
                record::check(&write.record)
                    .unwrap_or_else(|foreign| panic!("it cannot be read back: {foreign}"));
                let acting = slot.belief > now || slot.undrained;
                assert!(write.purpose != Purpose::Vacate || !acting, "{id} vacates under work");
                assert!(self.listed.insert((id, write.record.nonce)), "a nonce is used once");
                let call = Call::Write { write, sent: now, served: None };
                assert!(slot.call.replace(call).is_none(), "one call at a time");
                slot.calls_now += 1;
            }
            Effect::SleepUntil(at) => slot.wake = Some(at),
            Effect::LookAtWitness { witness, nonce } => slot.look_at = Some((witness, nonce)),
            Effect::Tell(event) => self.told(id, event),
        }
    }

    fn told(&mut self, id: usize, event: Event) {
        let now = self.now;
        let slot = &mut self.slots[id];
        match event {
            Event::Granted { term, deadline, .. } => {
                assert!(deadline > now, "{id} was granted what has run out");
                assert!(self.landed.contains_key(&term), "S5: {id} was told of a grant that never landed");
                (slot.belief, slot.limit, slot.term) = (deadline, None, term);
                let in_time = slot.resumes.as_ref().is_none_or(|handle| handle.deadline > now);
                assert!(in_time, "S6: {id} goes on after the deadline of its handle");
                if let Some(script) = slot.command_of {
                    self.hand_over(id, script);
                }
            }
            Event::Renewed { deadline } => {
                let proof = slot.machine.record().map(|record| record.nonce);
                let good = proof.and_then(|nonce| self.landed.get(&nonce)).copied();
                assert!(
                    self.tampered || good.is_some_and(|good| deadline <= good),
                    "S5: belief beyond {good:?}"
                );
                // As the keeper does: an ended belief is not extended, and the machine receives an input.
                if slot.belief > now {
                    slot.belief = deadline;
                } else {
                    slot.belief = Instant::default();
                    self.step(id, Input::Latched);
                }
            }
            Event::Lost(Lost::Superseded { .. }) if !self.tampered => {
                let ours = matches!(&self.content, Content::Record(there, _) if there.is_held()
                    && self.listed.contains(&(id, there.holders_nonce())));
                assert!(!ours, "S5: {id} took its own write for a rival's");
                (slot.belief, slot.undrained) = (Instant::default(), true);
            }
            Event::Lost(_) => (slot.belief, slot.undrained) = (Instant::default(), true),
            Event::Denied(_) => {
                assert_eq!(slot.belief, Instant::default(), "denied while held");
                slot.limit = None;
            }
            Event::Left(_) => {
                assert!(slot.belief <= now, "left while held");
                slot.limit = None;
            }
            Event::AtRisk(_) | Event::Keeping { .. } | Event::Outlived { .. } | Event::WentBack { .. } => {}
        }
    }

    /// A command of a script has continued the term: it ends, and its script has the next handle.
    fn hand_over(&mut self, id: usize, script: usize) {
        let slot = &mut self.slots[id];
        (slot.crashed, slot.belief, slot.wake) = (true, Instant::default(), None);
        let handle = slot.machine.term_ref().expect("it was granted");
        let known = KnownHandle { handle: handle.clone(), secret: slot.secret, script: Some(script) };
        let script = &mut self.slots[script];
        if script.belief > self.now {
            script.belief = handle.deadline;
            script.script = Some(handle);
        }
        self.handles.push(known);
    }

    // ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// The faults end and every machine releases. Every machine must have ended after two of the longest ttls.
    fn come_to_rest(&mut self) {
        self.say("rest");
        self.faults = 0;
        let end = self.now + Duration::from_secs(11);
        for id in 0..self.slots.len() {
            self.slots[id].belief = Instant::default();
            self.step(id, Input::Release);
        }
        while self.now < end {
            for id in 0..self.slots.len() {
                self.drain(id);
                self.witness(id);
                self.answer(id);
            }
            self.fire();
            if self.slots.iter().all(|slot| slot.call.is_none() && slot.look_at.is_none()) {
                let next = self.slots.iter().filter_map(|slot| slot.wake).min().unwrap_or(end);
                if next > self.now {
                    self.slots.iter_mut().for_each(|slot| slot.calls_now = 0);
                }
                self.now = self.now.max(next.min(end));
            }
        }
        let left = self.slots.iter().find(|slot| slot.is_alive());
        assert!(left.is_none(), "a machine never ended: {left:?}");
    }
}

impl Slot {
    fn is_alive(&self) -> bool {
        !self.crashed && !self.machine.is_ended()
    }
}

/// The record without the fields of a holder.
fn bare(record: &Record, state: State) -> Record {
    let mut bare = record.clone();
    (bare.holder, bare.witness, bare.secret_hash, bare.state) = (None, None, None, state);
    bare
}
