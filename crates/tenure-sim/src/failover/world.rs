use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{
    AcquireMode, AcquireParams, Ambient, Effect, Event, Heed, Input, Machine, Patience, Rules, Sightings,
    Write,
};
use tenure_core::record::Nonce;
use tenure_core::{Holder, Instant, Timing, WallTime};

use crate::parts::{Agenda, Clock, Store, Timer, TimerEntry};
use crate::rng::Rng;
use crate::swarm::StoreKind;

/// One key on a store without hints, its holder, and contenders that share nothing but the store. No call fails.
#[derive(Debug)]
pub(super) struct FailoverWorld {
    pub(super) now: u64,
    pub(super) rng: Rng,
    agenda: Agenda<FailoverEvent>,
    store: Store,
    timing: Timing,
    /// Longest duration of a call, one way.
    way: u64,
    pub(super) members: Vec<Standby>,
    /// Time of each read that a contender sent.
    pub(super) reads: Vec<u64>,
    /// Number of writes that were sent.
    pub(super) writes: u64,
    /// The latest grant: its member, and the time at which that member learned of it.
    pub(super) granted: Option<(usize, u64)>,
}

/// A process with one lease.
#[derive(Debug)]
pub(super) struct Standby {
    machine: Machine,
    sightings: Sightings,
    clock: Clock,
    /// Error of its wall clock, in milliseconds.
    wall: u64,
    timer: Timer,
    pub(super) alive: bool,
    /// Number of reads that it sent.
    pub(super) reads: u64,
}

/// Something that happens to a member, or to the store.
#[derive(Debug)]
enum FailoverEvent {
    Start(usize),
    Wake(usize),
    /// A request arrives at the store: a read, or this write.
    Request(usize, Option<Write>),
    Answer(usize, Input),
}

impl FailoverWorld {
    /// A world whose holders have this timing, and in which a call takes up to `way` in each direction.
    pub(super) fn new(seed: u64, timing: Timing, way: Duration) -> Self {
        let mut rng = Rng::new(seed);
        let mut kind = StoreKind { hints: 0, ..StoreKind::draw(&mut rng) };
        kind.clock = tenure_store::StoreClock::Nothing;
        Self {
            now: 0,
            store: Store::new(kind, 0, false),
            rng,
            agenda: Agenda::new(),
            timing,
            way: way.as_nanos() as u64,
            members: Vec::new(),
            reads: Vec::new(),
            writes: 0,
            granted: None,
        }
    }

    /// Adds a member that wants the lease from this time on.
    pub(super) fn join(&mut self, at: u64, rules: &'static dyn Rules) -> usize {
        let params = AcquireParams {
            holder: Arc::new(Holder::new("member").expect("a short plain name")),
            timing: self.timing,
            store_clock: tenure_store::StoreClock::Nothing,
            clock_tick: Duration::ZERO,
            process: None,
            witness: None,
            secret_hash: None,
            value: None,
            patience: Patience::Forever,
            strict: false,
            manual: false,
            hint_pause: self.timing.retry(),
            heed: Heed::Ttl,
            once_per: None,
            mode: AcquireMode::Wait,
        };
        let (base, rate) = (self.rng.between(1, 1 << 50), self.rng.between(999_500, 1_000_500));
        self.members.push(Standby {
            machine: Machine::with_rules(params, rules),
            sightings: Sightings::default(),
            clock: Clock::new(0, base, rate),
            wall: self.rng.between(0, 7_200_000),
            timer: Timer::new(),
            alive: true,
            reads: 0,
        });
        let member = self.members.len() - 1;
        self.agenda.push(at, FailoverEvent::Start(member));
        member
    }

    /// Lets time pass until this instant.
    pub(super) fn run_until(&mut self, end: u64) {
        while self.agenda.next_at().is_some_and(|at| at <= end) {
            self.happens();
        }
        self.now = self.now.max(end);
    }

    /// Lets time pass until another member than this one is granted the lease, which it returns with the time.
    pub(super) fn run_until_granted(&mut self, former: usize) -> (usize, u64) {
        loop {
            match self.granted {
                Some((member, at)) if member != former => return (member, at),
                _ => self.happens(),
            }
        }
    }

    /// The member releases the lease.
    pub(super) fn release(&mut self, member: usize) {
        self.step(member, Input::Release);
        self.step(member, Input::Drained);
    }

    /// The next event happens.
    fn happens(&mut self) {
        let (at, event) = self.agenda.pop().expect("a living contender has a timer");
        self.now = at;
        match event {
            FailoverEvent::Request(member, body) => {
                let input = match body {
                    None => Input::Read(Ok(self.store.read(at))),
                    Some(write) => Input::Written(self.store.write(at, &write)),
                };
                let returned = at + self.rng.between(self.way / 10, self.way);
                self.agenda.push(returned, FailoverEvent::Answer(member, input));
            }
            FailoverEvent::Start(member) => self.step(member, Input::Start),
            FailoverEvent::Answer(member, input) => self.step(member, input),
            FailoverEvent::Wake(number) => {
                let member = &mut self.members[number];
                match member.timer.fires(&member.clock, at) {
                    TimerEntry::Due => self.step(number, Input::Wake),
                    TimerEntry::Later(at) => self.agenda.push(at, FailoverEvent::Wake(number)),
                    TimerEntry::Void => {}
                }
            }
        }
    }

    fn step(&mut self, number: usize, input: Input) {
        let (nonce, jitter) = (Nonce::from_bits(self.rng.wide()), self.rng.next() as u32);
        let member = &mut self.members[number];
        if !member.alive {
            return;
        }
        let now = Instant::from_nanos(member.clock.local(self.now));
        let wall = WallTime::from_millis(self.now / 1_000_000 + member.wall);
        let mut effects = Vec::new();
        let ambient = Ambient { now, wall, nonce, jitter };
        member.machine.step(&ambient, &mut member.sightings, input, &mut effects);
        for effect in effects {
            let body = match effect {
                Effect::Read => {
                    self.reads.push(self.now);
                    self.members[number].reads += 1;
                    None
                }
                Effect::Write(write) => {
                    self.writes += 1;
                    Some(write)
                }
                Effect::SleepUntil(at) => {
                    let member = &mut self.members[number];
                    if let Some(at) = member.timer.sleep(at.as_nanos(), &member.clock, self.now) {
                        self.agenda.push(at, FailoverEvent::Wake(number));
                    }
                    continue;
                }
                Effect::Tell(Event::Granted { .. }) => {
                    self.granted = Some((number, self.now));
                    continue;
                }
                Effect::Tell(_) | Effect::LookAtWitness { .. } => continue,
            };
            let at = self.now + self.rng.between(self.way / 10, self.way);
            self.agenda.push(at, FailoverEvent::Request(number, body));
        }
    }
}
