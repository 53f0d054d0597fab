//! Several leases at once: users that want all leases of a set, or none.

use tenure_core::machine::{Input, Patience};
use tenure_core::set::{SetAmbient, SetEffect, SetEvent, SetInput, SetMachine};
use tenure_store::Key;

use super::PrimitivesWorld;
use super::actor::{Actor, ActorRole, Notice};
use super::happening::{Happening, Port};
use super::judges::{Turns, believes_only_whole, ends_with_first_loss, leaves_nothing_held};
use super::phases::Stretch;
use crate::Invariant;
use crate::tally::Met;
use crate::time::MILLI;

/// A user of a set.
#[derive(Debug)]
pub(super) struct SetUser {
    /// The keys of the set, in the order in which the user wrote them.
    keys: Vec<usize>,
    attempt: Option<SetAttempt>,
    turns: Turns,
}

/// One set, from the request to the end.
#[derive(Debug)]
struct SetAttempt {
    machine: SetMachine,
    /// The members, in the order of the machine.
    members: Vec<SetMember>,
    /// True once the set was granted.
    granted: bool,
}

/// One lease of a set.
#[derive(Debug)]
struct SetMember {
    key: usize,
    lease: Option<Port>,
    denied: bool,
}

impl SetUser {
    /// Its process was killed.
    pub(super) fn dies(&mut self) {
        self.attempt = None;
        self.turns = Turns::default();
    }

    /// True if it wants its set and does not have it.
    fn waits(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| !attempt.granted)
    }
}

impl PrimitivesWorld<'_> {
    pub(super) fn set_users_appear(&mut self) {
        let names = self.plan.name_keys();
        if names.is_empty() {
            return;
        }
        for process in 0..self.nodes.len() {
            for _ in 0..self.rng.between(1, 2) {
                let mut keys: Vec<usize> = names.clone().collect();
                let wanted = self.rng.between(2, 3.min(keys.len() as u64)) as usize;
                while keys.len() > wanted {
                    keys.remove(self.rng.index(keys.len()));
                }
                if self.rng.chance(500) {
                    keys.reverse();
                }
                let user = SetUser { keys, attempt: None, turns: Turns::default() };
                self.actors.push(Actor::new(process, ActorRole::Set(user)));
            }
        }
    }

    fn set_user(&mut self, actor: usize) -> &mut SetUser {
        match &mut self.actors[actor].role {
            ActorRole::Set(user) => user,
            _ => unreachable!("the role of an actor never changes"),
        }
    }

    pub(super) fn set_starts(&mut self, actor: usize) {
        if self.set_user(actor).attempt.is_some() {
            return;
        }
        let patience = self.patience(self.actors[actor].process);
        let rules = self.seed.sets;
        let keys = self.set_user(actor).keys.iter().map(|key| name_of(*key)).collect();
        let machine = SetMachine::with_rules(keys, patience, rules).expect("a set has a few different keys");
        let member = |key: &Key| SetMember { key: number_of(key), lease: None, denied: false };
        let members = machine.keys().iter().map(member).collect();
        let user = self.set_user(actor);
        user.attempt = Some(SetAttempt { machine, members, granted: false });
        user.turns.begin();
        self.step_set(actor, SetInput::Start);
    }

    /// Patience of an actor: without limit, or in the time of faults sometimes a short one.
    pub(super) fn patience(&mut self, process: usize) -> Patience {
        if self.stretch != Stretch::Faults || self.rng.chance(600) {
            return Patience::Forever;
        }
        if self.rng.chance(300) {
            return Patience::Once;
        }
        let node = &self.nodes[process];
        let span = self.rng.between(0, 4 * node.member.ttl());
        Patience::Until(node.local(self.now) + std::time::Duration::from_nanos(span))
    }

    fn step_set(&mut self, actor: usize, input: SetInput) {
        let process = self.actors[actor].process;
        let held = self.held_members(actor);
        let ambient = SetAmbient { now: self.nodes[process].local(self.now), held: &held };
        let mut effects = Vec::new();
        let Some(attempt) = &mut self.set_user(actor).attempt else { return };
        attempt.machine.step(&ambient, input, &mut effects);
        self.note(process, format_args!("set {actor}: {input:?}: {effects:?}"));
        for effect in effects {
            match effect {
                SetEffect::Acquire { member, patience } => self.set_acquires(actor, member, patience),
                SetEffect::Release { member } => self.set_releases(actor, member),
                SetEffect::Tell(event) => self.set_told(actor, event),
            }
        }
        self.judge_set(actor);
    }

    /// For each member: true if it is held at this instant, by the clock.
    fn held_members(&mut self, actor: usize) -> Vec<bool> {
        let now = self.nodes[self.actors[actor].process].local(self.now).as_nanos();
        let Some(attempt) = &self.set_user(actor).attempt else { return Vec::new() };
        let leases: Vec<Option<Port>> = attempt.members.iter().map(|member| member.lease).collect();
        let held = |port: Port| {
            let caller = self.callers[port.caller as usize].as_deref()?;
            caller.tenancy_ref()?.deadline
        };
        leases.into_iter().map(|lease| lease.and_then(held).is_some_and(|deadline| now < deadline)).collect()
    }

    fn set_acquires(&mut self, actor: usize, number: usize, patience: Patience) {
        let Some(attempt) = &mut self.set_user(actor).attempt else { return };
        let key = attempt.members[number].key;
        let port = self.acquires(actor, key, patience);
        if let Some(attempt) = &mut self.set_user(actor).attempt {
            attempt.members[number] = SetMember { key, lease: Some(port), denied: false };
        }
    }

    fn set_releases(&mut self, actor: usize, number: usize) {
        let Some(attempt) = &self.set_user(actor).attempt else { return };
        if let Some(port) = attempt.members[number].lease {
            self.step_lease(port, Input::Release);
        }
    }

    fn set_told(&mut self, actor: usize, event: SetEvent) {
        match event {
            SetEvent::Granted => {
                self.tally.met(Met::SetHeld);
                let Some(attempt) = &mut self.set_user(actor).attempt else { return };
                attempt.granted = true;
                self.set_user(actor).turns.begin();
                self.others_miss_a_set(actor);
                self.set_holds_for_a_while(actor);
            }
            SetEvent::Denied(_) => {
                self.tally.met(Met::SetDenied);
                let held = self.held_members(actor).iter().filter(|held| **held).count();
                self.verdicts.judge(self.now, Invariant::S11, leaves_nothing_held(held));
                self.set_ends(actor);
            }
            SetEvent::Lost { .. } => self.tally.met(Met::SetLost),
            SetEvent::Left => self.set_ends(actor),
        }
    }

    fn set_holds_for_a_while(&mut self, actor: usize) {
        let process = self.actors[actor].process;
        let ttl = self.nodes[process].member.ttl();
        let hold = match self.stretch {
            Stretch::Faults => self.rng.skewed(0, self.plan.hold_most * ttl / 100),
            Stretch::Healed | Stretch::Fair | Stretch::Quiet => self.rng.between(0, ttl / 2),
        };
        let (process, number) = (process as u16, actor as u16);
        self.agenda.push(self.now + hold, Happening::ReleaseSet { process, actor: number });
        // The work under the set checks it from time to time.
        self.agenda.push(self.now + self.rng.between(0, ttl), Happening::CheckSet { process, actor: number });
    }

    pub(super) fn set_user_releases(&mut self, actor: usize) {
        if matches!(self.stretch, Stretch::Healed | Stretch::Quiet) {
            return;
        }
        if self.set_user(actor).attempt.as_ref().is_some_and(|attempt| attempt.granted) {
            self.step_set(actor, SetInput::Release);
        }
    }

    pub(super) fn set_user_checks(&mut self, actor: usize) {
        if self.set_user(actor).attempt.as_ref().is_none_or(|attempt| !attempt.granted) {
            return;
        }
        self.judge_set(actor);
        let process = self.actors[actor].process;
        let next = self.rng.between(MILLI, self.nodes[process].member.ttl());
        let event = Happening::CheckSet { process: process as u16, actor: actor as u16 };
        self.agenda.push(self.now + next, event);
    }

    /// Judges the beliefs of all sets of a process.
    pub(super) fn judge_sets_of(&mut self, process: usize) {
        for actor in 0..self.actors.len() {
            let it = &self.actors[actor];
            if it.process == process && matches!(it.role, ActorRole::Set(_)) {
                self.judge_set(actor);
            }
        }
    }

    fn judge_set(&mut self, actor: usize) {
        let held = self.held_members(actor);
        let Some(attempt) = &self.set_user(actor).attempt else { return };
        let verdict = believes_only_whole(attempt.machine.believes(&held), &held);
        self.verdicts.judge(self.now, Invariant::A1, verdict);
    }

    fn set_ends(&mut self, actor: usize) {
        self.set_user(actor).attempt = None;
        let ttl = self.nodes[self.actors[actor].process].member.ttl();
        let rest = self.rest(ttl);
        self.start_at(actor, self.now + rest);
    }

    /// L6: every other user that waits has missed one more set.
    fn others_miss_a_set(&mut self, granted: usize) {
        if self.stretch != Stretch::Fair {
            return;
        }
        let users = self.actors.iter().filter(|actor| matches!(actor.role, ActorRole::Set(_))).count() as u64;
        for number in 0..self.actors.len() {
            let ActorRole::Set(user) = &mut self.actors[number].role else { continue };
            if number != granted && user.waits() {
                let verdict = user.turns.miss(users);
                self.verdicts.judge(self.now, Invariant::L6, verdict);
            }
        }
    }

    pub(super) fn set_notified(&mut self, actor: usize, port: Port, notice: Notice) {
        let Some(attempt) = &mut self.set_user(actor).attempt else { return };
        let Some(member) = attempt.members.iter().position(|member| member.lease == Some(port)) else {
            return;
        };
        match notice {
            Notice::Granted(_) => self.step_set(actor, SetInput::Granted { member }),
            Notice::Lost(_) => {
                self.step_set(actor, SetInput::Lost { member });
                let attempt = self.set_user(actor).attempt.as_ref();
                let goes_on = attempt.is_some_and(|attempt| attempt.machine.is_held());
                self.verdicts.judge(self.now, Invariant::S6, ends_with_first_loss(goes_on));
            }
            Notice::Denied(_) => attempt.members[member].denied = true,
            Notice::Left => {
                attempt.members[member].lease = None;
                let denied = std::mem::take(&mut attempt.members[member].denied);
                let input = if denied { SetInput::Denied { member } } else { SetInput::Left { member } };
                self.step_set(actor, input);
            }
            Notice::SawLeader(..) | Notice::Answered(_) => {}
        }
    }

    /// L1: after healing, one of the users that want a set holds it: no two wait for each other.
    pub(super) fn judge_sets_held_again(&mut self) {
        let users = || {
            self.actors.iter().filter_map(|actor| match &actor.role {
                ActorRole::Set(user) => Some(user),
                _ => None,
            })
        };
        let names = self.plan.name_keys();
        let void = names.clone().any(|key| self.judges[key].tokens.are_void());
        let held = users().any(|user| user.attempt.as_ref().is_some_and(|it| it.machine.is_held()));
        if names.is_empty() || held || void {
            return;
        }
        let sentence = format!("healed, but none of {} users holds its set in time", users().count());
        self.verdicts.judge(self.now, Invariant::L1, Err(sentence));
    }
}

/// The name of a key of a set. The order of the names is that of the numbers.
fn name_of(key: usize) -> Key {
    format!("name-{key:03}").parse().expect("a short plain name")
}

fn number_of(key: &Key) -> usize {
    key.as_str().trim_start_matches("name-").parse().expect("a name of a set")
}
