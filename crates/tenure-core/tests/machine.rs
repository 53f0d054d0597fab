//! The machine alone, stepped by hand: orders of events that occur once in a million on a real store.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{
    AcquireMode, AcquireParams, Ambient, Content, Denied, Effect, Event, Fault, Heed, Input, Left, Look,
    Lost, Machine, Outcome, Patience, Purpose, Sighting, Sightings, Write,
};
use tenure_core::record::{Nonce, Record, State, Witness};
use tenure_core::{Holder, Instant, ProcessInfo, Timing, TimingBuilder, Token, WallTime};
use tenure_store::{Reason, StoreClock, StoreTime, Version};

const TTL: Duration = Duration::from_secs(15);

/// One machine and its latest requests.
struct Solo {
    machine: Machine,
    sightings: Sightings,
    now: Instant,
    steps: u128,
    wake: Option<Instant>,
    told: Vec<Event>,
    call: Option<Effect>,
    /// Requested witness inspections that were not answered yet.
    looks: Vec<Nonce>,
    jitter: u32,
}

impl Solo {
    fn new(name: &str, choose: impl FnOnce(&mut AcquireParams)) -> Self {
        let mut params = AcquireParams {
            holder: Arc::new(Holder::new(name).unwrap()),
            timing: Timing::new(TTL).unwrap(),
            store_clock: StoreClock::Nothing,
            clock_tick: Duration::ZERO,
            process: None,
            witness: None,
            secret_hash: None,
            value: None,
            patience: Patience::Forever,
            strict: false,
            manual: false,
            hint_pause: Timing::new(TTL).unwrap().retry(),
            heed: Heed::Ttl,
            once_per: None,
            mode: AcquireMode::Wait,
        };
        choose(&mut params);
        let now = Instant::from_nanos(1_000_000_000_000);
        let machine = Machine::new(params);
        let sightings = Sightings::default();
        Self {
            machine,
            sightings,
            now,
            steps: 0,
            wake: None,
            told: vec![],
            call: None,
            looks: vec![],
            jitter: 0,
        }
    }

    fn step(&mut self, input: Input) {
        self.steps += 1;
        let nonce = Nonce::from_bits(self.steps << 64 | self.machine_name());
        let ambient = Ambient { now: self.now, wall: WallTime::from_millis(1), nonce, jitter: self.jitter };
        let mut effects = vec![];
        self.machine.step(&ambient, &mut self.sightings, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::SleepUntil(at) => self.wake = Some(at),
                Effect::Tell(event) => self.told.push(event),
                Effect::Read | Effect::Write(_) => {
                    assert!(self.call.replace(effect).is_none(), "one call at a time")
                }
                Effect::LookAtWitness { nonce, .. } => self.looks.push(nonce),
            }
        }
    }

    /// Distinguishes the nonces of two machines.
    fn machine_name(&self) -> u128 {
        std::ptr::from_ref(self) as usize as u128
    }

    fn wake(&mut self) {
        let at = self.wake.take().expect("it sleeps");
        self.now = self.now.max(at);
        self.step(Input::Wake);
    }

    fn read_shows(&mut self, content: Content) {
        self.read_shows_at(content, None);
    }

    fn read_shows_at(&mut self, content: Content, time: Option<StoreTime>) {
        assert!(matches!(self.call.take(), Some(Effect::Read)), "it reads");
        self.step(Input::Read(Ok(Look { content, age: None, time })));
    }

    /// Answers the oldest inspection of a witness.
    fn witness_shows(&mut self, sighting: Sighting) {
        let nonce = self.looks.remove(0);
        self.step(Input::Witness { nonce, sighting });
    }

    fn sent(&self) -> &Write {
        match &self.call {
            Some(Effect::Write(write)) => write,
            other => panic!("it did not write but {other:?}"),
        }
    }

    fn answer(&mut self, outcome: Outcome) -> Arc<Record> {
        let record = Arc::clone(&self.sent().record);
        self.call = None;
        self.step(Input::Written(outcome));
        record
    }

    fn apply(&mut self, version: &str) -> Content {
        let version = Version::new(version);
        let record = self.answer(Outcome::Applied { version: version.clone(), time: None });
        Content::Record(record, version)
    }

    /// A machine that holds the lease, and its record.
    fn holding(name: &str, choose: impl FnOnce(&mut AcquireParams)) -> (Self, Content) {
        let mut solo = Self::new(name, choose);
        solo.step(Input::Start);
        solo.read_shows(Content::Absent);
        solo.apply("planted");
        let held = solo.apply("granted");
        assert!(matches!(solo.told[..], [Event::Granted { .. }]), "{:?}", solo.told);
        (solo, held)
    }
}

#[test]
fn a_conflict_without_cause_is_retried_once_and_then_gets_a_pause() {
    for patience in [Patience::Once, Patience::Forever] {
        let mut solo = Solo::new("a", |params| params.patience = patience);
        solo.step(Input::Start);
        solo.read_shows(Content::Absent);
        let planted = solo.apply("planted");
        for _ in 0..2 {
            assert_eq!(solo.sent().purpose, Purpose::Grant);
            solo.answer(Outcome::Conflict);
            if matches!(solo.call, Some(Effect::Read)) {
                solo.read_shows(planted.clone());
            }
        }
        assert!(solo.call.is_none(), "a store that refuses for no reason is not asked without end");
        match patience {
            Patience::Once => {
                assert_eq!(solo.told, [Event::Denied(Denied::Unavailable(Some(Fault::Unknown)))])
            }
            _ => assert!(solo.wake.is_some_and(|at| at > solo.now)),
        }
    }
}

#[test]
fn a_contender_that_loses_the_race_for_a_new_key_twice_is_denied_as_held() {
    let mut other = Solo::new("b", |_| {});
    other.step(Input::Start);
    other.read_shows(Content::Absent);
    let planted = other.apply("planted");
    let held = other.apply("granted");

    let mut solo = Solo::new("a", |params| params.patience = Patience::Once);
    solo.step(Input::Start);
    solo.read_shows(Content::Absent);
    solo.answer(Outcome::Conflict);
    solo.read_shows(planted);
    assert_eq!(solo.sent().purpose, Purpose::Grant);
    solo.answer(Outcome::Conflict);
    solo.read_shows(held);
    assert!(matches!(solo.told[..], [Event::Denied(Denied::Held(_))]), "{:?}", solo.told);
}

#[test]
fn a_renewal_refused_for_no_reason_is_a_failure_like_any_other() {
    let (mut solo, held) = Solo::holding("a", |_| {});
    solo.wake();
    solo.answer(Outcome::Conflict);
    solo.read_shows(held.clone());
    assert_eq!(solo.told.last(), Some(&Event::AtRisk(Fault::Unknown)));
    solo.answer(Outcome::Conflict);
    solo.read_shows(held);
    assert!(solo.call.is_none() && solo.wake.is_some_and(|at| at > solo.now), "the second time it waits");

    let (mut strict, held) = Solo::holding("a", |params| params.strict = true);
    strict.wake();
    strict.answer(Outcome::Conflict);
    strict.read_shows(held);
    assert!(strict.told.contains(&Event::Lost(Lost::RenewalFailed)));
}

#[test]
fn a_holder_asked_for_a_long_pause_tries_again_before_its_work_must_stop() {
    let grace = TTL / 3;
    let timing = Timing::builder(TTL).grace(grace).build().unwrap();
    let (mut solo, held) = Solo::holding("a", |params| params.timing = timing);
    let stop = solo.now + timing.drift().shorten(TTL) - grace - timing.margin();
    solo.wake();
    solo.answer(Outcome::Fault(Fault::Throttled(Some(Duration::from_secs(3_600)))));
    assert!(solo.call.is_none(), "the store gets a pause");
    solo.wake();
    assert!(stop.since(solo.now) > timing.timeout(), "in time for an answer");
    solo.read_shows(held);
    assert_eq!(solo.sent().purpose, Purpose::Renew);
}

#[test]
fn a_patience_that_ends_after_a_withheld_grant_says_so_whatever_the_last_call_was() {
    let withheld = Duration::from_secs(3);
    let patience = Patience::Until(Instant::from_nanos(1_004_000_000_000));
    let mut solo = Solo::new("a", |params| params.patience = patience);
    solo.step(Input::Start);
    let (mut holder, _) = Solo::holding("b", |_| {});
    holder.step(Input::Release);
    holder.step(Input::Drained);
    let vacant = Content::Record(Arc::clone(&holder.sent().record), Version::new("vacant"));
    solo.read_shows(vacant.clone());
    assert_eq!(solo.sent().purpose, Purpose::Grant);
    solo.answer(Outcome::Fault(Fault::Withheld(withheld)));
    solo.wake();
    // The next attempt begins, and the patience ends before its answer.
    if matches!(solo.call, Some(Effect::Read)) {
        solo.read_shows(vacant);
    }
    assert_eq!(solo.sent().purpose, Purpose::Grant);
    solo.wake();
    assert_eq!(solo.told, [Event::Denied(Denied::Withheld(withheld))]);
}

/// Fate of the calls of a holder, by the time since the last one that was confirmed was sent.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// It fails after this time.
    Fails(Fault, Duration),
    /// It is answered after this time.
    Works(Duration),
}

/// A holder whose renewals meet these calls, until its lease is renewed or lost. Returns the instants at which it called,
/// since the grant.
fn renew_against(solo: &mut Solo, mut stored: Content, call: impl Fn(Duration) -> Call) -> Vec<Duration> {
    let granted = solo.now;
    let mut called = vec![];
    while matches!(solo.told.last(), Some(Event::Granted { .. } | Event::AtRisk(_))) {
        let Some(effect) = &solo.call else {
            solo.wake();
            continue;
        };
        let is_read = matches!(effect, Effect::Read);
        let since = solo.now.since(granted);
        called.push(since);
        let (fault, takes) = match call(since) {
            Call::Fails(fault, takes) => (Some(fault), takes),
            Call::Works(takes) => (None, takes),
        };
        solo.now = solo.now + takes;
        match (is_read, fault) {
            (true, Some(fault)) => {
                solo.call = None;
                solo.step(Input::Read(Err(fault)));
            }
            (true, None) => solo.read_shows(stored.clone()),
            (false, Some(fault)) => drop(solo.answer(Outcome::Fault(fault))),
            (false, None) => stored = solo.apply(&format!("renewed at {}", solo.now)),
        }
    }
    called
}

/// Durations of every kind: the defaults, a long grace, a short period, a long timeout.
fn timings() -> Vec<Timing> {
    let built = |ttl: u64, choose: fn(TimingBuilder) -> TimingBuilder| {
        choose(Timing::builder(Duration::from_millis(ttl))).build().unwrap()
    };
    let mut timings = vec![
        built(15_000, |it| it.grace(Duration::from_secs(5))),
        built(15_000, |it| it.period(Duration::from_secs(1))),
        built(20_000, |it| it.timeout(Duration::from_secs(4))),
        built(600_000, |it| it.period(Duration::from_secs(10)).grace(Duration::from_secs(60))),
    ];
    timings.extend([50, 1_000, 15_000, 60_000, 600_000, 86_400_000].map(|ttl| built(ttl, |it| it)));
    timings
}

/// The ends and the middle of the range of jitter.
const JITTERS: [u32; 3] = [0, u32::MAX / 2, u32::MAX];

#[test]
fn a_holder_calls_a_failing_store_three_to_five_times_however_fast_it_fails() {
    let unreachable = Fault::Refused(Reason::Unreachable);
    for (timing, jitter) in timings().into_iter().flat_map(|it| JITTERS.map(|jitter| (it, jitter))) {
        for fault in [Fault::Unknown, unreachable, Fault::Throttled(None), Fault::Refused(Reason::Denied)] {
            let (mut solo, held) = Solo::holding("a", |params| params.timing = timing);
            solo.jitter = jitter;
            let called = renew_against(&mut solo, held, |_| Call::Fails(fault, Duration::ZERO));
            assert!(solo.told.contains(&Event::Lost(Lost::Expired)), "it keeps its lease until the deadline");
            let told = format!("{fault:?}, jitter {jitter}, {called:?}: {timing}");
            assert!((3..=5).contains(&called.len()), "{told}");
            assert!(called.iter().all(|at| *at < timing.usable()), "a call after the work must stop: {told}");
            let last = *called.last().unwrap();
            assert!(last >= timing.usable() - 3 * timing.timeout(), "the last call comes too early: {told}");
        }
    }
}

#[test]
fn the_pause_between_two_fast_failures_is_half_a_period_and_up_to_twice_as_long_by_chance() {
    let timing = Timing::new(TTL).unwrap();
    let unreachable = Fault::Refused(Reason::Unreachable);
    let first = |jitter| {
        let (mut solo, held) = Solo::holding("a", |params| params.timing = timing);
        solo.jitter = jitter;
        let called = renew_against(&mut solo, held, |_| Call::Fails(unreachable, Duration::ZERO));
        let pauses: Vec<_> = called.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses.iter().all(|pause| *pause >= timing.period() / 2), "{pauses:?}");
        pauses[0]
    };
    let ten = Duration::from_nanos(10);
    assert_eq!(first(0), timing.period() / 2);
    assert!(first(u32::MAX) >= timing.period() - ten, "{:?}", first(u32::MAX));
}

#[test]
fn calls_that_time_out_leave_room_for_three_of_them() {
    let timing = Timing::new(TTL).unwrap();
    for jitter in JITTERS {
        let (mut solo, held) = Solo::holding("a", |params| params.timing = timing);
        solo.jitter = jitter;
        let called = renew_against(&mut solo, held, |_| Call::Fails(Fault::Unknown, timing.timeout()));
        assert!((3..=5).contains(&called.len()), "{called:?}");
        assert_eq!(called[1] - called[0], timing.timeout(), "the first lost answer is read back at once");
    }
}

/// The outage begins just before the latest renewal and lasts as long as the timing promises. Its last call hangs, in every
/// phase; after it, every call takes almost its complete timeout.
#[test]
fn an_outage_that_the_timing_rides_out_costs_nothing_in_its_worst_phase() {
    let nearly = Duration::from_nanos(1);
    for (timing, jitter) in timings().into_iter().flat_map(|it| JITTERS.map(|jitter| (it, jitter))) {
        for (hang, fault) in (0..=20).flat_map(|hang| {
            [Fault::Unknown, Fault::Throttled(Some(TTL)), Fault::Refused(Reason::Unreachable)]
                .map(|it| (hang, it))
        }) {
            let (mut solo, held) = Solo::holding("a", |params| params.timing = timing);
            solo.jitter = jitter;
            let ends = timing.period() + timing.rides_out();
            let hangs_from = ends.saturating_sub(timing.period() * hang / 20);
            let called = renew_against(&mut solo, held, |since| {
                if since >= ends {
                    Call::Works(timing.timeout() - nearly)
                } else if since >= hangs_from {
                    Call::Fails(fault, timing.timeout())
                } else {
                    Call::Fails(fault, Duration::ZERO)
                }
            });
            let told = format!("{fault:?}, jitter {jitter}, hangs from {hang}, {called:?}: {timing}");
            let renewed = matches!(solo.told.last(), Some(Event::Renewed { .. }));
            assert!(renewed, "{told}");
            let confirmed = *called.last().unwrap() + timing.timeout();
            assert!(confirmed <= timing.usable(), "renewed after the work had to stop: {told}");
        }
    }
}

/// All holders learn at the same moment that the store is away, for example because it closes all connections.
#[test]
fn holders_that_fail_at_the_same_moment_call_again_at_different_ones() {
    let timing = Timing::new(TTL).unwrap();
    let unreachable = Fault::Refused(Reason::Unreachable);
    let again: Vec<_> = (0..100)
        .map(|number| {
            let (mut solo, held) = Solo::holding("a", |params| params.timing = timing);
            solo.jitter = u32::MAX / 100 * number;
            let granted = solo.now;
            // The jitter of the first renewal is that of the grant, and the same for all.
            let called = renew_against(&mut solo, held, |since| {
                if since <= timing.period() {
                    Call::Fails(unreachable, Duration::ZERO)
                } else {
                    Call::Works(Duration::ZERO)
                }
            });
            assert!(solo.now.since(granted) < timing.usable());
            *called.last().unwrap()
        })
        .collect();
    let tenth = timing.period() / 10;
    let within = |part| again.iter().filter(|at| (tenth * part..tenth * (part + 1)).contains(*at)).count();
    let most = (0..30).map(within).max();
    assert!(most <= Some(25), "more than a quarter of the holders within a tenth of a period: {again:?}");
}

const DENIED: Fault = Fault::Refused(Reason::Denied);

#[test]
fn a_patient_contender_reports_a_denial_after_seven_answers_and_half_a_minute_to_a_minute() {
    for jitter in JITTERS {
        let mut solo = Solo::new("a", |_| {});
        solo.jitter = jitter;
        let began = solo.now;
        solo.step(Input::Start);
        let mut denials = 0;
        while solo.told.is_empty() {
            assert!(matches!(solo.call.take(), Some(Effect::Read)));
            denials += 1;
            solo.step(Input::Read(Err(DENIED)));
            if solo.told.is_empty() {
                solo.wake();
            }
        }
        assert_eq!(solo.told, [Event::Denied(Denied::Refused(Reason::Denied))]);
        assert_eq!(denials, 7);
        let took = solo.now.since(began);
        assert!((Duration::from_secs(31)..=Duration::from_secs(63)).contains(&took), "{took:?}");
    }
}

#[test]
fn reads_that_succeed_do_not_hide_that_every_write_is_denied() {
    let mut solo = Solo::new("a", |_| {});
    solo.step(Input::Start);
    let mut denials = 0;
    while solo.told.is_empty() {
        if solo.call.is_none() {
            solo.wake();
        }
        solo.read_shows(Content::Absent);
        solo.answer(Outcome::Fault(DENIED));
        denials += 1;
    }
    assert_eq!(solo.told, [Event::Denied(Denied::Refused(Reason::Denied))]);
    assert_eq!(denials, 7);
}

#[test]
fn denied_answers_that_are_far_apart_do_not_add_up() {
    let (_, held) = Solo::holding("b", |_| {});
    let mut solo = Solo::new("a", |_| {});
    solo.step(Input::Start);
    for number in 0..20 {
        assert!(matches!(solo.call.take(), Some(Effect::Read)));
        solo.step(Input::Read(Err(DENIED)));
        solo.wake();
        let Content::Record(record, _) = &held else { unreachable!() };
        let mut renewed = (**record).clone();
        (renewed.nonce, renewed.sequence) = (Nonce::from_bits(100 + number), record.sequence + 1);
        solo.read_shows(Content::Record(Arc::new(renewed), Version::new(format!("{number}"))));
        solo.wake();
    }
    assert_eq!(solo.told, []);
}

#[test]
fn who_tries_once_has_a_handle_or_uses_a_local_store_learns_of_a_denial_at_once() {
    let (holder, _) = Solo::holding("a", |_| {});
    let handle = holder.machine.term_ref().unwrap();
    let once = Solo::new("b", |params| params.patience = Patience::Once);
    let resuming = Solo::new("a", |params| params.mode = AcquireMode::Resume(handle));
    let local = Solo::new("b", |params| params.hint_pause = Duration::ZERO);
    for mut solo in [once, resuming, local] {
        solo.step(Input::Start);
        solo.call = None;
        solo.step(Input::Read(Err(DENIED)));
        assert_eq!(solo.told, [Event::Denied(Denied::Refused(Reason::Denied))]);
    }
}

#[test]
fn a_patience_that_ends_among_denied_answers_says_so() {
    let mut solo = Solo::new("a", |params| {
        params.patience = Patience::Until(Instant::from_nanos(1_002_000_000_000));
    });
    solo.step(Input::Start);
    while solo.told.is_empty() {
        if solo.call.take().is_some() {
            solo.step(Input::Read(Err(DENIED)));
        } else {
            solo.wake();
        }
    }
    assert_eq!(solo.told, [Event::Denied(Denied::Refused(Reason::Denied))]);
}

#[test]
fn a_stealer_ends_the_term_it_found_and_not_those_that_come_after() {
    let (_, first) = Solo::holding("first", |_| {});
    let Content::Record(first, _) = first else { unreachable!() };
    let mut stealer = Solo::new("stealer", |params| params.mode = AcquireMode::Revoke("because".into()));
    stealer.step(Input::Start);
    stealer.read_shows(Content::Record(Arc::clone(&first), Version::new("1")));
    assert_eq!(stealer.sent().purpose, Purpose::Revoke);
    // It never learns the outcome, and then another holder has the key.
    stealer.answer(Outcome::Fault(Fault::Unknown));
    let mut second = (*first).clone();
    (second.term, second.nonce) = (Nonce::from_bits(77), Nonce::from_bits(77));
    stealer.read_shows(Content::Record(Arc::new(second), Version::new("2")));
    assert!(stealer.call.is_none(), "it waits like everybody");
}

#[test]
fn a_wait_ends_in_time_even_while_a_grant_learned_too_late_is_vacated() {
    let mut solo = Solo::new("a", |_| {});
    let limit = solo.now + 2 * TTL;
    solo = Solo::new("a", |params| params.patience = Patience::Until(limit));
    solo.step(Input::Start);
    solo.read_shows(Content::Absent);
    solo.apply("planted");
    let grant = solo.answer(Outcome::Fault(Fault::Unknown));
    assert!(matches!(solo.call, Some(Effect::Read)));
    solo.now = solo.now + TTL;
    solo.read_shows(Content::Record(grant, Version::new("granted")));
    assert_eq!(solo.sent().purpose, Purpose::Vacate, "too late to believe it");
    solo.now = limit;
    solo.step(Input::Wake);
    assert_eq!(solo.told, [Event::Denied(Denied::Unavailable(None))]);
}

#[test]
fn a_leaving_machine_requests_no_wake_in_the_past_during_a_call() {
    let (mut solo, _) = Solo::holding("a", |_| {});
    solo.wake();
    solo.step(Input::Release);
    solo.step(Input::Drained);
    assert_eq!(solo.sent().purpose, Purpose::Renew, "the renewal is still under way");
    solo.now = solo.now + 3 * TTL;
    solo.wake = None;
    solo.step(Input::Wake);
    assert_eq!(solo.wake, None, "an instant that has passed would come at once, forever");
}

#[test]
fn an_implausible_store_time_allows_no_grant_after_the_token_went_back() {
    let mut solo = Solo::new("a", |params| params.store_clock = StoreClock::Floors);
    let look = |content| Look { content, age: None, time: Some(StoreTime::from_micros(1)) };
    let (_, held) = Solo::holding("b", |_| {});
    solo.step(Input::Start);
    solo.call = None;
    solo.step(Input::Read(Ok(look(held))));
    solo.wake();
    solo.call = None;
    solo.step(Input::Read(Ok(look(Content::Absent))));
    assert!(
        matches!(solo.told[..], [Event::WentBack { .. }, Event::Denied(Denied::WentBack { .. })]),
        "{:?}",
        solo.told
    );
}

/// A store time this many seconds after an arbitrary moment.
fn second(second: u64) -> Option<StoreTime> {
    Some(StoreTime::from_micros(1_794_735_088_000_000 + second * 1_000_000))
}

/// A contender on a store whose clock shows whole seconds, which has just planted the record in second `planted`.
fn planter(planted: Option<StoreTime>, choose: impl FnOnce(&mut AcquireParams)) -> (Solo, Content) {
    let mut solo = Solo::new("a", |params| {
        (params.store_clock, params.clock_tick) = (StoreClock::Floors, Duration::from_secs(1));
        choose(params);
    });
    solo.step(Input::Start);
    solo.read_shows_at(Content::Absent, planted);
    let version = Version::new("planted");
    let record = solo.answer(Outcome::Applied { version: version.clone(), time: planted });
    (solo, Content::Record(record, version))
}

#[test]
fn a_first_grant_needs_a_later_time_than_the_first_answer_that_showed_the_planted_record() {
    let (mut solo, planted) = planter(second(7), |_| {});
    for _ in 0..2 {
        assert!(solo.call.is_none(), "it waits");
        let wait = solo.wake.unwrap().since(solo.now);
        assert!((Duration::from_secs(1)..Duration::from_millis(1_020)).contains(&wait), "{wait:?}");
        solo.wake();
        solo.read_shows_at(planted.clone(), second(7));
    }
    solo.wake();
    solo.read_shows_at(planted.clone(), second(8));
    assert_eq!(solo.sent().purpose, Purpose::Grant);
    assert_eq!(Some(solo.sent().record.token.get()), second(8).map(StoreTime::as_micros));

    // A contender that did not plant it does not know when it was planted.
    let mut other = Solo::new("b", |params| {
        (params.store_clock, params.clock_tick) = (StoreClock::Floors, Duration::from_secs(1));
    });
    other.step(Input::Start);
    other.read_shows_at(planted.clone(), second(8));
    assert!(other.call.is_none(), "it waits");
    other.wake();
    other.read_shows_at(planted, second(9));
    assert_eq!(Some(other.sent().record.token.get()), second(9).map(StoreTime::as_micros));
}

#[test]
fn a_patience_that_is_shorter_than_a_tick_is_enough_for_a_first_grant_and_does_not_wait_for_a_holder() {
    let soon = |params: &mut AcquireParams| {
        params.patience = Patience::Until(Instant::from_nanos(1_000_100_000_000));
    };
    let (mut solo, planted) = planter(second(7), soon);
    solo.wake();
    solo.read_shows_at(planted.clone(), second(8));
    assert_eq!(solo.sent().purpose, Purpose::Grant);
    solo.apply("granted");
    assert!(matches!(solo.told[..], [Event::Granted { .. }]), "{:?}", solo.told);

    // A clock that shows no later time does not prolong it further.
    let (mut solo, planted) = planter(second(7), soon);
    let began = solo.now;
    while solo.told.is_empty() {
        solo.wake();
        if solo.call.is_some() {
            solo.read_shows_at(planted.clone(), second(7));
        }
    }
    assert_eq!(solo.told, [Event::Denied(Denied::Unavailable(None))]);
    assert!(solo.now.since(began) < Duration::from_millis(2_100), "{:?}", solo.now.since(began));

    let (mut solo, _) = planter(second(7), soon);
    let (_, held) = Solo::holding("b", |_| {});
    solo.wake();
    solo.read_shows_at(held, second(8));
    solo.wake();
    assert!(matches!(solo.told.last(), Some(Event::Denied(Denied::Held(_)))), "{:?}", solo.told);
}

#[test]
fn a_front_end_that_is_behind_is_waited_out_and_a_contender_without_patience_is_denied() {
    for patience in [Patience::Once, Patience::Forever] {
        let (mut solo, planted) = planter(second(7), |params| params.patience = patience);
        for reads in 1..=3 {
            solo.wake();
            solo.read_shows_at(planted.clone(), second(4));
            let wait = solo.wake.unwrap().since(solo.now);
            assert!(wait > Duration::from_secs(4), "{wait:?} after {reads} reads: as long as it is behind");
        }
        solo.wake();
        if patience == Patience::Once {
            assert_eq!(solo.told, [Event::Denied(Denied::Unavailable(None))]);
            assert!(solo.call.is_none());
            continue;
        }
        solo.read_shows_at(planted, second(8));
        assert_eq!(Some(solo.sent().record.token.get()), second(8).map(StoreTime::as_micros));
    }
}

/// For example a proxy that caches the `Date`.
#[test]
fn a_store_whose_clock_stands_still_is_refused_after_three_reads() {
    let (mut solo, planted) = planter(second(7), |_| {});
    for _ in 0..3 {
        solo.wake();
        solo.read_shows_at(planted.clone(), second(7));
    }
    solo.wake();
    assert!(solo.call.is_none());
    assert_eq!(solo.told, [Event::Denied(Denied::ClockStands)]);
}

/// While the contender cannot reach the store, it learns nothing about its clock.
#[test]
fn reads_without_an_answer_do_not_count_as_a_clock_that_stands_still() {
    let (mut solo, planted) = planter(second(7), |_| {});
    for _ in 0..10 {
        solo.wake();
        assert!(matches!(solo.call.take(), Some(Effect::Read)), "it reads");
        solo.step(Input::Read(Err(Fault::Unknown)));
        assert_eq!(solo.told, [], "it goes on");
    }
    solo.wake();
    solo.read_shows_at(planted, second(8));
    assert_eq!(solo.sent().purpose, Purpose::Grant);
}

#[test]
fn one_implausible_time_blocks_no_first_grant() {
    let year_9999 = Some(StoreTime::from_micros(253_370_764_800_000_000));
    let (mut solo, planted) = planter(second(7), |_| {});
    assert!(solo.call.is_none(), "it waits");
    let mut other = Solo::new("b", |params| {
        (params.store_clock, params.clock_tick) = (StoreClock::Floors, Duration::from_secs(1));
    });
    other.sightings = std::mem::take(&mut solo.sightings);
    other.step(Input::Start);
    other.wake();
    other.read_shows_at(planted.clone(), year_9999);
    assert_eq!(other.sent().purpose, Purpose::Grant, "without a floor");
    other.answer(Outcome::Conflict);
    other.read_shows_at(planted, second(8));
    assert_eq!(Some(other.sent().record.token.get()), second(8).map(StoreTime::as_micros));
}

#[test]
fn a_renewal_by_handle_that_is_learned_of_after_the_deadline_of_the_handle_revives_nothing() {
    let (holder, held) = Solo::holding("a", |params| params.manual = true);
    let handle = holder.machine.term_ref().expect("it is held");
    let deadline = handle.deadline;
    let mut command = Solo::new("a", |params| {
        (params.manual, params.patience) = (true, Patience::Until(deadline));
        params.mode = AcquireMode::Resume(handle);
    });
    command.step(Input::Start);
    command.read_shows(held);
    assert_eq!(command.sent().purpose, Purpose::Resume);
    // The command was stopped, and receives the answer before it reads the clock.
    command.now = deadline;
    command.apply("resumed");
    assert_eq!(command.told, [Event::Denied(Denied::StaleHandle(Lost::Expired))]);
    assert!(command.machine.is_ended() && command.call.is_none(), "and it vacates nothing");
}

#[test]
fn a_released_record_keeps_everything_but_the_holder() {
    let (mut solo, held) = Solo::holding("a", |params| params.value = Some("v".into()));
    solo.step(Input::Release);
    solo.step(Input::Drained);
    let vacant = Arc::clone(&solo.sent().record);
    let Content::Record(held, _) = held else { unreachable!() };
    assert_eq!((vacant.state.clone(), vacant.token, &*vacant.value), (State::Vacant, held.token, "v"));
    assert!(vacant.holder.is_none() && vacant.history.len() == 1 && vacant.sequence == held.sequence + 1);
}

#[test]
fn on_one_machine_a_contender_reads_at_once_on_a_hint_and_backs_off_after_false_hints() {
    let (mut a, held) = Solo::holding("a", |_| {});
    let mut solo = Solo::new("b", |params| params.hint_pause = Duration::ZERO);
    solo.step(Input::Start);
    solo.read_shows(held.clone());
    let mut looks = 0;
    let began = solo.now;
    while solo.now < began + Duration::from_secs(2) {
        solo.step(Input::Changed);
        if solo.call.is_some() {
            solo.read_shows(held.clone());
            looks += 1;
        }
        solo.now = solo.now + Duration::from_millis(1);
        if solo.wake.is_some_and(|at| at <= solo.now) {
            solo.wake = None;
            solo.step(Input::Wake);
            if solo.call.is_some() {
                solo.read_shows(held.clone());
                looks += 1;
            }
        }
    }
    assert!((4..=7).contains(&looks), "{looks} looks in two seconds of hints that hint at nothing");
    // The key has changed at last: the machine reads at once on the next hint again.
    a.step(Input::Renew);
    let renewed = a.apply("renewed");
    solo.now = solo.now + Duration::from_secs(1);
    solo.step(Input::Changed);
    solo.read_shows(renewed.clone());
    solo.step(Input::Changed);
    solo.read_shows(renewed);
}

#[test]
fn a_contender_in_a_crowd_reads_later_the_more_often_others_were_faster() {
    // At each of its reads, another contender has just been granted.
    let terms: Vec<_> = ["a", "c", "d", "e", "f", "g", "h", "i", "j"]
        .into_iter()
        .zip(10..)
        .map(|(name, steps)| {
            let mut solo = Solo::new(name, |_| {});
            solo.steps = steps * 1_000;
            solo.step(Input::Start);
            solo.read_shows(Content::Absent);
            solo.apply("planted");
            solo.apply(name)
        })
        .collect();
    let mut solo = Solo::new("b", |params| params.hint_pause = Duration::ZERO);
    solo.jitter = u32::MAX;
    solo.step(Input::Start);
    let mut waits = Vec::new();
    for held in terms {
        solo.read_shows(held);
        solo.now = solo.now + Duration::from_millis(20);
        solo.step(Input::Changed);
        let at = if solo.call.is_some() { solo.now } else { solo.wake.unwrap() };
        waits.push(at.since(solo.now).as_millis());
        if solo.call.is_none() {
            // More hints do not draw a new moment, which would be an earlier one on average.
            solo.jitter = 0;
            solo.step(Input::Changed);
            solo.jitter = u32::MAX;
            assert_eq!((solo.wake, solo.call.is_none()), (Some(at), true));
            solo.now = at;
            solo.step(Input::Wake);
        }
    }
    assert_eq!(waits, [0, 0, 2, 6, 14, 30, 62, 62, 62], "as far as one millisecond goes into the next");
}

#[test]
fn a_hint_during_a_read_causes_another_read() {
    let (_, held) = Solo::holding("a", |_| {});
    let mut solo = Solo::new("b", |params| params.hint_pause = Duration::ZERO);
    solo.step(Input::Start);
    solo.step(Input::Changed);
    solo.read_shows(held.clone());
    assert_eq!(solo.wake, Some(solo.now), "the look may have been answered before the change");
    solo.step(Input::Wake);
    solo.read_shows(held);
    assert!(solo.wake.is_some_and(|at| at > solo.now));
}

// ── work that outlives its holder ──────────────────────────────────────────────────────────────────────────────────

/// A witness whose holder is stopped, and whose tree is locked or not.
fn stopped(tree_locked: bool) -> Sighting {
    Sighting { found: true, same_file: true, guards_locked: true, tree_locked, lists_nonce: true }
}

/// A record with a witness, and a contender that has read it and inspects the witness.
fn heeding() -> (Solo, Content) {
    let witness = Witness::new("w", 1);
    let (_, held) = Solo::holding("a", |params| params.witness = Some(Arc::new(witness)));
    let mut solo = Solo::new("b", |params| params.heed = Heed::Tree { limit: None });
    solo.step(Input::Start);
    solo.read_shows(held.clone());
    assert_eq!(solo.looks.len(), 1, "it looks whether the holder is dead");
    (solo, held)
}

#[test]
fn an_inspection_begun_before_the_run_out_does_not_count_as_one_after_it() {
    let (mut solo, held) = heeding();
    solo.now = solo.now + 2 * TTL;
    solo.step(Input::Wake);
    solo.read_shows(held.clone());
    // The answer of the earlier inspection arrives. It shows no tree: the holder may have been about to start it.
    assert_eq!(solo.looks.len(), 1, "the earlier look is awaited");
    solo.witness_shows(stopped(false));
    assert!(solo.call.is_none(), "nothing is taken on the strength of it");
    solo.witness_shows(stopped(true));
    assert!(solo.call.is_none() && solo.looks.is_empty(), "its tree is alive");
    assert!(matches!(solo.told[..], [Event::Outlived { taken: false, .. }]), "{:?}", solo.told);
    // Each poll reads, and inspects again. The tree has ended, and its holder is still stopped.
    solo.wake();
    solo.read_shows(held);
    solo.witness_shows(stopped(false));
    assert_eq!(solo.sent().purpose, Purpose::Grant);
}

#[test]
fn a_tree_that_ends_between_two_polls_frees_the_lease_at_once() {
    let (mut solo, held) = heeding();
    solo.witness_shows(stopped(true));
    solo.now = solo.now + 2 * TTL;
    solo.step(Input::Wake);
    solo.read_shows(held.clone());
    let Content::Record(record, _) = &held else { unreachable!() };
    solo.witness_shows(stopped(true));
    assert!(solo.call.is_none());
    // Reported by the kernel without a request.
    solo.step(Input::Witness { nonce: record.nonce, sighting: stopped(false) });
    assert_eq!(solo.sent().purpose, Purpose::Grant);
}

#[test]
fn a_witness_that_cannot_be_inspected_after_the_run_out_counts_as_none() {
    let (mut solo, held) = heeding();
    solo.witness_shows(stopped(true));
    solo.now = solo.now + 2 * TTL;
    solo.step(Input::Wake);
    solo.read_shows(held);
    solo.witness_shows(Sighting::default());
    assert_eq!(solo.sent().purpose, Purpose::Grant);
}

#[test]
fn a_stealer_takes_over_unstoppable_work_of_a_dead_holder() {
    let (mut solo, held) = {
        let witness = Witness::new("w", 1);
        let (mut holder, _) = Solo::holding("a", |params| params.witness = Some(Arc::new(witness)));
        holder.step(Input::CannotStop("it runs as another user".into()));
        let held = holder.apply("renewed");
        (Solo::new("b", |params| params.mode = AcquireMode::Revoke("because".into())), held)
    };
    let Content::Record(record, _) = &held else { unreachable!() };
    assert!(record.cannot_stop().is_some(), "it is said by the next write");
    solo.step(Input::Start);
    solo.read_shows(held.clone());
    assert!(solo.call.is_none(), "nothing is written before the witness was looked at");
    solo.witness_shows(Sighting { guards_locked: false, ..stopped(false) });
    assert_eq!(solo.sent().purpose, Purpose::Grant);
}

// ── the process of a term ───────────────────────────────────────────────────────────────────────────────────────────

fn process(pid: u32) -> impl FnOnce(&mut AcquireParams) {
    move |params| params.process = Some(Arc::new(ProcessInfo::default().with_pid(pid)))
}

/// The process that a reader of the record shows, and the time between its renewals.
fn shown_process(content: &Content) -> (Option<u32>, Option<u64>) {
    let Content::Record(record, _) = content else { unreachable!() };
    (record.holder_process().and_then(|process| process.pid()), record.renews_ms())
}

#[test]
fn a_grant_names_its_process_and_renewals_keep_it_and_a_release_removes_it() {
    let (mut holder, held) = Solo::holding("a", process(4711));
    let period = Timing::new(TTL).unwrap().period().as_millis() as u64;
    assert_eq!(shown_process(&held), (Some(4711), Some(period)));
    holder.wake();
    let renewed = holder.apply("renewed");
    assert_eq!(shown_process(&renewed), (Some(4711), Some(period)));
    holder.step(Input::Release);
    holder.step(Input::Drained);
    let Content::Record(vacant, _) = holder.apply("vacated") else { unreachable!() };
    assert_eq!(vacant.process, None);
}

#[test]
fn a_grant_over_the_record_of_another_process_never_keeps_that_process() {
    let (_, held) = Solo::holding("a", process(4711));
    let mut silent = Solo::new("b", |params| params.mode = AcquireMode::TakeNow("because".into()));
    silent.step(Input::Start);
    silent.read_shows(held);
    let taken = silent.apply("taken");
    assert_eq!(shown_process(&taken), (None, None));
}

#[test]
fn a_renewal_by_a_handle_keeps_the_process_that_acquired_it_and_a_resumption_names_its_own() {
    for (manual, expected) in [(true, Some(4711)), (false, Some(42))] {
        let (holder, held) = Solo::holding("a", |params| {
            process(4711)(params);
            params.manual = true;
        });
        let handle = holder.machine.term_ref().expect("it is held");
        let mut resuming = Solo::new("a", |params| {
            process(42)(params);
            (params.manual, params.mode) = (manual, AcquireMode::Resume(handle));
        });
        resuming.step(Input::Start);
        resuming.read_shows(held);
        let resumed = resuming.apply("resumed");
        assert_eq!(shown_process(&resumed).0, expected);
        assert_eq!(shown_process(&resumed).1.is_some(), !manual, "a handle is renewed on request");
    }
}

// ── a store that is removed under its holders ───────────────────────────────────────────────────────────────────────

const STORE_GONE: Fault = Fault::Refused(Reason::Gone);

#[test]
fn a_holder_whose_store_is_gone_has_lost_at_once_and_one_whose_store_is_unreachable_has_not() {
    let (mut unreachable, _) = Solo::holding("a", |_| ());
    unreachable.wake();
    unreachable.answer(Outcome::Fault(Fault::Refused(Reason::Unreachable)));
    assert!(matches!(unreachable.told[..], [_, Event::AtRisk(_)]), "{:?}", unreachable.told);

    let (mut gone, _) = Solo::holding("a", |_| ());
    gone.wake();
    gone.answer(Outcome::Fault(STORE_GONE));
    assert!(matches!(gone.told[..], [_, Event::Lost(Lost::StoreGone), Event::Left(_)]), "{:?}", gone.told);
    assert_eq!(gone.machine.left(), Some(Left::Lapsing), "its record may come back with the store");

    // The same if only the read back reports it.
    let (mut unknown, _) = Solo::holding("a", |_| ());
    unknown.wake();
    unknown.answer(Outcome::Fault(Fault::Unknown));
    assert!(matches!(unknown.call.take(), Some(Effect::Read)));
    unknown.step(Input::Read(Err(STORE_GONE)));
    assert!(unknown.told.contains(&Event::Lost(Lost::StoreGone)), "{:?}", unknown.told);
}

#[test]
fn a_holder_whose_bucket_was_deleted_keeps_its_term_until_the_deadline_and_no_longer() {
    let missing = Fault::Refused(Reason::Missing);
    let (mut solo, _) = Solo::holding("a", |_| ());
    solo.wake();
    solo.answer(Outcome::Fault(missing));
    assert!(matches!(solo.told[..], [_, Event::AtRisk(fault)] if fault == missing), "{:?}", solo.told);
    while !solo.told.iter().any(|event| matches!(event, Event::Lost(_))) {
        solo.wake();
        if let Some(call) = solo.call.take() {
            match call {
                Effect::Read => solo.step(Input::Read(Err(missing))),
                _ => solo.step(Input::Written(Outcome::Fault(missing))),
            }
        }
    }
    assert!(solo.told.contains(&Event::Lost(Lost::Expired)), "{:?}", solo.told);
}

#[test]
fn a_machine_that_leaves_a_store_that_is_gone_has_ended() {
    let (mut solo, _) = Solo::holding("a", |_| ());
    solo.step(Input::Release);
    solo.step(Input::Drained);
    assert_eq!(solo.sent().purpose, Purpose::Vacate);
    solo.answer(Outcome::Fault(STORE_GONE));
    assert_eq!(solo.machine.left(), Some(Left::Lapsing));
}

/// A suspended machine, or a stopped process: contenders that have not seen the record for long would wait for its ttl.
#[test]
fn a_holder_that_wakes_after_its_ttl_tries_once_to_vacate_its_record() {
    for answers in [true, false] {
        let (mut solo, held) = Solo::holding("a", |_| ());
        solo.now = solo.now + 10 * TTL;
        solo.step(Input::Wake);
        assert!(solo.told.contains(&Event::Lost(Lost::Expired)), "{:?}", solo.told);
        solo.step(Input::Drained);
        if matches!(solo.call, Some(Effect::Read)) {
            solo.read_shows(held);
        }
        assert_eq!(solo.sent().purpose, Purpose::Vacate);
        if answers {
            solo.apply("vacated");
            assert_eq!(solo.machine.left(), Some(Left::Vacated));
        } else {
            solo.answer(Outcome::Fault(Fault::Refused(Reason::Unreachable)));
            solo.wake();
            assert_eq!(solo.machine.left(), Some(Left::Lapsing), "it tries no longer");
            assert!(solo.call.is_none());
        }
    }
}

#[test]
fn work_that_ends_after_the_ttl_is_followed_by_a_vacate_and_its_end_is_told_once() {
    let (mut solo, held) = Solo::holding("a", |_| ());
    solo.now = solo.now + 10 * TTL;
    solo.step(Input::Wake);
    assert!(solo.machine.has_lapsed_under_work() && solo.call.is_none(), "nothing is vacated under work");
    solo.step(Input::Drained);
    solo.read_shows(held);
    assert_eq!(solo.sent().purpose, Purpose::Vacate);
    solo.apply("vacated");
    assert_eq!(solo.machine.left(), Some(Left::Vacated));
    let ends: Vec<_> = solo.told.iter().filter(|event| matches!(event, Event::Left(_))).collect();
    assert_eq!(ends, [&Event::Left(Left::Lapsing)]);
}

#[test]
fn a_hint_that_the_term_may_be_lost_brings_the_next_renewal_forward_and_proves_nothing_by_itself() {
    let (mut solo, _) = Solo::holding("a", |_| ());
    let next = solo.wake.unwrap();
    solo.step(Input::Doubted);
    assert_eq!(solo.sent().purpose, Purpose::Renew);
    // A hint during a call is not dropped: the answer may be older than the hint.
    solo.step(Input::Doubted);
    solo.apply("renewed");
    assert!(matches!(solo.told.last(), Some(Event::Renewed { .. })), "{:?}", solo.told);
    assert!(solo.wake.unwrap() < next, "the renewal after it is due now");
    solo.wake();
    assert_eq!(solo.sent().purpose, Purpose::Renew);
    solo.apply("again");
    assert!(solo.wake.unwrap() >= next, "and no more than that one");
    assert!(solo.machine.is_holding());
}

// ── ending a term without taking the lease ──────────────────────────────────────────────────────────────────────────

/// A machine that ends the term of this record.
fn ending(held: &Content) -> Solo {
    let Content::Record(record, _) = held else { unreachable!() };
    let term = record.term;
    let mut solo =
        Solo::new("b", |params| params.mode = AcquireMode::EndTerm { term, because: "resign".into() });
    solo.step(Input::Start);
    solo
}

#[test]
fn a_term_is_revoked_and_its_end_is_reported_without_a_grant() {
    let (mut holder, held) = Solo::holding("a", |_| {});
    let mut solo = ending(&held);
    solo.read_shows(held);
    assert_eq!(solo.sent().purpose, Purpose::Revoke);
    let revoked = solo.apply("revoked");
    assert!(solo.call.is_none(), "it waits");
    holder.wake();
    holder.answer(Outcome::Conflict);
    holder.read_shows(revoked);
    holder.step(Input::Drained);
    assert_eq!(holder.sent().purpose, Purpose::Vacate);
    let vacant = holder.apply("vacant");
    solo.wake();
    solo.read_shows(vacant);
    assert_eq!(
        (&solo.told[..], solo.machine.left()),
        (&[Event::Left(Left::Nothing)][..], Some(Left::Nothing))
    );
    assert!(solo.call.is_none(), "nothing is granted");
}

#[test]
fn a_term_that_is_over_already_is_left_alone_and_so_are_later_ones() {
    let (_, held) = Solo::holding("a", |_| {});
    let Content::Record(record, _) = &held else { unreachable!() };
    let mut later = (**record).clone();
    (later.term, later.nonce) = (Nonce::from_bits(77), Nonce::from_bits(77));
    let mut vacant = (**record).clone();
    vacant.state = State::Vacant;
    let shown = |record| Content::Record(Arc::new(record), Version::new("2"));
    for content in [shown(later), shown(vacant), Content::Absent] {
        let mut solo = ending(&held);
        solo.read_shows(content);
        assert_eq!(solo.told, [Event::Left(Left::Nothing)]);
        assert!(solo.call.is_none(), "nothing is written");
    }
}

#[test]
fn a_revoked_term_whose_holder_is_silent_is_over_when_its_ttl_is() {
    let (_, held) = Solo::holding("a", |_| {});
    let mut solo = ending(&held);
    solo.read_shows(held);
    let revoked = solo.apply("revoked");
    solo.now = solo.now + TTL;
    solo.step(Input::Wake);
    solo.read_shows(revoked.clone());
    assert!(solo.told.is_empty(), "the drift is not over");
    solo.now = solo.now + TTL;
    solo.step(Input::Wake);
    solo.read_shows(revoked);
    assert_eq!(solo.told, [Event::Left(Left::Nothing)]);
}

#[test]
fn work_that_cannot_be_stopped_is_not_revoked() {
    let (mut holder, _) = Solo::holding("a", |_| {});
    holder.step(Input::CannotStop("it runs as another user".into()));
    let held = holder.apply("renewed");
    let mut solo = ending(&held);
    solo.read_shows(held);
    assert!(matches!(solo.told[..], [Event::Denied(Denied::Unstoppable(_))]), "{:?}", solo.told);
    assert!(solo.call.is_none(), "nothing is written");
}

// ── many contenders ─────────────────────────────────────────────────────────────────────────────────────────────────

/// A contender that sees this many terms of others, one after the other, and the record of the last one.
fn among_others(terms: u32) -> (Solo, Content) {
    let (_, held) = Solo::holding("a", |params| params.witness = Some(Arc::new(Witness::new("w", 1))));
    let Content::Record(record, _) = &held else { unreachable!() };
    let mut solo = Solo::new("b", |_| {});
    solo.jitter = u32::MAX / 2;
    solo.step(Input::Start);
    let mut shown = held.clone();
    for term in 1..=terms {
        let mut other = (**record).clone();
        (other.term, other.nonce) = (Nonce::from_bits(term.into()), Nonce::from_bits(term.into()));
        shown = Content::Record(Arc::new(other), Version::new(term.to_string()));
        solo.read_shows(shown.clone());
        if term < terms {
            solo.witness_shows(stopped(true));
            solo.wake();
        }
    }
    (solo, shown)
}

fn dead() -> Sighting {
    Sighting { guards_locked: false, ..stopped(false) }
}

/// The witness of the record that the contender waits for shows the death of the holder, without having been asked.
fn holder_dies(contender: &mut Solo, held: &Content) {
    contender.witness_shows(stopped(true));
    let Content::Record(record, _) = held else { unreachable!() };
    contender.step(Input::Witness { nonce: record.nonce, sighting: dead() });
}

#[test]
fn a_newcomer_takes_over_from_a_dead_holder_at_once() {
    let (mut newcomer, _) = among_others(1);
    newcomer.witness_shows(dead());
    assert_eq!(newcomer.sent().purpose, Purpose::Grant);
}

#[test]
fn a_waiting_contender_reads_at_a_random_moment_after_the_death_of_the_holder_and_later_if_it_is_one_of_many()
{
    let timeout = Timing::new(TTL).unwrap().timeout();
    let mut delays = Vec::new();
    for terms in [1, 8] {
        let (mut contender, held) = among_others(terms);
        holder_dies(&mut contender, &held);
        assert!(contender.call.is_none(), "the others of this machine know it at the same moment");
        let died = contender.now;
        contender.wake();
        delays.push(contender.now.since(died));
        contender.read_shows(held);
        assert_eq!(contender.sent().purpose, Purpose::Grant, "no other contender was faster");
    }
    assert!(delays[0] <= timeout / 8, "{delays:?}");
    assert!(delays[1] > timeout / 4 && delays[1] <= timeout, "{delays:?}");
}

#[test]
fn a_contender_among_many_reads_at_a_random_moment_after_the_record_has_run_out() {
    let timeout = Timing::new(TTL).unwrap().timeout();
    let (mut solo, held) = among_others(8);
    solo.witness_shows(stopped(true));
    let seen = solo.now;
    let mut at = seen;
    while solo.call.is_none() || !matches!(solo.call, Some(Effect::Write(_))) {
        solo.wake();
        at = solo.now;
        solo.read_shows(held.clone());
        if !solo.looks.is_empty() {
            solo.witness_shows(stopped(true));
        }
    }
    assert_eq!(solo.sent().purpose, Purpose::Grant);
    let late = at.since(seen + Timing::new(TTL).unwrap().drift().lengthen(TTL));
    assert!(late > timeout / 4 && late <= timeout, "{late:?}");
}

/// A holder that has renewed once and finds another record in the place of its own; the cause of its loss.
fn replaced_by(choose: impl FnOnce(&Record, &mut Record)) -> Lost {
    let (mut solo, granted) = Solo::holding("web-1", |_| ());
    solo.wake();
    let renewed = solo.apply("renewed");
    solo.wake();
    solo.answer(Outcome::Conflict);
    let (Content::Record(granted, _), Content::Record(renewed, _)) = (&granted, &renewed) else {
        panic!("the holder wrote records");
    };
    let mut found = Record::clone(renewed);
    choose(granted, &mut found);
    solo.read_shows(Content::Record(Arc::new(found), Version::new("other")));
    let lost = |event: &Event| if let Event::Lost(why) = event { Some(why.clone()) } else { None };
    solo.told.iter().find_map(lost).expect("the lease is lost")
}

#[test]
fn an_earlier_record_of_the_same_term_is_a_restored_backup_and_not_another_holder() {
    let is_backup =
        |why: &Lost| matches!(why, Lost::Replaced { what } if what.contains("an earlier record is back"));
    let why = replaced_by(|granted, found| *found = granted.clone());
    assert!(is_backup(&why), "the record of the grant: {why:?}");
    let other = Nonce::from_bits(99);
    let why = replaced_by(|_, found| {
        (found.term, found.nonce) = (other, other);
        found.token = Token::new(found.token.get() - 1).unwrap();
    });
    assert!(is_backup(&why), "a smaller token: {why:?}");
    let why = replaced_by(|_, found| (found.term, found.nonce) = (other, other));
    assert!(matches!(why, Lost::Superseded { .. }), "another term: {why:?}");
}

#[test]
fn a_machine_says_whether_it_seeks_waits_holds_or_has_ended() {
    let states = |solo: &Solo| {
        let machine = &solo.machine;
        (machine.is_seeking(), machine.is_waiting(), machine.is_holding(), machine.is_ended())
    };
    let (holder, held) = Solo::holding("web-1", |_| ());
    assert_eq!(states(&holder), (false, false, true, false));
    let mut contender = Solo::new("web-2", |_| ());
    contender.step(Input::Start);
    assert_eq!(states(&contender), (true, false, false, false), "its read is on its way");
    contender.read_shows(held);
    assert_eq!(states(&contender), (true, true, false, false));
    contender.step(Input::Release);
    assert_eq!(states(&contender), (false, false, false, true));
}

#[test]
fn a_reserved_key_is_granted_to_its_successor_at_once_and_to_no_other_before_it_has_run_out() {
    let (_, held) = Solo::holding("web-1", |_| ());
    let Content::Record(record, version) = held else { panic!("the holder wrote a record") };
    let mut reserved = Record::clone(&record);
    reserved.state = State::Reserved("web-2".into());
    let reserved = Content::Record(Arc::new(reserved), version);
    let finds = |name: &str| {
        let mut contender = Solo::new(name, |_| ());
        contender.step(Input::Start);
        contender.read_shows(reserved.clone());
        contender
    };
    assert_eq!(finds("web-2").sent().record.state, State::Held);
    let mut other = finds("web-3");
    assert!(other.call.is_none(), "{:?}", other.call);
    let start = other.now;
    while other.call.as_ref().is_none_or(|call| matches!(call, Effect::Read)) {
        if other.call.is_some() {
            other.read_shows(reserved.clone());
        } else {
            other.wake();
        }
    }
    assert_eq!(other.now.since(start), Duration::from_millis(15_150), "the ttl and the drift");
}
