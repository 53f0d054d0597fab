//! Several leases at once, stepped by hand, and raced against others in every order that a seed produces.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::machine::{Patience, Standard};
use tenure_core::set::{SetAmbient, SetDenied, SetEffect, SetEvent, SetInput, SetMachine, SetRules};
use tenure_core::{ErrorKind, Instant};
use tenure_store::Key;

const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn keys(names: &[&str]) -> Vec<Key> {
    names.iter().map(|name| Key::parse(name).unwrap()).collect()
}

fn machine(names: &[&str], patience: Patience) -> SetMachine {
    SetMachine::new(keys(names), patience).unwrap()
}

/// Gives the machine an input while these leases are held.
fn step(machine: &mut SetMachine, held: &[bool], input: SetInput) -> Vec<SetEffect> {
    let mut effects = Vec::new();
    machine.step(&SetAmbient { now: NOW, held }, input, &mut effects);
    effects
}

fn acquire(member: usize, patience: Patience) -> SetEffect {
    SetEffect::Acquire { member, patience }
}

fn release(member: usize) -> SetEffect {
    SetEffect::Release { member }
}

/// A set of two that is held.
fn held(patience: Patience) -> SetMachine {
    let mut set = machine(&["a", "b"], patience);
    step(&mut set, &[false, false], SetInput::Start);
    step(&mut set, &[true, false], SetInput::Granted { member: 0 });
    assert_eq!(
        step(&mut set, &[true, true], SetInput::Granted { member: 1 }),
        [SetEffect::Tell(SetEvent::Granted)]
    );
    set
}

#[test]
fn the_leases_are_acquired_one_after_the_other_in_the_order_of_their_keys() {
    let mut set = machine(&["c", "a/z", "b", "a"], Patience::Forever);
    assert_eq!(set.keys(), keys(&["a", "a/z", "b", "c"]));
    assert_eq!(step(&mut set, &[false; 4], SetInput::Start), [acquire(0, Patience::Forever)]);
    for member in 0..3 {
        let held: Vec<bool> = (0..4).map(|other| other <= member).collect();
        let effects = step(&mut set, &held, SetInput::Granted { member });
        assert_eq!(effects, [acquire(member + 1, Patience::Forever)]);
        assert!(!set.believes(&held), "a part is nothing");
    }
    let effects = step(&mut set, &[true; 4], SetInput::Granted { member: 3 });
    assert_eq!(effects, [SetEffect::Tell(SetEvent::Granted)]);
    assert!(set.believes(&[true; 4]) && !set.believes(&[true, true, false, true]));
}

#[test]
fn no_key_one_key_the_same_key_twice_and_too_many() {
    let many: Vec<String> = (0..=SetMachine::MEMBERS_MAX).map(|number| format!("k{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (names, sentence) in [
        (&[][..], "a set of leases has at least one key: name one"),
        (&["b", "a", "b"], "b occurs twice in a set of leases: name each key once"),
        (&many[..], "a set has at most 64 leases, not 65"),
    ] {
        let error = SetMachine::new(keys(names), Patience::Once).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, sentence));
    }
    assert!(SetMachine::new(keys(&many[1..]), Patience::Once).is_ok());
    let mut one = machine(&["a"], Patience::Once);
    assert_eq!(step(&mut one, &[false], SetInput::Start), [acquire(0, Patience::Once)]);
    let effects = step(&mut one, &[true], SetInput::Granted { member: 0 });
    assert_eq!(effects, [SetEffect::Tell(SetEvent::Granted)]);
}

#[test]
fn a_denial_releases_what_was_granted_and_is_reported_after_that() {
    let mut set = machine(&["a", "b", "c"], Patience::Once);
    step(&mut set, &[false; 3], SetInput::Start);
    step(&mut set, &[true, false, false], SetInput::Granted { member: 0 });
    step(&mut set, &[true, true, false], SetInput::Granted { member: 1 });
    let effects = step(&mut set, &[true, true, false], SetInput::Denied { member: 2 });
    assert_eq!(effects, [release(1), release(0)], "the last first");
    assert_eq!(step(&mut set, &[true, false, false], SetInput::Left { member: 1 }), []);
    let effects = step(&mut set, &[false; 3], SetInput::Left { member: 0 });
    assert_eq!(effects, [SetEffect::Tell(SetEvent::Denied(SetDenied::Member(2)))]);
    assert!(set.is_ended());
}

#[test]
fn a_loss_while_waiting_for_the_next_releases_all_and_begins_again() {
    let patience = Patience::Until(NOW + Duration::from_secs(1));
    let mut set = machine(&["a", "b", "c"], patience);
    step(&mut set, &[false; 3], SetInput::Start);
    step(&mut set, &[true, false, false], SetInput::Granted { member: 0 });
    step(&mut set, &[true, true, false], SetInput::Granted { member: 1 });
    let effects = step(&mut set, &[false, true, false], SetInput::Lost { member: 0 });
    assert_eq!(effects, [release(2), release(1)], "the request for the third is cancelled");
    assert_eq!(step(&mut set, &[false; 3], SetInput::Left { member: 2 }), []);
    assert_eq!(step(&mut set, &[false; 3], SetInput::Left { member: 1 }), [acquire(0, patience)]);
    assert_eq!(step(&mut set, &[false; 3], SetInput::Left { member: 0 }), [], "of the lost one, late");
    let effects = step(&mut set, &[true, false, false], SetInput::Granted { member: 0 });
    assert_eq!(effects, [acquire(1, patience)]);
}

#[test]
fn a_loss_after_the_limit_or_without_patience_is_a_denial() {
    for patience in [Patience::Once, Patience::Until(NOW)] {
        let mut set = machine(&["a", "b"], patience);
        step(&mut set, &[false; 2], SetInput::Start);
        step(&mut set, &[true, false], SetInput::Granted { member: 0 });
        assert_eq!(step(&mut set, &[false; 2], SetInput::Lost { member: 0 }), [release(1)]);
        let effects = step(&mut set, &[false; 2], SetInput::Left { member: 1 });
        assert_eq!(effects, [SetEffect::Tell(SetEvent::Denied(SetDenied::MemberLost(0)))]);
    }
}

#[test]
fn a_lease_that_ran_out_unreported_before_the_last_grant_is_seen_by_the_clock() {
    let mut set = machine(&["a", "b"], Patience::Forever);
    step(&mut set, &[false; 2], SetInput::Start);
    step(&mut set, &[true, false], SetInput::Granted { member: 0 });
    let effects = step(&mut set, &[false, true], SetInput::Granted { member: 1 });
    assert_eq!(effects, [release(1)], "the set was never held");
    let effects = step(&mut set, &[false; 2], SetInput::Left { member: 1 });
    assert_eq!(effects, [acquire(0, Patience::Forever)]);
}

#[test]
fn the_belief_ends_with_the_first_loss_and_the_others_are_released() {
    let mut set = held(Patience::Forever);
    let effects = step(&mut set, &[true, false], SetInput::Lost { member: 1 });
    assert_eq!(effects, [SetEffect::Tell(SetEvent::Lost { member: 1 }), release(0)]);
    assert!(!set.believes(&[true, true]), "a lost set never revives");
    assert_eq!(step(&mut set, &[false; 2], SetInput::Lost { member: 0 }), [], "its release is under way");
    assert_eq!(step(&mut set, &[false; 2], SetInput::Left { member: 0 }), [SetEffect::Tell(SetEvent::Left)]);
}

#[test]
fn a_release_releases_all_and_a_request_can_be_cancelled_at_any_point() {
    let mut set = held(Patience::Once);
    assert_eq!(step(&mut set, &[true; 2], SetInput::Release), [release(1), release(0)]);
    assert!(!set.believes(&[true; 2]));
    step(&mut set, &[true, false], SetInput::Left { member: 1 });
    assert_eq!(step(&mut set, &[false; 2], SetInput::Left { member: 0 }), [SetEffect::Tell(SetEvent::Left)]);

    let cancelled = SetEffect::Tell(SetEvent::Denied(SetDenied::Cancelled));
    let mut set = machine(&["a", "b"], Patience::Forever);
    assert_eq!(step(&mut set, &[false; 2], SetInput::Release), [cancelled], "before the start");
    let mut set = machine(&["a", "b"], Patience::Forever);
    step(&mut set, &[false; 2], SetInput::Start);
    assert_eq!(step(&mut set, &[false; 2], SetInput::Release), [release(0)]);
    assert_eq!(step(&mut set, &[true, false], SetInput::Granted { member: 0 }), [], "too late");
    assert_eq!(step(&mut set, &[false; 2], SetInput::Left { member: 0 }), [cancelled]);
    let mut set = machine(&["a", "b"], Patience::Forever);
    step(&mut set, &[false; 2], SetInput::Start);
    step(&mut set, &[true, false], SetInput::Granted { member: 0 });
    step(&mut set, &[false; 2], SetInput::Lost { member: 0 });
    assert_eq!(step(&mut set, &[false; 2], SetInput::Release), [], "it was about to begin again");
    assert_eq!(step(&mut set, &[false; 2], SetInput::Left { member: 1 }), [cancelled]);
}

// ── many contenders ─────────────────────────────────────────────────────────────────────────────────────────────────

/// The world of the race: which contender has each key, and what each contender waits for.
struct Race {
    machines: Vec<SetMachine>,
    /// The contender that has the key.
    locks: BTreeMap<Key, usize>,
    /// The lease that each contender waits for.
    waits: Vec<Option<usize>>,
    /// Releases that were requested and have not ended.
    releases: Vec<(usize, usize)>,
    done: Vec<usize>,
    random: u64,
}

impl Race {
    fn new(sets: &[&[&str]], rules: &'static dyn SetRules, seed: u64) -> Self {
        let machine =
            |names: &&[&str]| SetMachine::with_rules(keys(names), Patience::Forever, rules).unwrap();
        let machines: Vec<_> = sets.iter().map(machine).collect();
        let waits = vec![None; sets.len()];
        let (locks, releases, done) = (BTreeMap::new(), Vec::new(), vec![0; sets.len()]);
        let mut race = Self { machines, locks, waits, releases, done, random: seed };
        (0..sets.len()).for_each(|contender| race.step(contender, SetInput::Start));
        race
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % below
    }

    fn key(&self, contender: usize, member: usize) -> Key {
        self.machines[contender].keys()[member].clone()
    }

    fn held(&self, contender: usize) -> Vec<bool> {
        let keys = self.machines[contender].keys();
        keys.iter().map(|key| self.locks.get(key) == Some(&contender)).collect()
    }

    fn step(&mut self, contender: usize, input: SetInput) {
        let (held, mut effects) = (self.held(contender), Vec::new());
        self.machines[contender].step(&SetAmbient { now: NOW, held: &held }, input, &mut effects);
        for effect in effects {
            match effect {
                SetEffect::Acquire { member, .. } => self.waits[contender] = Some(member),
                SetEffect::Release { member } => {
                    if self.waits[contender] == Some(member) {
                        self.waits[contender] = None;
                    }
                    self.releases.push((contender, member));
                }
                SetEffect::Tell(SetEvent::Granted) => {
                    assert!(self.held(contender).iter().all(|held| *held), "all of them");
                    self.done[contender] += 1;
                }
                SetEffect::Tell(SetEvent::Left | SetEvent::Lost { .. }) => {}
                SetEffect::Tell(SetEvent::Denied(denied)) => panic!("{denied:?}"),
            }
        }
    }

    /// One random event. False if nothing can happen any more.
    fn turn(&mut self) -> bool {
        let mut events = Vec::new();
        for contender in 0..self.machines.len() {
            if let Some(member) = self.waits[contender]
                && !self.locks.contains_key(&self.key(contender, member))
            {
                events.push((contender, SetInput::Granted { member }));
            }
            if self.machines[contender].is_held() {
                events.push((contender, SetInput::Release));
            }
        }
        events
            .extend(self.releases.iter().map(|&(contender, member)| (contender, SetInput::Left { member })));
        if events.is_empty() {
            return false;
        }
        let held: Vec<_> = self.locks.iter().map(|(key, contender)| (key.clone(), *contender)).collect();
        // Now and then a lease is lost, wherever its holder is.
        if !held.is_empty() && self.draw(16) == 0 {
            let (key, contender) = held[self.draw(held.len())].clone();
            let member = self.machines[contender].keys().iter().position(|other| *other == key).unwrap();
            self.locks.remove(&key);
            self.step(contender, SetInput::Lost { member });
            return true;
        }
        let (contender, input) = events[self.draw(events.len())];
        match input {
            SetInput::Granted { member } => {
                self.waits[contender] = None;
                self.locks.insert(self.key(contender, member), contender);
            }
            SetInput::Left { member } => {
                self.releases.retain(|release| *release != (contender, member));
                let key = self.key(contender, member);
                if self.locks.get(&key) == Some(&contender) {
                    self.locks.remove(&key);
                }
            }
            _ => {}
        }
        self.step(contender, input);
        true
    }

    /// Runs until nothing can happen. The sets that were held at least once, and the leases that remain.
    fn run(mut self) -> (usize, usize) {
        for _ in 0..10_000 {
            if !self.turn() {
                break;
            }
        }
        (self.done.iter().filter(|done| **done > 0).count(), self.locks.len())
    }
}

const OPPOSITE: &[&[&str]] =
    &[&["a", "b"], &["b", "a"], &["c", "a"], &["b", "c", "a"], &["d", "c", "b"], &["a", "d"], &["d"]];

#[test]
fn contenders_of_overlapping_sets_in_any_order_all_get_their_turn_and_leave_nothing() {
    for seed in 0..2_000 {
        let (done, left) = Race::new(OPPOSITE, &Standard, seed).run();
        assert_eq!((done, left), (OPPOSITE.len(), 0), "seed {seed}");
    }
}

/// Acquires in the order that the caller wrote.
#[derive(Debug)]
struct Unordered;

impl SetRules for Unordered {
    fn order(&self, _: &mut [Key]) {}
}

#[test]
fn without_the_common_order_contenders_wait_for_each_other_for_ever() {
    let stuck = |seed: &u64| Race::new(OPPOSITE, &Unordered, *seed).run().0 < OPPOSITE.len();
    let count = (0..200).filter(stuck).count();
    assert!(count > 20, "only {count} of 200 seeds end in a deadlock");
}
