//! A thousand holders on one store that is down for a third of their ttl and then comes back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{
    AcquireMode, AcquireParams, Ambient, Content, Effect, Event, Fault, Heed, Input, Look, Machine, Outcome,
    Patience, Sightings,
};
use tenure_core::record::Nonce;
use tenure_core::{Holder, Instant, Timing, WallTime};
use tenure_store::{Expect, Reason, StoreClock, Version};

const HOLDERS: usize = 1_000;
const TTL: Duration = Duration::from_secs(15);
const LATENCY: Duration = Duration::from_millis(5);
/// The outage begins after the holders have renewed a few times.
const DOWN_FROM: Duration = Duration::from_secs(60);
const DOWN_FOR: Duration = Duration::from_secs(5);
const END: Duration = Duration::from_secs(120);

/// The way in which calls fail during the outage.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Refuses,
    Breaks,
    Hangs,
}

/// One holder, with the key that it holds.
struct Lease {
    machine: Machine,
    sightings: Sightings,
    stored: Content,
    /// Number of the latest timer: an earlier one does not wake the machine.
    timer: u64,
    lost: bool,
}

/// Something that happens to a lease.
#[derive(Debug)]
enum Happening {
    Input(Input),
    Wake(u64),
}

/// All holders, in virtual time.
struct Fleet {
    manner: Manner,
    timing: Timing,
    leases: Vec<Lease>,
    /// The time, the order and the lease of each happening, whose content is in `happenings`.
    agenda: BinaryHeap<Reverse<(Duration, usize, usize)>>,
    happenings: Vec<Option<Happening>>,
    random: u64,
    /// Number of calls in each second.
    calls: Vec<u64>,
}

impl Fleet {
    fn new(manner: Manner) -> Self {
        let timing = Timing::new(TTL).unwrap();
        let params = AcquireParams {
            holder: Arc::new(Holder::new("holder").unwrap()),
            timing,
            store_clock: StoreClock::Nothing,
            clock_tick: Duration::ZERO,
            process: None,
            witness: None,
            secret_hash: None,
            value: None,
            patience: Patience::Forever,
            strict: false,
            manual: false,
            hint_pause: timing.retry(),
            heed: Heed::Ttl,
            once_per: None,
            mode: AcquireMode::Wait,
        };
        let lease = |_| Lease {
            machine: Machine::new(params.clone()),
            sightings: Sightings::default(),
            stored: Content::Absent,
            timer: 0,
            lost: false,
        };
        let leases = (0..HOLDERS).map(lease).collect();
        let calls = vec![0; END.as_secs() as usize + 1];
        let (agenda, happenings) = (BinaryHeap::new(), vec![]);
        let mut fleet = Self { manner, timing, leases, agenda, happenings, random: 1, calls };
        for lease in 0..HOLDERS {
            // They were started at different times.
            let at = timing.period() * lease as u32 / HOLDERS as u32;
            fleet.plan(at, lease, Happening::Input(Input::Start));
        }
        fleet
    }

    fn plan(&mut self, at: Duration, lease: usize, happening: Happening) {
        self.agenda.push(Reverse((at, self.happenings.len(), lease)));
        self.happenings.push(Some(happening));
    }

    fn random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 16
    }

    fn run(mut self) -> Self {
        while let Some(Reverse((now, number, lease))) = self.agenda.pop().filter(|next| next.0.0 < END) {
            let input = match self.happenings[number].take().expect("it happens once") {
                Happening::Wake(timer) if timer != self.leases[lease].timer => continue,
                Happening::Wake(_) => Input::Wake,
                Happening::Input(input) => input,
            };
            self.step(now, lease, input);
        }
        self
    }

    fn step(&mut self, now: Duration, number: usize, input: Input) {
        let nonce = Nonce::from_bits(u128::from(self.random()) << 64 | u128::from(self.random()));
        let ambient = Ambient {
            now: Instant::from_nanos(now.as_nanos() as u64),
            wall: WallTime::from_millis(1),
            nonce,
            jitter: self.random() as u32,
        };
        let mut effects = vec![];
        let lease = &mut self.leases[number];
        lease.machine.step(&ambient, &mut lease.sightings, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::SleepUntil(at) => {
                    self.leases[number].timer += 1;
                    let timer = self.leases[number].timer;
                    self.plan(Duration::from_nanos(at.as_nanos()), number, Happening::Wake(timer));
                }
                Effect::Tell(Event::Lost(_)) => self.leases[number].lost = true,
                Effect::Tell(_) | Effect::LookAtWitness { .. } => {}
                call @ (Effect::Read | Effect::Write(_)) => {
                    self.calls[now.as_secs() as usize] += 1;
                    let (takes, input) = self.call(now, number, call);
                    self.plan(now + takes, number, Happening::Input(input));
                }
            }
        }
    }

    fn call(&mut self, now: Duration, number: usize, call: Effect) -> (Duration, Input) {
        let down = (DOWN_FROM..DOWN_FROM + DOWN_FOR).contains(&now);
        let failure = match self.manner {
            _ if !down => None,
            Manner::Refuses => Some((LATENCY, Fault::Refused(Reason::Unreachable))),
            Manner::Breaks => Some((LATENCY, Fault::Unknown)),
            Manner::Hangs => Some((self.timing.timeout(), Fault::Unknown)),
        };
        let stored = &mut self.leases[number].stored;
        match (call, failure) {
            (Effect::Write(_), Some((takes, fault))) => (takes, Input::Written(Outcome::Fault(fault))),
            (_, Some((takes, fault))) => (takes, Input::Read(Err(fault))),
            (Effect::Write(write), None) => {
                let fits = match (&write.expect, &*stored) {
                    (Expect::Absent, Content::Absent) => true,
                    (Expect::Version(expected), Content::Record(_, version)) => expected == version,
                    _ => false,
                };
                assert!(fits, "every key has one holder");
                let version = Version::new(write.record.nonce.to_string());
                *stored = Content::Record(write.record, version.clone());
                (LATENCY, Input::Written(Outcome::Applied { version, time: None }))
            }
            (_, None) => (LATENCY, Input::Read(Ok(Look { content: stored.clone(), age: None, time: None }))),
        }
    }

    /// Calls in this span.
    fn calls(&self, from: Duration, span: Duration) -> u64 {
        let from = from.as_secs() as usize;
        self.calls[from..from + span.as_secs() as usize].iter().sum()
    }
}

/// A renewal is one write. In an outage it costs more: a write without an answer is read back at once, and later a read
/// comes before the next write.
#[test]
fn a_thousand_holders_survive_an_outage_and_send_the_store_no_burst() {
    for (manner, most_percent) in [(Manner::Refuses, 150), (Manner::Hangs, 200), (Manner::Breaks, 300)] {
        let fleet = Fleet::new(manner).run();
        let lost = fleet.leases.iter().filter(|lease| lease.lost).count();
        assert_eq!(lost, 0, "{manner:?}");
        let period = fleet.timing.period();
        let steady = fleet.calls(DOWN_FROM - TTL, TTL) / 3;
        let second = Duration::from_secs(1);
        let starts = (0..20).map(|number| DOWN_FROM + number * second);
        let most = starts.map(|from| fleet.calls(from, period)).max().unwrap();
        assert!(
            most * 100 <= steady * most_percent,
            "{manner:?}: {most} calls in a period, {steady} in the steady state: {:?}",
            &fleet.calls[45..]
        );
        let after = fleet.calls(DOWN_FROM + DOWN_FOR, TTL);
        assert!(after <= steady * 3 * 3 / 2, "{manner:?}: {after} calls in the ttl after the outage");
    }
}
