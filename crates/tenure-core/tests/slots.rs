//! Contenders for the slots of a group, in a small world: one clock, no ambient randomness.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{Patience, Standard};
use tenure_core::record::{Nonce, Record, State};
use tenure_core::slots::{
    GroupListing, GroupSize, SizeAnswer, SlotEffect, SlotEvent, SlotInput, SlotMachine, SlotMemory,
    SlotParams, SlotRules, SlotSight,
};
use tenure_core::{Instant, Timing, Token, WallTime};
use tenure_store::Stamp;

const TTL: Duration = Duration::from_secs(12);

fn size(slots: u32) -> GroupSize {
    GroupSize::new(slots).unwrap()
}

fn params(slots: u32, patience: Patience) -> SlotParams {
    let timing = Timing::new(TTL).unwrap();
    SlotParams { size: size(slots), timing, patience, hint_pause: Duration::ZERO, stamps: false }
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

/// A record of a holder with this ttl.
fn held(ttl: Duration) -> Arc<Record> {
    let mut record = Record::new(Token::new(7).unwrap(), Nonce::from_bits(7), WallTime::default());
    record.state = State::Held;
    record.ttl = tenure_core::record::Ttl::from_millis(ttl.as_millis() as u64);
    Arc::new(record)
}

/// SplitMix64: every number follows from the seed.
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
}

/// One contender in a group whose slots the test sets. Every call is answered at once.
struct Lone {
    machine: SlotMachine,
    now: Instant,
    stored: Option<GroupSize>,
    /// The slots that other holders have. They renew in time.
    held: Vec<bool>,
    /// The slot with a foreign value.
    foreign: Option<u16>,
    ttl: Duration,
    reads: Vec<u16>,
    tries: Vec<u16>,
    sizes: u32,
    listens: bool,
    wake: Option<Instant>,
    waits: Option<Instant>,
    released: Vec<u16>,
    told: Option<SlotEvent>,
    dice: Dice,
}

impl Lone {
    fn new(params: SlotParams, held: Vec<bool>) -> Self {
        Self {
            stored: Some(params.size),
            machine: SlotMachine::new(params),
            now: at(1_000),
            held,
            foreign: None,
            ttl: TTL,
            reads: vec![],
            tries: vec![],
            sizes: 0,
            listens: false,
            wake: None,
            waits: None,
            released: vec![],
            told: None,
            dice: Dice(3),
        }
    }

    fn full(slots: u32, patience: Patience) -> Self {
        Self::new(params(slots, patience), vec![true; slots as usize])
    }

    fn start(mut self) -> Self {
        self.step(SlotInput::Start);
        self
    }

    fn step(&mut self, input: SlotInput) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut effects = vec![];
            self.machine.step(self.now, self.dice.roll() as u32, input, &mut effects);
            for effect in effects {
                match effect {
                    SlotEffect::ReadSize => {
                        self.sizes += 1;
                        let answer = self.stored.map_or(SizeAnswer::Absent, SizeAnswer::Is);
                        inputs.push(SlotInput::Size { sent: self.now, answer });
                    }
                    SlotEffect::CreateSize(size) => {
                        let answer = SizeAnswer::Is(*self.stored.get_or_insert(size));
                        inputs.push(SlotInput::Size { sent: self.now, answer });
                    }
                    SlotEffect::Try(index) => {
                        self.tries.push(index);
                        let is_held = self.held[usize::from(index)];
                        inputs.push(if self.foreign == Some(index) {
                            SlotInput::Seen { index, sight: SlotSight::Unusable }
                        } else if is_held {
                            SlotInput::Denied { index }
                        } else {
                            SlotInput::Granted { index }
                        });
                    }
                    SlotEffect::Read(index) => {
                        self.reads.push(index);
                        let sight = if self.foreign == Some(index) {
                            SlotSight::Unusable
                        } else if self.held[usize::from(index)] {
                            SlotSight::Held { record: held(self.ttl), due: self.now + self.ttl }
                        } else {
                            SlotSight::Free
                        };
                        inputs.push(SlotInput::Seen { index, sight });
                    }
                    SlotEffect::List => panic!("a listing without stamps"),
                    SlotEffect::Wait { index: 0, until } => self.waits = Some(until),
                    SlotEffect::Wait { index, .. } => panic!("a wait for slot {index}"),
                    SlotEffect::Listen => self.listens = true,
                    SlotEffect::Release(index) => self.released.push(index),
                    SlotEffect::SleepUntil(at) => self.wake = Some(at),
                    SlotEffect::Tell(event) => self.told = Some(event),
                }
            }
        }
    }

    /// Lets this much time pass, or less if the contender is told something.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(wake) = self.wake.filter(|wake| *wake <= end && self.told.is_none()) {
            self.wake = None;
            self.now = self.now.max(wake);
            self.step(SlotInput::Wake);
        }
        self.now = self.now.max(end);
    }

    fn calls(&self) -> usize {
        self.reads.len() + self.tries.len() + self.sizes as usize
    }
}

#[test]
fn an_empty_group_costs_a_read_of_the_size_a_try_and_a_second_read_of_the_size() {
    let lone = Lone::new(params(64, Patience::Forever), vec![false; 64]).start();
    assert!(matches!(lone.told, Some(SlotEvent::Believe { index }) if lone.tries == [index]));
    assert_eq!((lone.sizes, lone.reads.len(), lone.listens), (2, 0, false));
}

#[test]
fn a_group_without_a_size_gets_the_one_of_its_first_contender() {
    let mut lone = Lone::new(params(3, Patience::Forever), vec![false; 3]);
    lone.stored = None;
    let lone = lone.start();
    assert_eq!(lone.stored, Some(size(3)));
    assert!(matches!(lone.told, Some(SlotEvent::Believe { .. })));
}

#[test]
fn another_size_is_refused_with_both_numbers_and_nothing_is_tried() {
    let mut lone = Lone::new(params(3, Patience::Forever), vec![false; 3]);
    lone.stored = Some(size(5));
    let lone = lone.start();
    let Some(SlotEvent::Refused { own, stored, resized: false }) = lone.told else {
        panic!("{:?}", lone.told)
    };
    assert_eq!((own, stored), (size(3), size(5)));
    assert!(lone.tries.is_empty() && lone.machine.is_ended());
}

#[test]
fn contenders_start_at_a_random_slot() {
    let mut starts = BTreeMap::<u16, u32>::new();
    for seed in 0..6_400 {
        let random = Dice(seed).roll() as u32;
        *starts.entry(Standard.first_slot(64, random)).or_default() += 1;
    }
    assert_eq!(starts.len(), 64);
    assert!(starts.values().all(|count| (50..200).contains(count)), "{starts:?}");
    assert_eq!(Standard.first_slot(1, u32::MAX), 0);
    assert_eq!(Standard.first_slot(1_024, u32::MAX), 1_023);
}

#[test]
fn the_only_free_slot_is_found_by_reading_each_other_slot_at_most_once() {
    for free in 0..64 {
        let mut held = vec![true; 64];
        held[free] = false;
        let lone = Lone::new(params(64, Patience::Once), held).start();
        assert!(matches!(lone.told, Some(SlotEvent::Believe { index }) if usize::from(index) == free));
        assert!(lone.calls() <= 64 + 4, "{} calls", lone.calls());
    }
}

#[test]
fn a_contender_that_tries_once_learns_all_holders_of_a_full_group() {
    let lone = Lone::full(5, Patience::Once).start();
    let Some(SlotEvent::Full { holders }) = &lone.told else { panic!("{:?}", lone.told) };
    let indexes: Vec<_> = holders.iter().map(|holder| holder.index).collect();
    assert_eq!(indexes, [0, 1, 2, 3, 4]);
    assert_eq!((lone.reads.len(), lone.tries.len(), lone.listens), (5, 1, false));
}

#[test]
fn a_full_group_of_64_costs_a_waiting_contender_at_most_four_calls_per_ttl() {
    let mut lone = Lone::full(64, Patience::Forever).start();
    assert_eq!(lone.reads.len(), 64, "a newcomer reads each slot once");
    for _ in 0..100 {
        let before = lone.calls();
        lone.pass(TTL);
        assert!(lone.calls() - before <= 4, "{} calls in a ttl", lone.calls() - before);
    }
    assert!(lone.listens && lone.told.is_none());
}

#[test]
fn a_freed_slot_is_seen_within_a_round_without_hints() {
    let mut dice = Dice(11);
    for slots in [2, 3, 5, 64] {
        for _ in 0..50 {
            let mut lone = Lone::full(slots, Patience::Forever);
            lone.dice = Dice(dice.roll());
            let mut lone = lone.start();
            lone.pass(TTL * dice.below(40) as u32 + Duration::from_millis(dice.below(12_000)));
            let free = dice.below(slots.into()) as usize;
            lone.held[free] = false;
            lone.pass(TTL * 11 / 10 * (slots + 2) / 4);
            assert!(
                matches!(lone.told, Some(SlotEvent::Believe { index }) if usize::from(index) == free),
                "slot {free} of {slots}"
            );
        }
    }
}

#[test]
fn a_hint_is_followed_by_one_read_of_that_slot_and_by_a_try_if_it_is_free() {
    let mut lone = Lone::full(64, Patience::Forever).start();
    let before = lone.reads.len();
    lone.step(SlotInput::Hinted { index: 9 });
    assert_eq!(lone.reads[before..], [9]);
    assert!(lone.told.is_none(), "its holder renewed");
    lone.held[33] = false;
    lone.step(SlotInput::Hinted { index: 33 });
    assert!(matches!(lone.told, Some(SlotEvent::Believe { index: 33 })));
    lone.step(SlotInput::Hinted { index: 999 });
}

#[test]
fn the_slot_that_was_tried_before_the_contender_listened_is_read_again_because_no_hint_told_of_its_release() {
    let mut machine = SlotMachine::new(params(2, Patience::Forever));
    let step = &mut |input| {
        let mut effects = vec![];
        machine.step(at(1_000), 0, input, &mut effects);
        effects
    };
    let sight = || SlotSight::Held { record: held(TTL), due: at(1_000) + TTL };
    step(SlotInput::Start);
    let tried = step(SlotInput::Size { sent: at(1_000), answer: SizeAnswer::Is(size(2)) });
    let [SlotEffect::Try(first)] = tried[..] else { panic!("{tried:?}") };
    // Its holder releases it now.
    let other = 1 - first;
    let effects = step(SlotInput::Seen { index: first, sight: sight() });
    assert!(
        matches!(effects[..], [SlotEffect::Listen, SlotEffect::Read(index)] if index == other),
        "{effects:?}"
    );
    let effects = step(SlotInput::Seen { index: other, sight: sight() });
    assert!(matches!(effects[..], [SlotEffect::Read(index)] if index == first), "{effects:?}");
    let effects = step(SlotInput::Seen { index: first, sight: SlotSight::Free });
    assert!(matches!(effects[..], [SlotEffect::Try(index)] if index == first), "{effects:?}");
}

#[test]
fn a_shrink_between_the_grant_and_the_second_read_of_the_size_gives_the_slot_back() {
    let mut machine = SlotMachine::new(params(5, Patience::Forever));
    let mut effects = vec![];
    machine.step(at(1), 0, SlotInput::Start, &mut effects);
    let answer = SizeAnswer::Is(size(5));
    machine.step(at(2), u32::MAX, SlotInput::Size { sent: at(1), answer }, &mut effects);
    let index = match effects.last() {
        Some(SlotEffect::Try(index)) => *index,
        other => panic!("{other:?}"),
    };
    machine.step(at(3), 0, SlotInput::Granted { index }, &mut effects);
    effects.clear();
    machine.step(at(4), 0, SlotInput::Size { sent: at(2), answer }, &mut effects);
    assert!(matches!(effects[..], [SlotEffect::ReadSize]), "an answer to an earlier read proves nothing");
    effects.clear();
    let answer = SizeAnswer::Is(size(3));
    machine.step(at(5), 0, SlotInput::Size { sent: at(4), answer }, &mut effects);
    let [SlotEffect::Release(released), SlotEffect::Tell(SlotEvent::Refused { own, stored, resized: true })] =
        effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!((released, own, stored), (index, size(5), size(3)));
    assert!(machine.is_ended());
}

#[test]
fn a_resize_evicts_no_holder() {
    let mut lone = Lone::new(params(5, Patience::Forever), vec![false; 5]).start();
    let index = lone.machine.held().unwrap();
    lone.step(SlotInput::Size { sent: lone.now, answer: SizeAnswer::Is(size(1)) });
    assert_eq!(lone.machine.held(), Some(index));
    lone.step(SlotInput::Release);
    assert_eq!(lone.released, [index]);
}

#[test]
fn a_waiting_contender_learns_of_a_resize_within_a_round() {
    for slots in [2, 5, 64] {
        let mut lone = Lone::full(slots, Patience::Forever).start();
        lone.pass(TTL * 3);
        lone.stored = Some(size(slots + 1));
        lone.pass(TTL * 11 / 10 * (slots + 2) / 4);
        assert!(matches!(lone.told, Some(SlotEvent::Refused { resized: true, .. })), "{slots}");
    }
}

#[test]
fn the_only_slot_of_a_group_is_waited_for_as_a_lease_and_the_size_is_read_from_time_to_time() {
    let mut lone = Lone::full(1, Patience::Until(at(1_000) + TTL * 10)).start();
    let mut waits = vec![];
    while lone.told.is_none() {
        let until = lone.waits.take().expect("it waits");
        waits.push(until.since(lone.now));
        lone.now = until;
        lone.step(SlotInput::Denied { index: 0 });
    }
    assert_eq!(waits, [TTL * 4, TTL * 4, TTL * 2]);
    assert!(matches!(&lone.told, Some(SlotEvent::Full { holders }) if holders.len() == 1));
    assert!(!lone.listens, "the lease listens itself");
}

#[test]
fn patience_ends_with_the_holders() {
    let mut lone = Lone::full(5, Patience::Until(at(1_000) + TTL)).start();
    lone.pass(TTL - Duration::from_millis(1));
    assert!(lone.told.is_none());
    lone.pass(Duration::from_millis(1));
    assert!(matches!(&lone.told, Some(SlotEvent::Full { holders }) if holders.len() == 5));
}

#[test]
fn a_slot_with_a_long_ttl_is_not_left_out_for_those_with_a_short_one() {
    let slot = |read: u64, due: u64| SlotMemory {
        sight: Some(SlotSight::Held { record: held(TTL), due: at(due) }),
        read_at: Some(at(read)),
        ..SlotMemory::default()
    };
    let pause = Duration::from_secs(3);
    let slots = [slot(100, 112), slot(103, 115), slot(97, 3_697), slot(106, 118)];
    assert_eq!(Standard.next_slot(at(108), &slots, pause), Some(2), "the oldest, if nothing has run out");
    assert_eq!(Standard.next_slot(at(108), &[slot(107, 100), slot(105, 110)], pause), Some(0));
    assert_eq!(Standard.next_slot(at(120), &slots, pause), Some(2), "not read for a round");
}

#[test]
fn an_unusable_slot_is_read_again_rarely_because_an_operator_may_repair_it() {
    let pause = Duration::from_secs(3);
    let slot = |sight: SlotSight, read: u64| SlotMemory {
        sight: Some(sight),
        read_at: Some(at(read)),
        ..SlotMemory::default()
    };
    let next = |now: u64, read: u64| {
        let used = slot(SlotSight::Held { record: held(TTL), due: at(now + 9) }, now - 3);
        Standard.next_slot(at(now), &[slot(SlotSight::Unusable, read), used], pause)
    };
    assert_eq!(next(123, 100), Some(1), "not before four rounds of two reads");
    assert_eq!(next(124, 100), Some(0));
    let due = slot(SlotSight::Held { record: held(TTL), due: at(190) }, 190);
    let slots = [slot(SlotSight::Unusable, 100), due];
    assert_eq!(Standard.next_slot(at(200), &slots, pause), Some(1), "a slot that can be granted comes first");
    assert_eq!(Standard.next_slot(at(120), &[slot(SlotSight::Unusable, 100)], pause), None);
}

#[test]
fn a_waiting_contender_takes_a_slot_that_was_repaired() {
    let mut lone = Lone::full(3, Patience::Forever);
    lone.foreign = Some(1);
    let mut lone = lone.start();
    lone.pass(TTL * 3);
    (lone.foreign, lone.held[1]) = (None, false);
    assert!(lone.told.is_none());
    lone.pass(TTL * 5);
    assert!(matches!(lone.told, Some(SlotEvent::Believe { index: 1 })), "{:?}", lone.told);
}

// ── many contenders, in every order ───────────────────────────────────────────────────────────────────────────────

/// A call that was sent and not executed, or executed and not answered.
enum Pending {
    Call(SlotEffect, Instant),
    Answer(SlotInput),
}

struct Contender {
    machine: SlotMachine,
    pending: Vec<Pending>,
    wake: Option<Instant>,
    /// The slot of its lease, and the number of the event that granted it.
    granted: Option<(u16, usize)>,
    believes: Option<u16>,
}

/// Contenders whose calls are executed and answered in any order, and a group that is resized.
struct World {
    dice: Dice,
    now: Instant,
    contenders: Vec<Contender>,
    /// The sizes of the group, each with the number of the event that set it.
    sizes: Vec<(usize, GroupSize)>,
    slots: BTreeMap<u16, usize>,
    events: usize,
    rules: &'static dyn SlotRules,
}

impl World {
    fn new(seed: u64, rules: &'static dyn SlotRules) -> Self {
        let mut dice = Dice(seed);
        let sizes = vec![(0, size(1 + dice.below(4) as u32))];
        Self { dice, now: at(1), contenders: vec![], sizes, slots: BTreeMap::new(), events: 0, rules }
    }

    fn size(&self) -> GroupSize {
        self.sizes.last().unwrap().1
    }

    /// Runs, and returns the number of beliefs, or the violation that was seen.
    fn run(mut self) -> Result<usize, String> {
        let mut beliefs = 0;
        while self.events < 400 {
            self.events += 1;
            self.now = self.now + Duration::from_millis(self.dice.below(300));
            match self.dice.below(20) {
                0 if self.contenders.len() < 8 => {
                    let machine = SlotMachine::with_rules(
                        params(self.size().get().into(), Patience::Forever),
                        self.rules,
                    );
                    let (pending, wake) = (vec![Pending::Answer(SlotInput::Start)], None);
                    self.contenders.push(Contender { machine, pending, wake, granted: None, believes: None });
                }
                1 if self.dice.below(4) == 0 => {
                    let size = size(1 + self.dice.below(4) as u32);
                    self.sizes.push((self.events, size));
                }
                2 => {
                    if let Some(of) = self.any(|contender| contender.believes.is_some()) {
                        self.contenders[of].pending.push(Pending::Answer(SlotInput::Release));
                    }
                }
                _ => {
                    if let Some(of) = self.any(|contender| !contender.pending.is_empty()) {
                        let at = self.dice.below(self.contenders[of].pending.len() as u64) as usize;
                        beliefs += usize::from(self.go_on(of, at)?);
                    } else if let Some(of) = self.any(|contender| contender.wake.is_some()) {
                        let contender = &mut self.contenders[of];
                        self.now = self.now.max(contender.wake.take().expect("it sleeps"));
                        contender.pending.push(Pending::Answer(SlotInput::Wake));
                    }
                }
            }
            self.contenders.retain(|contender| !contender.machine.is_ended() || contender.granted.is_some());
        }
        Ok(beliefs)
    }

    fn any(&mut self, is: impl Fn(&Contender) -> bool) -> Option<usize> {
        let all: Vec<_> = (0..self.contenders.len()).filter(|of| is(&self.contenders[*of])).collect();
        (!all.is_empty()).then(|| all[self.dice.below(all.len() as u64) as usize])
    }

    /// Executes a call, or delivers an answer. True if a belief began.
    fn go_on(&mut self, of: usize, at: usize) -> Result<bool, String> {
        match self.contenders[of].pending.swap_remove(at) {
            Pending::Call(call, sent) => {
                if let Some(answer) = self.execute(of, call, sent) {
                    self.contenders[of].pending.push(Pending::Answer(answer));
                }
                Ok(false)
            }
            Pending::Answer(input) => self.deliver(of, input),
        }
    }

    fn execute(&mut self, of: usize, call: SlotEffect, sent: Instant) -> Option<SlotInput> {
        match call {
            SlotEffect::ReadSize | SlotEffect::CreateSize(_) if self.dice.below(20) == 0 => {
                Some(SlotInput::Size { sent, answer: SizeAnswer::Unknown })
            }
            SlotEffect::ReadSize | SlotEffect::CreateSize(_) => {
                Some(SlotInput::Size { sent, answer: SizeAnswer::Is(self.size()) })
            }
            SlotEffect::Try(index) | SlotEffect::Wait { index, .. } => Some(match self.slots.get(&index) {
                _ if self.dice.below(20) == 0 => SlotInput::Failed { index },
                Some(_) => SlotInput::Denied { index },
                None => {
                    self.slots.insert(index, of);
                    self.contenders[of].granted = Some((index, self.events));
                    SlotInput::Granted { index }
                }
            }),
            SlotEffect::Read(index) => Some(match self.slots.contains_key(&index) {
                _ if self.dice.below(20) == 0 => SlotInput::Failed { index },
                true => {
                    let sight = SlotSight::Held { record: held(TTL), due: self.now + TTL };
                    SlotInput::Seen { index, sight }
                }
                false => SlotInput::Seen { index, sight: SlotSight::Free },
            }),
            SlotEffect::Release(index) => {
                self.slots.remove(&index);
                self.contenders[of].granted = None;
                None
            }
            SlotEffect::List | SlotEffect::Listen | SlotEffect::SleepUntil(_) | SlotEffect::Tell(_) => None,
        }
    }

    fn deliver(&mut self, of: usize, input: SlotInput) -> Result<bool, String> {
        let mut effects = vec![];
        let jitter = self.dice.roll() as u32;
        self.contenders[of].machine.step(self.now, jitter, input, &mut effects);
        let mut believed = false;
        for effect in effects {
            let contender = &mut self.contenders[of];
            match effect {
                SlotEffect::SleepUntil(at) => contender.wake = Some(at),
                SlotEffect::Tell(SlotEvent::Believe { index }) => {
                    believed = true;
                    contender.believes = Some(index);
                    let granted = contender.granted.ok_or("a belief without a grant")?;
                    self.check_belief(index, granted)?;
                }
                SlotEffect::Release(_) => {
                    contender.believes = None;
                    contender.pending.push(Pending::Call(effect, self.now));
                }
                effect => contender.pending.push(Pending::Call(effect, self.now)),
            }
        }
        Ok(believed)
    }

    /// S4: the slot was in the group at some moment between its grant and the belief.
    fn check_belief(&self, index: u16, (slot, granted): (u16, usize)) -> Result<(), String> {
        assert_eq!(index, slot, "the lease of another slot");
        let later = self.sizes.iter().enumerate().filter(|(at, _)| {
            let until = self.sizes.get(at + 1).map_or(usize::MAX, |(until, _)| *until);
            until > granted
        });
        let mut sizes = later.map(|(_, (_, size))| size.get());
        if sizes.any(|size| index < size) {
            return Ok(());
        }
        Err(format!("slot {index} is believed in, and was never in the group since its grant"))
    }
}

#[test]
fn no_order_of_calls_and_answers_makes_a_contender_believe_in_a_slot_outside_the_group() {
    let mut beliefs = 0;
    for seed in 0..3_000 {
        beliefs += World::new(seed, &Standard).run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert!(beliefs > 10_000, "{beliefs} beliefs");
}

#[derive(Debug)]
struct OffByOne;

impl SlotRules for OffByOne {
    fn is_within(&self, index: u16, size: GroupSize) -> bool {
        index <= size.get()
    }
}

#[derive(Debug)]
struct SizeUnchecked;

impl SlotRules for SizeUnchecked {
    fn size_agrees(&self, _: GroupSize, _: GroupSize) -> bool {
        true
    }
}

#[derive(Debug)]
struct EarlierSize;

impl SlotRules for EarlierSize {
    fn believes_earlier_size(&self) -> bool {
        true
    }
}

#[test]
fn the_same_orders_find_every_broken_rule() {
    for rules in [&OffByOne as &'static dyn SlotRules, &SizeUnchecked, &EarlierSize] {
        assert!((0..500).any(|seed| World::new(seed, rules).run().is_err()), "{rules:?} was not found");
    }
}

// ── listings that show stamps ─────────────────────────────────────────────────────────────────────────────────────

/// The life of one slot, as its stamps show it.
#[derive(Clone, Copy)]
enum SlotLife {
    /// Its holder renews.
    Held,
    /// Its holder released it at this instant.
    Released(Instant),
    /// Its holder died at this instant.
    Dead(Instant),
}

/// One contender in a full group that it lists. Every call is answered at once.
struct Bucket {
    machine: SlotMachine,
    now: Instant,
    stored: GroupSize,
    resizes: u64,
    slots: Vec<SlotLife>,
    /// Phase of the renewals of each slot.
    phases: Vec<Duration>,
    /// Number of times that each slot was released and granted again at once.
    regrants: Vec<u64>,
    /// The latest stamp of each slot that was read, and the time of the first read that showed it.
    first_reads: BTreeMap<u16, (u64, Instant)>,
    shows_sizes: bool,
    lists: bool,
    /// The listing that the store shows for ever, if it does.
    stuck: Option<GroupListing>,
    listings: u32,
    calls: Vec<Instant>,
    wake: Option<Instant>,
    told: Option<SlotEvent>,
    dice: Dice,
}

impl Bucket {
    fn full(slots: u32, seed: u64) -> Self {
        let params = SlotParams { stamps: true, ..params(slots, Patience::Forever) };
        let mut dice = Dice(seed);
        Self {
            stored: params.size,
            machine: SlotMachine::new(params),
            now: at(1_000),
            resizes: 0,
            slots: vec![SlotLife::Held; slots as usize],
            phases: (0..slots).map(|_| Duration::from_millis(dice.below(4_000))).collect(),
            regrants: vec![0; slots as usize],
            first_reads: BTreeMap::new(),
            shows_sizes: true,
            lists: true,
            stuck: None,
            listings: 0,
            calls: vec![],
            wake: None,
            told: None,
            dice,
        }
    }

    fn start(mut self) -> Self {
        self.step(SlotInput::Start);
        self
    }

    /// Number of writes of a slot so far, and the size of its record.
    fn entry(&self, index: u16) -> (u64, u64) {
        let slot = usize::from(index);
        let period = TTL / 3 - Duration::from_millis(100);
        let renewals = |until: Instant| {
            let since = until.since(at(0) + self.phases[slot]);
            (since.as_nanos() / period.as_nanos()) as u64
        };
        let (writes, size) = match self.slots[slot] {
            SlotLife::Held => (renewals(self.now), 900),
            SlotLife::Released(at) => (renewals(at) + 1, 800),
            SlotLife::Dead(at) => (renewals(at), 900),
        };
        (writes + 2 * self.regrants[slot], size + 3 * (self.regrants[slot] % 5))
    }

    fn listing(&self) -> GroupListing {
        let stamp = |index| {
            let (writes, size) = self.entry(index);
            (index, Stamp::new(writes.to_string()).with_size(self.shows_sizes.then_some(size)))
        };
        GroupListing {
            size: Some(Stamp::new(self.resizes.to_string())),
            slots: (0..self.slots.len() as u16).map(stamp).collect(),
        }
    }

    fn sight(&mut self, index: u16) -> SlotSight {
        let (writes, _) = self.entry(index);
        let seen = self.first_reads.entry(index).or_insert((writes, self.now));
        if seen.0 != writes {
            *seen = (writes, self.now);
        }
        let due = seen.1 + TTL;
        match self.slots[usize::from(index)] {
            SlotLife::Released(_) => SlotSight::Free,
            SlotLife::Dead(_) if due <= self.now => SlotSight::Free,
            _ => SlotSight::Held { record: held(TTL), due },
        }
    }

    fn step(&mut self, input: SlotInput) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut effects = vec![];
            self.machine.step(self.now, self.dice.roll() as u32, input, &mut effects);
            for effect in effects {
                if !matches!(effect, SlotEffect::SleepUntil(_) | SlotEffect::Tell(_) | SlotEffect::Listen) {
                    self.calls.push(self.now);
                }
                match effect {
                    SlotEffect::ReadSize => {
                        inputs.push(SlotInput::Size { sent: self.now, answer: SizeAnswer::Is(self.stored) });
                    }
                    SlotEffect::List => {
                        self.listings += 1;
                        let listing = self.stuck.clone().unwrap_or_else(|| self.listing());
                        let listed = SlotInput::Listed { sent: self.now, listing };
                        inputs.push(if self.lists { listed } else { SlotInput::NotListed });
                    }
                    SlotEffect::Try(index) => inputs.push(match self.sight(index) {
                        SlotSight::Free => SlotInput::Granted { index },
                        sight => SlotInput::Seen { index, sight },
                    }),
                    SlotEffect::Read(index) => {
                        let sight = self.sight(index);
                        inputs.push(SlotInput::Seen { index, sight });
                    }
                    SlotEffect::SleepUntil(at) => self.wake = Some(at),
                    SlotEffect::Tell(event) => self.told = Some(event),
                    SlotEffect::Listen => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    /// Lets this much time pass, or less if the contender is told something.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(wake) = self.wake.filter(|wake| *wake <= end && self.told.is_none()) {
            self.wake = None;
            self.now = self.now.max(wake);
            self.step(SlotInput::Wake);
        }
        self.now = self.now.max(end);
    }

    /// Lets a random time pass, long enough for several listings.
    fn settle(mut self) -> Self {
        let span = TTL * (2 + self.dice.below(20) as u32) + Duration::from_millis(self.dice.below(12_000));
        self.pass(span);
        self
    }

    fn any_slot(&mut self) -> usize {
        self.dice.below(self.slots.len() as u64) as usize
    }

    fn is_granted(&self, slot: usize) -> bool {
        matches!(self.told, Some(SlotEvent::Believe { index }) if usize::from(index) == slot)
    }

    fn calls_since(&self, since: Instant) -> usize {
        self.calls.iter().filter(|at| **at > since).count()
    }
}

#[test]
fn a_released_slot_is_seen_by_the_next_listing_whatever_the_number_of_slots() {
    for (slots, seeds) in [(4, 50), (5, 50), (64, 20), (1_024, 2)] {
        for seed in 0..seeds {
            let mut bucket = Bucket::full(slots, seed).start().settle();
            let free = bucket.any_slot();
            bucket.slots[free] = SlotLife::Released(bucket.now);
            bucket.pass(TTL * 2 / 5);
            assert!(bucket.is_granted(free), "slot {free} of {slots}, seed {seed}");
        }
    }
}

#[test]
fn where_listings_show_no_sizes_a_released_slot_is_seen_when_its_stamp_stands_still() {
    for slots in [4, 64] {
        for seed in 0..100 {
            let mut bucket = Bucket::full(slots, seed);
            bucket.shows_sizes = false;
            let mut bucket = bucket.start().settle();
            let free = bucket.any_slot();
            bucket.slots[free] = SlotLife::Released(bucket.now);
            bucket.pass(TTL * 4 / 5);
            assert!(bucket.is_granted(free), "slot {free} of {slots}, seed {seed}");
        }
    }
}

#[test]
fn a_slot_that_is_released_just_after_the_newcomer_read_it_is_seen_when_its_stamp_stands_still() {
    for seed in 0..50 {
        let mut bucket = Bucket::full(64, seed).start();
        let free = bucket.any_slot();
        bucket.slots[free] = SlotLife::Released(bucket.now);
        bucket.pass(TTL * 4 / 5);
        assert!(bucket.is_granted(free), "slot {free}, seed {seed}");
    }
}

#[test]
fn the_slot_of_a_dead_holder_in_a_listed_group_is_granted_within_two_ttl_and_never_by_listings_alone() {
    for slots in [4, 64] {
        for seed in 0..50 {
            let mut bucket = Bucket::full(slots, seed).start().settle();
            let dead = bucket.any_slot();
            bucket.slots[dead] = SlotLife::Dead(bucket.now);
            let died = bucket.now;
            bucket.pass(TTL * 2);
            assert!(bucket.is_granted(dead), "slot {dead} of {slots}, seed {seed}");
            let granted = *bucket.calls.last().unwrap();
            let first_read = bucket.first_reads[&(dead as u16)].1;
            assert!(first_read > died - TTL && granted >= first_read + TTL);
        }
    }
}

#[test]
fn a_listed_group_costs_at_most_four_calls_per_ttl_also_when_slots_change_hands() {
    for (slots, regrants) in [(4, 0), (64, 0), (4, 2), (64, 2), (64, 100)] {
        let mut bucket = Bucket::full(slots, 7).start().settle();
        let (began, listings) = (bucket.now, bucket.listings);
        for _ in 0..100 {
            let before = bucket.now;
            for _ in 0..regrants {
                let slot = bucket.any_slot();
                bucket.regrants[slot] += 1;
                bucket.pass(TTL / regrants);
            }
            bucket.pass(TTL.saturating_sub(bucket.now.since(before)));
            assert!(regrants > 0 || bucket.calls_since(before) <= 4, "{slots} slots");
        }
        assert!(bucket.told.is_none());
        let ttls = bucket.now.since(began).as_secs_f64() / TTL.as_secs_f64();
        // It saves up three calls.
        let calls = (bucket.calls_since(began) - 3) as f64 / ttls;
        let listings = f64::from(bucket.listings - listings) / ttls;
        assert!(calls <= 4.0, "{calls} calls per ttl, {slots} slots, {regrants} changes");
        assert!((1.9..=3.0).contains(&listings), "{listings} listings per ttl, {slots} slots");
    }
}

#[test]
fn a_group_of_three_slots_is_read_in_turn_and_not_listed() {
    let bucket = Bucket::full(3, 1).start().settle();
    assert_eq!(bucket.listings, 0);
}

#[test]
fn a_released_slot_is_seen_soon_while_other_slots_change_hands() {
    // One change per ttl, two, twenty.
    for (each, late_max) in [(20, 12), (10, 27), (1, 30)] {
        let mut late = 0;
        for seed in 0..30 {
            let mut bucket = Bucket::full(64, seed).start().settle();
            let mut next = 0;
            let mut changes = |bucket: &mut Bucket| {
                next += 1;
                bucket.pass(TTL / 20);
                let slot = bucket.any_slot();
                if slot != 9 && next % each == 0 {
                    bucket.regrants[slot] += 1;
                }
            };
            (0..200).for_each(|_| changes(&mut bucket));
            bucket.slots[9] = SlotLife::Released(bucket.now);
            (0..8).for_each(|_| changes(&mut bucket));
            late += usize::from(!bucket.is_granted(9));
            (0..18).for_each(|_| changes(&mut bucket));
            assert!(bucket.is_granted(9), "seed {seed}, a change per {each} twentieths of a ttl");
        }
        assert!(
            late <= late_max,
            "{late} of 30 were not seen by the next listing, a change per {each} twentieths of a ttl"
        );
    }
}

#[test]
fn a_resize_is_seen_by_the_next_listing() {
    let mut bucket = Bucket::full(64, 3).start().settle();
    (bucket.stored, bucket.resizes) = (size(65), 1);
    bucket.pass(TTL * 2 / 5);
    assert!(matches!(bucket.told, Some(SlotEvent::Refused { resized: true, .. })));
}

#[test]
fn where_listings_fail_the_slots_are_read_in_turn_and_a_listing_is_tried_again_after_each_round() {
    let mut bucket = Bucket::full(6, 5);
    bucket.lists = false;
    let mut bucket = bucket.start();
    bucket.pass(TTL * 5);
    assert!((3..=7).contains(&bucket.listings), "{} listings", bucket.listings);
    let began = bucket.now;
    bucket.pass(TTL * 10);
    assert!(bucket.calls_since(began) <= 40 && bucket.told.is_none());
    bucket.slots[4] = SlotLife::Released(bucket.now);
    bucket.pass(TTL * 11 / 10 * (6 + 3) / 4);
    assert!(bucket.is_granted(4));

    let mut bucket = Bucket::full(6, 5);
    bucket.lists = false;
    let mut bucket = bucket.start();
    bucket.pass(TTL * 5);
    bucket.lists = true;
    bucket.pass(TTL * 4);
    bucket.slots[4] = SlotLife::Released(bucket.now);
    bucket.pass(TTL * 2 / 5);
    assert!(bucket.is_granted(4), "it lists again");
}

#[test]
fn listings_that_never_change_delay_a_contender_and_do_not_stop_it() {
    for slots in [4, 16] {
        let mut bucket = Bucket::full(slots, 2).start().settle();
        bucket.stuck = Some(bucket.listing());
        bucket.pass(TTL * 3);
        bucket.slots[1] = SlotLife::Released(bucket.now);
        bucket.pass(TTL * (slots + 2));
        assert!(bucket.is_granted(1), "{slots} slots");
    }
}
