//! One operation stepped by hand: orders of events that occur once in a million on a real store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Expect, Reason, StoreClock, StoreTime, Version};

use super::*;
use crate::machine::{
    Ambient, Content, Effect, Event, Fault, Input, Look, Outcome, Purpose, Sightings, Standard, Write,
};
use crate::record::{Nonce, Record, State, Ttl, decode, encode};
use crate::{Drift, Holder, Instant, Token, WallTime};

const TTL: Duration = Duration::from_secs(10);
/// Time after which a participant that has seen an entry of this ttl knows that it has run out.
const RUN_OUT: Duration = Duration::from_millis(10_100);

fn ttl() -> Option<Ttl> {
    Ttl::from_millis(10_000)
}

fn owner(name: &str, secret: u8) -> KeyOwner {
    KeyOwner { holder: Arc::new(Holder::new(name).unwrap()), secret_hash: [secret; 32] }
}

fn create(value: &str) -> KeyOperation {
    set(Token::ZERO, value)
}

fn set(revision: Token, value: &str) -> KeyOperation {
    KeyOperation::Set { revision, value: value.into(), ttl: ttl() }
}

/// A process: what it has seen of one key, and its clock.
struct Process {
    owner: KeyOwner,
    sightings: Sightings,
    clock: StoreClock,
    tick: Duration,
}

/// A pending operation of a process.
struct Running<'a> {
    process: &'a mut Process,
    machine: KeyMachine,
    world: &'a mut World,
    call: Option<Effect>,
    wake: Option<Instant>,
    answer: Option<KeyAnswer>,
    events: Vec<Event>,
}

/// A store of one key, and the clock that all processes share.
struct World {
    now: Instant,
    wall: u64,
    nonces: u128,
    entry: Option<(Arc<Record>, Version)>,
    writes: u64,
    /// Writes that were sent and have not arrived.
    late: VecDeque<Write>,
    reads: u64,
    puts: u64,
}

impl World {
    fn new() -> Self {
        Self {
            now: Instant::from_nanos(1_000_000_000_000),
            wall: 1_800_000_000_000_000,
            nonces: 0,
            entry: None,
            writes: 0,
            late: VecDeque::new(),
            reads: 0,
            puts: 0,
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.wall += span.as_micros() as u64;
    }

    fn time(&self) -> StoreTime {
        StoreTime::from_micros(self.wall)
    }

    fn record(&self) -> Option<&Arc<Record>> {
        self.entry.as_ref().map(|(record, _)| record)
    }

    fn apply(&mut self, write: &Write) -> Option<Version> {
        let present = self.entry.as_ref().map(|(_, version)| version);
        let expected = match &write.expect {
            Expect::Absent => None,
            Expect::Version(version) => Some(version),
        };
        if present != expected {
            return None;
        }
        let text = encode(&write.record);
        assert_eq!(decode(&text).as_ref(), Ok(&*write.record));
        self.writes += 1;
        let version = Version::new(format!("v{}", self.writes));
        self.entry = Some((Arc::clone(&write.record), version.clone()));
        Some(version)
    }

    /// A delayed write arrives.
    fn arrives(&mut self) -> bool {
        let write = self.late.pop_front().expect("a write is on its way");
        self.apply(&write).is_some()
    }
}

impl Process {
    fn new(name: &str, secret: u8) -> Self {
        let (clock, tick) = (StoreClock::Floors, Duration::ZERO);
        Self { owner: owner(name, secret), sightings: Sightings::default(), clock, tick }
    }

    fn without_store_clock(mut self) -> Self {
        self.clock = StoreClock::Nothing;
        self
    }

    fn start<'a>(&'a mut self, world: &'a mut World, operation: KeyOperation) -> Running<'a> {
        self.start_with(world, operation, |_| {})
    }

    fn start_with<'a>(
        &'a mut self,
        world: &'a mut World,
        operation: KeyOperation,
        choose: impl FnOnce(&mut KeyParams),
    ) -> Running<'a> {
        self.start_under(world, operation, choose, &Standard)
    }

    fn start_under<'a>(
        &'a mut self,
        world: &'a mut World,
        operation: KeyOperation,
        choose: impl FnOnce(&mut KeyParams),
        rules: &'static dyn KeyRules,
    ) -> Running<'a> {
        let mut params = KeyParams {
            operation,
            owner: self.owner.clone(),
            store_clock: self.clock,
            clock_tick: self.tick,
            drift: Drift::DEFAULT,
            fresh_for: Ttl::from_millis(15_000).unwrap(),
            retry: Duration::from_millis(100),
            retry_max: Duration::from_secs(1),
            wait_until: None,
            give_up_at: world.now + Duration::from_secs(60),
        };
        choose(&mut params);
        let machine = KeyMachine::with_rules(params, rules);
        let mut running =
            Running { process: self, machine, world, call: None, wake: None, answer: None, events: vec![] };
        running.step(Input::Start);
        running
    }

    /// Runs an operation on a store that answers at once.
    fn does(&mut self, world: &mut World, operation: KeyOperation) -> KeyAnswer {
        self.start(world, operation).finishes()
    }

    fn creates(&mut self, world: &mut World, value: &str) -> Token {
        match self.does(world, create(value)) {
            KeyAnswer::Created(entry) => entry.record.token,
            other => panic!("{other:?}"),
        }
    }

    fn gets(&mut self, world: &mut World) -> Option<SeenEntry> {
        match self.does(world, KeyOperation::Get) {
            KeyAnswer::Found(entry) => entry,
            other => panic!("{other:?}"),
        }
    }
}

impl Running<'_> {
    fn step(&mut self, input: Input) {
        self.world.nonces += 1;
        let ambient = Ambient {
            now: self.world.now,
            wall: WallTime::from_millis(self.world.wall / 1000),
            nonce: Nonce::from_bits(self.world.nonces),
            jitter: 0,
        };
        let mut effects = vec![];
        let answer = self.machine.step(&ambient, &mut self.process.sightings, input, &mut effects);
        self.wake = None;
        for effect in effects {
            match effect {
                Effect::SleepUntil(at) => self.wake = Some(at),
                Effect::Tell(event) => self.events.push(event),
                call => assert!(self.call.replace(call).is_none(), "one call at a time"),
            }
        }
        if let Some(answer) = answer {
            assert!(self.answer.replace(answer).is_none(), "one answer");
            assert!(self.call.is_none() && self.wake.is_none(), "nothing after the answer");
        }
    }

    fn look(&self) -> Look {
        let content = match &self.world.entry {
            Some((record, version)) => Content::Record(Arc::clone(record), version.clone()),
            None => Content::Absent,
        };
        Look { content, age: None, time: Some(self.world.time()) }
    }

    fn reads(&mut self) {
        assert!(matches!(self.call.take(), Some(Effect::Read)), "it reads");
        self.world.reads += 1;
        let look = self.look();
        self.step(Input::Read(Ok(look)));
    }

    fn read_fails(&mut self, fault: Fault) {
        assert!(matches!(self.call.take(), Some(Effect::Read)), "it reads");
        self.step(Input::Read(Err(fault)));
    }

    fn sent(&mut self) -> Write {
        self.world.puts += 1;
        match self.call.take() {
            Some(Effect::Write(write)) => write,
            other => panic!("it did not write but {other:?}, {:?}", self.answer),
        }
    }

    fn writes(&mut self) -> Purpose {
        let write = self.sent();
        let outcome = match self.world.apply(&write) {
            Some(version) => Outcome::Applied { version, time: Some(self.world.time()) },
            None => Outcome::Conflict,
        };
        self.step(Input::Written(outcome));
        write.purpose
    }

    /// The write is applied and its answer is lost.
    fn answer_is_lost(&mut self) {
        let write = self.sent();
        assert!(self.world.apply(&write).is_some());
        self.step(Input::Written(Outcome::Fault(Fault::Unknown)));
    }

    /// The write is delayed, and the caller gives up on its answer.
    fn is_delayed(&mut self, fault: Fault) {
        let write = self.sent();
        self.world.late.push_back(write);
        self.step(Input::Written(Outcome::Fault(fault)));
    }

    fn wakes(&mut self) {
        let at = self.wake.take().expect("it sleeps");
        let span = at.since(self.world.now);
        self.world.pass(span);
        self.step(Input::Wake);
    }

    /// Runs to the answer on a store that answers at once.
    fn finishes(mut self) -> KeyAnswer {
        for _ in 0..50 {
            if let Some(answer) = self.answer.take() {
                return answer;
            }
            match self.call {
                Some(Effect::Read) => self.reads(),
                Some(Effect::Write(_)) => {
                    self.writes();
                }
                _ => self.wakes(),
            }
        }
        panic!("it has no answer");
    }

    fn calls(&self) -> (u64, u64) {
        (self.world.reads, self.world.puts)
    }
}

fn denied(answer: KeyAnswer) -> (KeyDenied, bool) {
    match answer {
        KeyAnswer::Denied { why, in_doubt } => (why, in_doubt),
        other => panic!("{other:?}"),
    }
}

// ── the plain course ─────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_key_is_planted_and_then_created_and_a_warm_change_is_one_write() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let mut creation = a.start(world, create("one"));
    creation.reads();
    assert_eq!(creation.writes(), Purpose::Plant);
    assert_eq!(creation.writes(), Purpose::Grant);
    assert_eq!(creation.calls(), (1, 2));
    let KeyAnswer::Created(first) = creation.finishes() else { panic!("created") };
    assert_eq!((&*first.record.value, first.remaining.unwrap().at_most), ("one", RUN_OUT));
    let before = (world.reads, world.puts);
    let KeyAnswer::Updated(second) = a.does(world, set(first.record.token, "two")) else { panic!("updated") };
    assert_eq!((world.reads, world.puts), (before.0, before.1 + 1), "a warm change is one write");
    assert!(second.record.token > first.record.token);
    let KeyAnswer::Renewed(renewed) = a.does(world, KeyOperation::Renew) else { panic!("renewed") };
    assert_eq!(renewed.record.token, second.record.token, "a renewal keeps the revision");
    assert_ne!(renewed.record.nonce, second.record.nonce);
    assert_eq!(a.does(world, KeyOperation::Release), KeyAnswer::Released);
    let left = world.record().unwrap();
    assert_eq!((left.state.clone(), left.token, &*left.value), (State::Vacant, second.record.token, ""));
    assert_eq!(a.gets(world), None);
}

#[test]
fn a_cold_change_is_one_read_and_one_write_and_a_get_is_one_read() {
    let world = &mut World::new();
    let revision = Process::new("a", 1).creates(world, "one");
    let before = (world.reads, world.puts);
    let mut b = Process::new("b", 2);
    assert_eq!(b.gets(world).unwrap().record.token, revision);
    assert_eq!((world.reads, world.puts), (before.0 + 1, before.1));
    let mut c = Process::new("c", 3);
    assert!(matches!(c.does(world, set(revision, "two")), KeyAnswer::Updated(_)));
    assert_eq!((world.reads, world.puts), (before.0 + 2, before.1 + 1));
}

#[test]
fn a_change_with_another_revision_is_a_conflict_with_the_present_entry() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let first = a.creates(world, "one");
    let KeyAnswer::Updated(second) = b.does(world, set(first, "two")) else { panic!("any owner changes it") };
    assert_eq!(second.record.holder.as_ref().unwrap().id().as_ref(), "b", "and becomes its owner");
    for wrong in [first, second.record.token.next().unwrap(), Token::MAX] {
        let KeyAnswer::Conflict(Some(present)) = a.does(world, set(wrong, "three")) else {
            panic!("{wrong}")
        };
        assert_eq!(present.record, second.record);
    }
    let KeyAnswer::Conflict(Some(present)) = a.does(world, create("three")) else { panic!("it exists") };
    assert_eq!(present.record, second.record);
    assert_eq!(a.does(world, set(Token::new(9).unwrap(), "x")), KeyAnswer::Conflict(Some(present)));
    world.entry = None;
    let mut fresh = Process::new("c", 3);
    assert_eq!(fresh.does(world, set(first, "x")), KeyAnswer::Conflict(None), "no entry has any revision");
    assert_eq!(world.entry, None, "and nothing was planted");
}

#[test]
fn a_change_survives_a_renewal_by_the_owner_in_between() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let revision = a.creates(world, "one");
    b.gets(world);
    assert!(matches!(a.does(world, KeyOperation::Renew), KeyAnswer::Renewed(_)));
    let mut change = b.start(world, set(revision, "two"));
    assert_eq!(change.writes(), Purpose::Grant);
    change.reads();
    assert_eq!(change.writes(), Purpose::Grant);
    assert!(matches!(change.finishes(), KeyAnswer::Updated(_)), "the revision is the same");
}

#[test]
fn revisions_grow_across_release_run_out_and_deletion() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let mut revisions = vec![a.creates(world, "released")];
    assert_eq!(a.does(world, KeyOperation::Release), KeyAnswer::Released);
    revisions.push(b.creates(world, "runs out"));
    b.gets(world);
    world.pass(RUN_OUT);
    revisions.push(b.creates(world, "deleted"));
    world.entry = None;
    world.pass(Duration::from_micros(1));
    // This process has seen nothing of it.
    revisions.push(Process::new("c", 3).creates(world, "anew"));
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
}

#[test]
fn a_key_without_a_store_clock_counts_its_revisions() {
    let world = &mut World::new();
    let mut a = Process::new("a", 1).without_store_clock();
    assert_eq!(a.creates(world, "one"), Token::new(1).unwrap());
    assert_eq!(a.does(world, KeyOperation::Release), KeyAnswer::Released);
    assert_eq!(Process::new("b", 2).without_store_clock().creates(world, "two"), Token::new(2).unwrap());
}

#[test]
fn the_first_entry_waits_for_the_tick_of_the_stores_clock() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    a.tick = Duration::from_secs(1);
    let mut creation = a.start(world, create("one"));
    creation.reads();
    assert_eq!(creation.writes(), Purpose::Plant);
    let planted = creation.world.record().unwrap().token;
    assert!(creation.call.is_none());
    creation.wakes();
    creation.reads();
    assert_eq!(creation.writes(), Purpose::Grant);
    let KeyAnswer::Created(entry) = creation.finishes() else { panic!("created") };
    assert!(entry.record.token.get() >= planted.get() + 1_000_000, "a later time than that of the plant");
}

// ── owners ───────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn only_the_owner_renews_and_releases_and_a_twin_with_its_name_is_another_owner() {
    let (world, a, twin) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("a", 2));
    let revision = a.creates(world, "one");
    for operation in [KeyOperation::Renew, KeyOperation::Release] {
        let (why, in_doubt) = denied(twin.does(world, operation));
        assert!(matches!(&why, KeyDenied::NotOwner(entry) if entry.record.token == revision), "{why:?}");
        assert!(!in_doubt);
    }
    let mut elsewhere = Process::new("another name", 1);
    assert!(
        matches!(elsewhere.does(world, KeyOperation::Renew), KeyAnswer::Renewed(_)),
        "the secret decides"
    );
    assert_eq!(elsewhere.does(world, KeyOperation::Release), KeyAnswer::Released);
    assert_eq!(denied(a.does(world, KeyOperation::Renew)).0, KeyDenied::NoEntry);
    assert_eq!(denied(a.does(world, KeyOperation::Release)).0, KeyDenied::NoEntry);
}

// ── expiry ───────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn an_entry_that_this_participant_knows_to_have_run_out_counts_as_absent() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let revision = a.creates(world, "one");
    let seen = b.gets(world).unwrap().remaining.unwrap();
    assert!(!seen.judged && seen.at_most == RUN_OUT, "at first sight nothing is known: {seen:?}");
    world.pass(RUN_OUT - Duration::from_nanos(1));
    assert!(b.gets(world).unwrap().remaining.unwrap().judged);
    world.pass(Duration::from_nanos(1));
    assert_eq!(b.gets(world), None);
    assert_eq!(
        b.does(world, set(revision, "two")),
        KeyAnswer::Conflict(None),
        "its revision is that of no entry"
    );
    assert_eq!(denied(a.does(world, KeyOperation::Renew)).0, KeyDenied::NoEntry, "it does not come back");
    assert_eq!(denied(a.does(world, KeyOperation::Release)).0, KeyDenied::NoEntry);
    assert!(b.creates(world, "two") > revision);
}

#[test]
fn a_participant_that_cannot_know_sees_the_entry_and_may_change_it() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    world.pass(10 * RUN_OUT);
    let mut newcomer = Process::new("b", 2);
    let KeyAnswer::Conflict(Some(present)) = newcomer.does(world, create("two")) else { panic!("it exists") };
    assert_eq!(present.remaining.unwrap().at_most, RUN_OUT);
    assert!(!present.remaining.unwrap().judged);
    assert!(matches!(newcomer.does(world, set(revision, "two")), KeyAnswer::Updated(_)));
}

#[test]
fn an_entry_without_a_ttl_never_runs_out() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let forever = KeyOperation::Set { revision: Token::ZERO, value: "one".into(), ttl: None };
    let KeyAnswer::Created(entry) = a.does(world, forever) else { panic!("created") };
    assert_eq!((entry.remaining, entry.record.ttl), (None, None));
    b.gets(world);
    world.pass(Duration::from_secs(1_000_000));
    assert_eq!(b.gets(world).unwrap().remaining, None);
    assert!(matches!(b.does(world, create("two")), KeyAnswer::Conflict(Some(_))));
    assert!(matches!(a.does(world, KeyOperation::Renew), KeyAnswer::Renewed(_)));
}

#[test]
fn an_owner_does_not_renew_so_late_that_another_participant_may_know_the_entry_to_have_run_out() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    a.creates(world, "one");
    // Its own clock may be slow, and that of the others fast.
    world.pass(TTL - TTL / 100);
    assert!(a.gets(world).is_some(), "it has not run out yet");
    assert_eq!(denied(a.does(world, KeyOperation::Renew)).0, KeyDenied::NoEntry);
}

#[test]
fn an_owner_whose_write_was_answered_late_counts_from_when_it_was_sent_whatever_it_reads_later() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    a.creates(world, "one");
    let written = world.now;
    let mut renewal = a.start(world, KeyOperation::Renew);
    let write = renewal.sent();
    let version = renewal.world.apply(&write).unwrap();
    renewal.world.pass(TTL / 2);
    let time = Some(renewal.world.time());
    renewal.step(Input::Written(Outcome::Applied { version, time }));
    assert!(matches!(renewal.finishes(), KeyAnswer::Renewed(_)));
    // Others may have seen the version since it was written, and know now that it has run out.
    world.pass((written + RUN_OUT).since(world.now));
    assert!(a.gets(world).is_some(), "it counts from the answer");
    assert_eq!(denied(a.does(world, KeyOperation::Renew)).0, KeyDenied::NoEntry);
}

#[test]
fn an_owner_that_found_its_write_by_a_read_back_counts_from_when_it_was_sent() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    a.creates(world, "one");
    let mut renewal = a.start(world, KeyOperation::Renew);
    let write = renewal.sent();
    renewal.world.apply(&write).unwrap();
    b.gets(renewal.world);
    renewal.world.pass(TTL / 2);
    renewal.step(Input::Written(Outcome::Fault(Fault::Unknown)));
    assert!(matches!(renewal.finishes(), KeyAnswer::Renewed(_)));
    world.pass(RUN_OUT - TTL / 2);
    assert_eq!(b.gets(world), None, "it has run out");
    assert_eq!(denied(a.does(world, KeyOperation::Renew)).0, KeyDenied::NoEntry, "and does not come back");
}

#[test]
fn an_owner_counts_from_when_it_sent_a_write_whose_operation_never_learned_that_it_was_applied() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let mut creation = a.start(world, create("one"));
    creation.reads();
    assert_eq!(creation.writes(), Purpose::Plant);
    let write = creation.sent();
    creation.world.apply(&write).unwrap();
    drop(creation);
    b.gets(world);
    world.pass(TTL / 2);
    assert!(a.gets(world).is_some(), "the owner sees its entry for the first time");
    world.pass(RUN_OUT - TTL / 2);
    assert_eq!(b.gets(world), None, "it has run out");
    assert_eq!(denied(a.does(world, KeyOperation::Renew)).0, KeyDenied::NoEntry, "and does not come back");
}

#[test]
fn each_change_and_each_renewal_starts_the_ttl_anew() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let mut revision = a.creates(world, "one");
    for round in 0..6 {
        b.gets(world);
        world.pass(RUN_OUT * 2 / 3);
        assert!(b.gets(world).is_some(), "round {round}");
        if round % 2 == 0 {
            let KeyAnswer::Renewed(entry) = a.does(world, KeyOperation::Renew) else { panic!("{round}") };
            assert_eq!(entry.record.token, revision);
        } else {
            let KeyAnswer::Updated(entry) = a.does(world, set(revision, "more")) else { panic!("{round}") };
            revision = entry.record.token;
        }
    }
}

#[test]
fn a_creation_that_waits_takes_the_key_when_the_entry_has_run_out_and_not_before() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    a.creates(world, "one");
    let start = world.now;
    let limit = world.now + Duration::from_secs(60);
    let mut creation = b.start_with(world, create("two"), |params| params.wait_until = Some(limit));
    creation.reads();
    let mut looks = 0;
    while creation.call.is_none() {
        creation.wakes();
        if matches!(creation.call, Some(Effect::Read)) {
            creation.reads();
            looks += 1;
        }
    }
    assert!(looks <= 3, "at most three reads per ttl: {looks}");
    assert_eq!(creation.world.now, start + RUN_OUT);
    assert_eq!(creation.writes(), Purpose::Grant);
    assert!(matches!(creation.finishes(), KeyAnswer::Created(_)));
}

#[test]
fn a_wait_that_is_too_short_ends_with_the_entry_that_is_there() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    a.creates(world, "one");
    let limit = world.now + Duration::from_secs(2);
    let creation = b.start_with(world, create("two"), |params| params.wait_until = Some(limit));
    let KeyAnswer::Conflict(Some(present)) = creation.finishes() else { panic!("it exists") };
    assert_eq!(&*present.record.value, "one");
    assert_eq!(world.now, limit);
}

// ── unknown outcomes ─────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_lost_answer_of_every_write_is_read_back_and_recognised_by_its_nonce() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let mut creation = a.start(world, create("one"));
    creation.reads();
    creation.answer_is_lost();
    creation.reads();
    creation.answer_is_lost();
    creation.reads();
    let KeyAnswer::Created(created) = creation.finishes() else { panic!("created") };
    let mut change = a.start(world, set(created.record.token, "two"));
    change.answer_is_lost();
    change.reads();
    let KeyAnswer::Updated(updated) = change.finishes() else { panic!("updated") };
    assert!(updated.record.token > created.record.token);
    let mut renewal = a.start(world, KeyOperation::Renew);
    renewal.answer_is_lost();
    renewal.reads();
    assert!(matches!(renewal.finishes(), KeyAnswer::Renewed(_)));
    let mut release = a.start(world, KeyOperation::Release);
    release.answer_is_lost();
    release.reads();
    assert_eq!(release.finishes(), KeyAnswer::Released);
}

#[test]
fn a_delayed_write_that_lands_between_two_attempts_is_recognised_and_happens_once() {
    for fault in [Fault::Unknown, Fault::Throttled(None), Fault::Throttled(Some(Duration::from_secs(3)))] {
        let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
        let revision = a.creates(world, "one");
        let mut change = a.start(world, set(revision, "two"));
        change.is_delayed(fault);
        if change.call.is_none() {
            change.wakes();
        }
        change.reads();
        // The version is unchanged: the second attempt is on its way when the first one lands.
        assert!(matches!(change.call, Some(Effect::Write(_))), "{fault:?}");
        assert!(change.world.arrives());
        change.writes();
        if change.call.is_none() {
            change.wakes();
        }
        change.reads();
        let writes = change.world.writes;
        let KeyAnswer::Updated(entry) = change.finishes() else { panic!("{fault:?}") };
        assert_eq!(world.writes, writes);
        assert_eq!(world.record().unwrap(), &entry.record);
    }
}

#[test]
fn a_delayed_write_never_lands_over_the_retry_that_succeeded() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut change = a.start(world, set(revision, "two"));
    change.is_delayed(Fault::Unknown);
    change.reads();
    change.writes();
    let KeyAnswer::Updated(entry) = change.finishes() else { panic!("updated") };
    assert!(!world.arrives(), "it expects a version that is gone");
    assert_eq!(world.record().unwrap(), &entry.record);
}

#[test]
fn a_change_that_landed_and_was_replaced_before_the_read_back_is_no_conflict() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut change = a.start(world, set(revision, "two"));
    change.answer_is_lost();
    let landed = change.world.record().unwrap().token;
    Process::new("b", 2).does(change.world, set(landed, "three"));
    change.reads();
    let (why, in_doubt) = denied(change.finishes());
    assert!(matches!(&why, KeyDenied::Overtaken(Some(record)) if &*record.value == "three"), "{why:?}");
    assert!(in_doubt);
}

#[test]
fn a_change_that_never_landed_is_a_conflict_if_the_other_one_replaced_the_expected_version() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut change = a.start(world, set(revision, "two"));
    change.is_delayed(Fault::Unknown);
    Process::new("b", 2).does(change.world, set(revision, "three"));
    change.reads();
    let KeyAnswer::Conflict(Some(present)) = change.finishes() else { panic!("a proven conflict") };
    assert_eq!(&*present.record.value, "three");
    assert!(!world.arrives());
}

#[test]
fn a_change_renewed_by_its_owner_elsewhere_before_the_read_back_is_recognised_by_its_term() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut change = a.start(world, set(revision, "two"));
    change.answer_is_lost();
    Process::new("a", 1).does(change.world, KeyOperation::Renew);
    change.reads();
    assert!(matches!(change.finishes(), KeyAnswer::Updated(_)));
}

#[test]
fn a_change_released_by_its_owner_elsewhere_before_the_read_back_is_shown_as_it_was_written() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut change = a.start(world, set(revision, "two"));
    change.answer_is_lost();
    assert_eq!(Process::new("a", 1).does(change.world, KeyOperation::Release), KeyAnswer::Released);
    change.reads();
    let KeyAnswer::Updated(entry) = change.finishes() else { panic!("it was updated") };
    assert_eq!((&*entry.record.value, entry.record.state.clone()), ("two", State::Held));
    assert!(entry.record.token > revision);
}

#[test]
fn a_release_whose_answer_is_lost_does_not_remove_the_next_entry_of_the_same_owner() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    a.creates(world, "one");
    let mut release = a.start(world, KeyOperation::Release);
    release.answer_is_lost();
    let mut elsewhere = Process::new("a", 1);
    let next = elsewhere.creates(release.world, "two");
    let (why, in_doubt) = denied(release.finishes());
    assert!(matches!(&why, KeyDenied::Overtaken(Some(record)) if record.token == next), "{why:?}");
    assert!(in_doubt);
    assert_eq!(elsewhere.gets(world).unwrap().record.token, next, "one release removes one entry");
}

#[test]
fn a_release_that_meets_a_change_of_the_same_owner_removes_the_changed_entry() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut release = a.start(world, KeyOperation::Release);
    Process::new("a", 1).does(release.world, set(revision, "two"));
    release.writes();
    assert_eq!(release.finishes(), KeyAnswer::Released);
    assert_eq!(a.gets(world), None);
}

#[test]
fn a_plain_conflict_is_an_answer_however_many_changes_were_missed() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let first = a.creates(world, "0");
    let mut latest = first;
    for value in ["1", "2", "3"] {
        let KeyAnswer::Updated(entry) = b.does(world, set(latest, value)) else { panic!("{value}") };
        latest = entry.record.token;
    }
    let mut change = a.start(world, set(first, "mine"));
    assert_eq!(change.writes(), Purpose::Grant);
    change.reads();
    let KeyAnswer::Conflict(Some(present)) = change.finishes() else { panic!("a conflict") };
    assert_eq!((present.record.token, &*present.record.value), (latest, "3"));
}

#[test]
fn a_deletion_after_a_lost_answer_leaves_the_change_in_doubt() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut change = a.start(world, set(revision, "two"));
    change.answer_is_lost();
    change.world.entry = None;
    change.reads();
    assert_eq!(denied(change.finishes()), (KeyDenied::Overtaken(None), true));
}

#[test]
fn an_entry_that_runs_out_while_a_change_is_in_doubt_is_not_called_a_conflict() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut change = a.start(world, set(revision, "two"));
    change.is_delayed(Fault::Throttled(Some(Duration::from_secs(30))));
    change.wakes();
    change.reads();
    let (why, in_doubt) = denied(change.finishes());
    assert!(matches!(why, KeyDenied::Unavailable(_)) && in_doubt, "{why:?}");
    assert!(world.arrives(), "and it lands after all");
}

#[test]
fn an_operation_gives_up_in_time_and_says_whether_it_may_have_changed_something() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let end = world.now + Duration::from_secs(5);
    let mut read = a.start_with(world, KeyOperation::Get, |params| params.give_up_at = end);
    while read.answer.is_none() {
        match read.call {
            Some(_) => read.read_fails(Fault::Unknown),
            None => read.wakes(),
        }
    }
    assert_eq!(denied(read.finishes()), (KeyDenied::Unavailable(Some(Fault::Unknown)), false));
    assert!(world.now <= end);
    let end = world.now + Duration::from_secs(5);
    let mut change = a.start_with(world, set(revision, "two"), |params| params.give_up_at = end);
    change.is_delayed(Fault::Unknown);
    while change.answer.is_none() {
        match change.call {
            Some(_) => change.read_fails(Fault::Unknown),
            None => change.wakes(),
        }
    }
    let (why, in_doubt) = denied(change.finishes());
    assert!(matches!(why, KeyDenied::Unavailable(_)) && in_doubt);
}

#[test]
fn a_conflict_that_cannot_be_read_back_is_in_doubt_because_a_balancer_may_have_sent_the_write_twice() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let mut change = a.start(world, set(revision, "two"));
    let write = change.sent();
    assert!(change.world.apply(&write).is_some(), "the first copy is applied");
    change.step(Input::Written(Outcome::Conflict));
    while change.answer.is_none() {
        match change.call {
            Some(_) => change.read_fails(Fault::Unknown),
            None => change.wakes(),
        }
    }
    let (why, in_doubt) = denied(change.finishes());
    assert!(matches!(why, KeyDenied::Unavailable(_)) && in_doubt, "{why:?}");
}

#[test]
fn a_read_back_that_returns_after_the_time_limit_still_shows_the_own_write() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let end = world.now + Duration::from_secs(5);
    let mut change = a.start_with(world, set(revision, "two"), |params| params.give_up_at = end);
    change.answer_is_lost();
    change.world.pass(Duration::from_secs(6));
    change.reads();
    assert!(matches!(change.finishes(), KeyAnswer::Updated(_)));
}

#[test]
fn an_operation_that_is_late_begins_no_write_after_its_read() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let revision = a.creates(world, "one");
    let end = world.now + Duration::from_secs(1);
    let mut change = b.start_with(world, set(revision, "two"), |params| params.give_up_at = end);
    change.world.pass(Duration::from_secs(2));
    change.reads();
    assert_eq!(denied(change.finishes()), (KeyDenied::Unavailable(None), false));
}

#[test]
fn no_entry_is_answered_only_after_a_read_that_was_sent_after_the_entry_ran_out() {
    let (world, a, b) = (&mut World::new(), &mut Process::new("a", 1), &mut Process::new("b", 2));
    let revision = a.creates(world, "one");
    b.gets(world);
    world.pass(RUN_OUT - Duration::from_millis(1));
    let mut get = b.start(world, KeyOperation::Get);
    let before = get.look();
    let KeyAnswer::Updated(_) = a.does(get.world, set(revision, "two")) else { panic!("updated") };
    get.world.pass(Duration::from_millis(2));
    assert!(matches!(get.call.take(), Some(Effect::Read)));
    get.step(Input::Read(Ok(before)));
    get.reads();
    let KeyAnswer::Found(Some(entry)) = get.finishes() else { panic!("there is an entry all the time") };
    assert_eq!(&*entry.record.value, "two");
}

#[test]
fn a_refused_call_ends_the_operation_at_once_and_an_unreachable_store_is_tried_again() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let mut read = a.start(world, KeyOperation::Get);
    read.read_fails(Fault::Refused(Reason::Denied));
    assert_eq!(denied(read.finishes()), (KeyDenied::Refused(Reason::Denied), false));
    let mut read = a.start(world, KeyOperation::Get);
    read.read_fails(Fault::Refused(Reason::Unreachable));
    read.wakes();
    assert_eq!(read.finishes(), KeyAnswer::Found(None));
}

// ── other records ────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_lease_and_a_foreign_value_are_never_overwritten() {
    let operations = || {
        let revision = Token::new(7).unwrap();
        [KeyOperation::Get, create("x"), set(revision, "x"), KeyOperation::Renew, KeyOperation::Release]
    };
    for lease in ["held", "vacant", "planted", "revoked", "reserved", "closed"] {
        let path = format!("{}/tests/fixtures/records/v1/{lease}.json", env!("CARGO_MANIFEST_DIR"));
        let record = Arc::new(decode(&std::fs::read(path).unwrap()).unwrap());
        for operation in operations() {
            let world = &mut World::new();
            world.entry = Some((Arc::clone(&record), Version::new("lease")));
            let (why, _) = denied(Process::new("a", 1).does(world, operation));
            assert_eq!(why, KeyDenied::Lease(Arc::clone(&record)), "{lease}");
            assert_eq!((world.reads, world.puts), (1, 0));
        }
    }
    for operation in operations() {
        let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
        let mut running = a.start(world, operation);
        assert!(matches!(running.call.take(), Some(Effect::Read)));
        let content = Content::Foreign { what: "of another".into(), version: Version::new("v") };
        running.step(Input::Read(Ok(Look { content, age: None, time: None })));
        assert_eq!(denied(running.finishes()).0, KeyDenied::Foreign("of another".into()));
    }
}

#[test]
fn a_revision_that_goes_back_is_reported_and_nothing_is_shown_or_written() {
    let world = &mut World::new();
    let mut a = Process::new("a", 1).without_store_clock();
    let first = a.creates(world, "one");
    let old = world.entry.clone();
    assert!(matches!(a.does(world, set(first, "two")), KeyAnswer::Updated(_)));
    let highest = a.sightings.highest();
    world.entry = old;
    for operation in [KeyOperation::Get, create("x"), set(first, "x")] {
        let running = a.start(world, operation);
        assert_eq!(denied(running.finishes()).0, KeyDenied::WentBack { seen: highest });
    }
    world.entry = None;
    assert_eq!(a.gets(world), None, "a deleted entry is absent");
    assert_eq!(denied(a.does(world, create("x"))).0, KeyDenied::WentBack { seen: highest });
}

#[test]
fn on_a_store_with_a_clock_a_change_after_a_restore_gets_a_revision_above_all_earlier_ones() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let first = a.creates(world, "one");
    let old = world.entry.clone();
    let KeyAnswer::Updated(second) = a.does(world, set(first, "two")) else { panic!("updated") };
    world.pass(Duration::from_secs(1));
    world.entry = old;
    let mut change = a.start(world, create("three"));
    change.reads();
    assert!(matches!(change.events[..], [Event::WentBack { .. }]));
    let KeyAnswer::Conflict(Some(_)) = change.finishes() else { panic!("it is there again") };
    let KeyAnswer::Updated(third) = a.does(world, set(first, "three")) else { panic!("updated") };
    assert!(third.record.token > second.record.token);
}

#[test]
fn a_stale_sighting_is_read_again_before_it_is_acted_on() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let forever = KeyOperation::Set { revision: Token::ZERO, value: "one".into(), ttl: None };
    let KeyAnswer::Created(entry) = a.does(world, forever) else { panic!("created") };
    world.pass(Duration::from_secs(16));
    let mut change = a.start(world, set(entry.record.token, "two"));
    change.reads();
    assert!(matches!(change.finishes(), KeyAnswer::Updated(_)));
}

#[test]
fn the_top_of_the_range_is_reported() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    let (record, version) = world.entry.clone().unwrap();
    world.entry = Some((Arc::new(Record { token: Token::MAX, ..(*record).clone() }), version));
    let mut b = Process::new("b", 2);
    assert_eq!(denied(b.does(world, set(Token::MAX, "two"))).0, KeyDenied::RevisionsExhausted);
    assert!(revision < Token::MAX);
}

// ── wrong rules do damage that these tests would see ─────────────────────────────────────────────────────────────────

/// The rules with one of them replaced.
#[derive(Debug)]
struct UpdatesRunOut;

impl crate::machine::Rules for UpdatesRunOut {}
impl KeyRules for UpdatesRunOut {
    fn may_update_run_out(&self) -> bool {
        true
    }
}

#[test]
fn under_a_wrong_rule_an_old_revision_changes_an_entry_that_has_run_out() {
    let (world, a) = (&mut World::new(), &mut Process::new("a", 1));
    let revision = a.creates(world, "one");
    world.pass(RUN_OUT);
    let answer = a.start_under(world, set(revision, "two"), |_| {}, &UpdatesRunOut).finishes();
    assert!(matches!(answer, KeyAnswer::Updated(_)), "the rule decides, and nothing else prevents it");
}

#[test]
fn errors_name_the_key_the_owner_the_revision_and_the_store() {
    let (world, a) = (&mut World::new(), &mut Process::new("host-a", 1));
    let revision = a.creates(world, "one");
    let key = tenure_store::Key::parse("config/size").unwrap();
    let (why, in_doubt) = denied(Process::new("b", 2).does(world, KeyOperation::Release));
    assert_eq!(
        why.error(&key, "memory:", in_doubt).to_string(),
        format!(
            "key config/size on memory: is an entry of host-a (revision {revision}), and only its owner renews and \
             releases it: act as that owner, or replace the entry by its revision"
        )
    );
    let error = KeyDenied::Unavailable(None).error(&key, "memory:", true).to_string();
    assert_eq!(
        error,
        "key config/size on memory: could not be reached in time: try again later. The change may have been applied, \
         or may still be: read the key before trying again"
    );
}

#[test]
fn every_write_of_a_key_has_its_own_revision_nonce_sequence_and_time() {
    let (revision, nonce, wall) = (Token::new(9).unwrap(), Nonce::from_bits(9), WallTime::from_millis(9_000));
    let ambient = Ambient { now: Instant::default(), wall, nonce, jitter: 0 };
    let old = Record::new_key(Token::new(7).unwrap(), Nonce::from_bits(7), WallTime::from_millis(7_000));
    let own = |record: &Record| (record.token, record.nonce, record.sequence, record.written_at);
    let entry = writes::entry(&old, nonce, revision, (&"blue".into(), ttl()), &owner("web-1", 1), &ambient);
    assert_eq!(own(&entry), (revision, nonce, 1, wall));
    assert_eq!((entry.term, entry.granted_at), (nonce, wall));

    let (revision, nonce, wall) =
        (Token::new(11).unwrap(), Nonce::from_bits(11), WallTime::from_millis(11_000));
    let renewed = writes::renewed(&entry, nonce, revision, wall);
    assert_eq!(own(&renewed), (revision, nonce, 2, wall));
    assert_eq!((renewed.term, renewed.granted_at), (entry.term, entry.granted_at), "the entry is the same");
    let released = writes::released(&entry, nonce, revision, wall);
    assert_eq!(own(&released), (revision, nonce, 2, wall));
    assert_eq!((released.state, released.holder, released.ttl), (State::Vacant, None, None));
}
