//! Groups of slots: users that want any slot of a group, and operators that resize it.

use std::sync::Arc;

use tenure_core::keys::{KeyAnswer, KeyDenied, KeyOperation};
use tenure_core::machine::{Content, Denied, Input, ObservedRead, Observer, Patience, Sighting, Standing};
use tenure_core::record::Record;
use tenure_core::slots::{
    GroupSize, SizeAnswer, SlotEffect, SlotEvent, SlotInput, SlotMachine, SlotParams, SlotSight,
};
use tenure_core::{Drift, Instant, Token};

use super::PrimitivesWorld;
use super::actor::{Actor, ActorRole, Notice};
use super::caller::Engine;
use super::calls::LetterBody;
use super::happening::{Happening, Port};
use super::judges::{Turns, is_not_evicted, reads_are_few};
use super::key_users::secret_of;
use super::phases::Stretch;
use crate::Invariant;
use crate::tally::Met;
use crate::time::MILLI;

/// A user of a group of slots.
#[derive(Debug)]
pub(super) struct SlotUser {
    pub(super) group: usize,
    /// The size that it expects of the group.
    size: u16,
    attempt: Option<SlotAttempt>,
    turns: Turns,
}

/// One slot, from the request to the end.
#[derive(Debug)]
pub(super) struct SlotAttempt {
    machine: Box<SlotMachine>,
    /// True time at which it began.
    began: u64,
    /// The lease that is tried, waited for or held.
    lease: Option<(Port, u16)>,
    /// The pending call of the size, and the time at which it began.
    size_call: Option<(Port, Instant)>,
    reads: Vec<(Port, u16)>,
    pub(super) listing: Option<Port>,
    listens: bool,
    /// True once the slot is believed.
    believes: bool,
    /// True once the user has released it.
    released: bool,
}

/// A single read of a slot.
#[derive(Debug)]
pub(super) struct SlotLook {
    sent: Instant,
}

/// An operator that resizes a group.
#[derive(Debug)]
pub(super) struct Resizer {
    group: usize,
    call: Option<Port>,
}

impl SlotUser {
    /// Its process was killed.
    pub(super) fn dies(&mut self) {
        self.attempt = None;
        self.turns = Turns::default();
    }

    /// The true time since which it waits for a slot of the group, if it does.
    fn waits_since(&self) -> Option<u64> {
        self.attempt.as_ref().filter(|attempt| !attempt.believes).map(|attempt| attempt.began)
    }
}

impl Resizer {
    /// Its process was killed.
    pub(super) fn dies(&mut self) {
        self.call = None;
    }
}

impl PrimitivesWorld<'_> {
    pub(super) fn slot_users_appear(&mut self) {
        for group in 0..self.plan.groups.len() {
            let size = self.plan.groups[group];
            for process in 0..self.nodes.len() {
                for _ in 0..self.rng.between(1, 3) {
                    let user = SlotUser { group, size, attempt: None, turns: Turns::default() };
                    self.actors.push(Actor::new(process, ActorRole::Slot(user)));
                }
            }
            let process = self.rng.index(self.nodes.len());
            self.actors.push(Actor::new(process, ActorRole::Resizer(Resizer { group, call: None })));
        }
    }

    fn slot_user(&mut self, actor: usize) -> &mut SlotUser {
        match &mut self.actors[actor].role {
            ActorRole::Slot(user) => user,
            _ => unreachable!("the role of an actor never changes"),
        }
    }

    pub(super) fn slot_attempt(&mut self, actor: usize) -> Option<&mut SlotAttempt> {
        self.slot_user(actor).attempt.as_mut()
    }

    // ── wanting a slot ────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn slot_user_starts(&mut self, actor: usize) {
        if self.slot_user(actor).attempt.is_some() {
            return;
        }
        let process = self.actors[actor].process;
        let patience = self.patience(process);
        let timing = self.nodes[process].member.timing;
        let size = GroupSize::new(u32::from(self.slot_user(actor).size)).expect("a small size");
        let stamps = self.plan.listings.is_some();
        let params = SlotParams { size, timing, patience, hint_pause: timing.retry(), stamps };
        let (rules, began) = (self.seed.slots, self.now);
        let user = self.slot_user(actor);
        user.turns.begin();
        user.attempt = Some(SlotAttempt {
            machine: Box::new(SlotMachine::with_rules(params, rules)),
            began,
            lease: None,
            size_call: None,
            reads: Vec::new(),
            listing: None,
            listens: false,
            believes: false,
            released: false,
        });
        self.step_slot(actor, SlotInput::Start);
    }

    pub(super) fn step_slot(&mut self, actor: usize, input: SlotInput) {
        let process = self.actors[actor].process;
        let now = self.nodes[process].local(self.now);
        let jitter = self.rng.next() as u32;
        let mut effects = Vec::new();
        let Some(attempt) = self.slot_attempt(actor) else { return };
        attempt.machine.step(now, jitter, input, &mut effects);
        for effect in effects {
            self.note(process, format_args!("slot user {actor}: {effect:?}"));
            self.slot_effect(actor, effect);
        }
    }

    fn slot_effect(&mut self, actor: usize, effect: SlotEffect) {
        let group = self.slot_user(actor).group;
        match effect {
            SlotEffect::ReadSize => self.calls_size(actor, KeyOperation::Get),
            SlotEffect::CreateSize(size) => {
                let value: Arc<str> = size.to_string().into();
                self.calls_size(actor, KeyOperation::Set { revision: Token::ZERO, value, ttl: None });
            }
            SlotEffect::Try(index) => self.tries_slot(actor, index, Patience::Once),
            SlotEffect::Wait { index, until } => self.tries_slot(actor, index, Patience::Until(until)),
            SlotEffect::Read(index) => {
                let sent = self.nodes[self.actors[actor].process].local(self.now);
                let key = self.plan.slot_key(group, index);
                let port = self.add_caller(actor, key, Engine::Slot(SlotLook { sent }));
                if let Some(attempt) = self.slot_attempt(actor) {
                    attempt.reads.push((port, index));
                }
                self.send(port, LetterBody::Read);
            }
            SlotEffect::List => self.lists_group(actor, group),
            SlotEffect::Listen => {
                if let Some(attempt) = self.slot_attempt(actor) {
                    attempt.listens = true;
                }
            }
            SlotEffect::Release(index) => self.slot_is_released(actor, index),
            SlotEffect::SleepUntil(at) => self.actor_sleeps(actor, at.as_nanos()),
            SlotEffect::Tell(event) => self.slot_told(actor, event),
        }
    }

    fn calls_size(&mut self, actor: usize, operation: KeyOperation) {
        let group = self.slot_user(actor).group;
        let key = self.plan.size_key(group);
        let sent = self.nodes[self.actors[actor].process].local(self.now);
        let port = self.operates(actor, key, operation, secret_of(actor, 0), None);
        if let Some(attempt) = self.slot_attempt(actor) {
            attempt.size_call = Some((port, sent));
        }
    }

    fn tries_slot(&mut self, actor: usize, index: u16, patience: Patience) {
        let group = self.slot_user(actor).group;
        let key = self.plan.slot_key(group, index);
        let port = self.acquires(actor, key, patience);
        if let Some(attempt) = self.slot_attempt(actor) {
            attempt.lease = Some((port, index));
        }
    }

    fn slot_is_released(&mut self, actor: usize, index: u16) {
        let Some(attempt) = self.slot_attempt(actor) else { return };
        let evicted = attempt.believes && !attempt.released;
        let refused = !attempt.believes;
        attempt.believes = false;
        if let Some((port, _)) = attempt.lease.take() {
            self.judges_of_group(actor).ends(port.caller);
            self.verdicts.judge(self.now, Invariant::S4, is_not_evicted(index, evicted));
            if refused {
                self.tally.met(Met::ShrinkSeen);
            }
            self.step_lease(port, Input::Release);
        }
    }

    fn slot_told(&mut self, actor: usize, event: SlotEvent) {
        match event {
            SlotEvent::Believe { index } => return self.slot_believed(actor, index),
            SlotEvent::Full { .. } => self.tally.met(Met::GroupFull),
            SlotEvent::Refused { stored, .. } => {
                self.tally.met(Met::SizeRefused);
                // Its operator learns the size, but not always.
                if self.stretch != Stretch::Faults || self.rng.chance(700) {
                    self.slot_user(actor).size = stored.get();
                }
            }
            SlotEvent::Unavailable => {}
        }
        self.slot_ends(actor);
    }

    fn slot_ends(&mut self, actor: usize) {
        if let Some(attempt) = self.slot_user(actor).attempt.take() {
            // Reads whose answers are no longer needed.
            for port in attempt.reads.into_iter().map(|(port, _)| port).chain(attempt.listing) {
                self.callers[port.caller as usize] = None;
            }
        }
        let ttl = self.nodes[self.actors[actor].process].member.ttl();
        let rest = match self.stretch {
            // Long enough for a contender that waits to find the freed slot by itself.
            Stretch::Fair => self.rng.between(0, LONG_TTLS * ttl),
            _ => self.rest(ttl),
        };
        self.start_at(actor, self.now + rest);
    }

    /// An error that no retry changes ends the attempt. A slot that was granted is released.
    fn slot_fails(&mut self, actor: usize) {
        let Some(attempt) = self.slot_attempt(actor) else { return };
        if attempt.believes {
            return;
        }
        if let Some((port, _)) = attempt.lease.take() {
            self.step_lease(port, Input::Release);
        }
        self.slot_ends(actor);
    }

    // ── holding a slot ────────────────────────────────────────────────────────────────────────────────────────────

    fn judges_of_group(&mut self, actor: usize) -> &mut super::judges::GroupJudge {
        let group = self.slot_user(actor).group;
        &mut self.groups[group]
    }

    fn slot_believed(&mut self, actor: usize, index: u16) {
        self.tally.met(Met::SlotHeld);
        let (now, process) = (self.now, self.actors[actor].process);
        let Some(attempt) = self.slot_attempt(actor) else { return };
        attempt.believes = true;
        let Some((port, _)) = attempt.lease else { return };
        self.slot_user(actor).turns.begin();
        let Some(caller) = self.callers[port.caller as usize].as_deref() else { return };
        let key = caller.key;
        let Some(tenancy) = caller.tenancy_ref() else { return };
        let (term, deadline, tainted) = (tenancy.term, tenancy.deadline, tenancy.tainted);
        let granted = term.and_then(|term| self.judges[key].applied(term)).map_or(now, |write| write.at);
        let end = deadline.map_or(now, |deadline| self.nodes[process].clock.reaches(deadline));
        let verdict = self.judges_of_group(actor).believes(now, port.caller, index, granted, end, tainted);
        self.verdicts.judge(now, Invariant::S4, verdict);
        self.others_miss_a_slot(actor);
        let ttl = self.nodes[process].member.ttl();
        if self.stretch == Stretch::Fair && self.rng.chance(500) {
            let hold = self.rng.between(0, LONG_TTLS * ttl);
            self.agenda.push(now + hold, Happening::Release(port));
        } else {
            self.holds_for_a_while(port);
        }
        if self.rng.chance(300) {
            let at = now + self.rng.between(0, 2 * ttl);
            self.agenda.push(at, Happening::LookAtSize { process: process as u16, actor: actor as u16 });
        }
    }

    /// A holder reads the size of its group, as `holders` does.
    pub(super) fn holder_reads_size(&mut self, actor: usize) {
        let idle = |attempt: &&mut SlotAttempt| attempt.believes && attempt.size_call.is_none();
        if self.slot_attempt(actor).filter(idle).is_some() {
            self.calls_size(actor, KeyOperation::Get);
        }
    }

    /// The user has held its slot for a while.
    pub(super) fn slot_user_releases(&mut self, actor: usize, port: Port) {
        let Some(attempt) = self.slot_attempt(actor) else { return };
        if attempt.believes && attempt.lease.is_some_and(|(lease, _)| lease == port) {
            attempt.released = true;
            self.step_slot(actor, SlotInput::Release);
            self.slot_ends(actor);
        }
    }

    pub(super) fn slot_user_wakes(&mut self, actor: usize) {
        self.step_slot(actor, SlotInput::Wake);
    }

    pub(super) fn slot_user_hinted(&mut self, actor: usize, key: usize) {
        let group = self.slot_user(actor).group;
        let Some(index) = self.plan.slot_index(group, key) else { return };
        if self.slot_attempt(actor).is_some_and(|attempt| attempt.listens && !attempt.believes) {
            self.step_slot(actor, SlotInput::Hinted { index });
        }
    }

    /// L6: every other user of the group that waits has missed one more slot.
    fn others_miss_a_slot(&mut self, granted: usize) {
        if self.stretch != Stretch::Fair {
            return;
        }
        let group = self.slot_user(granted).group;
        let is_user = |actor: &Actor| matches!(&actor.role, ActorRole::Slot(it) if it.group == group);
        let users = self.actors.iter().filter(|actor| is_user(actor)).count() as u64;
        for number in 0..self.actors.len() {
            let ActorRole::Slot(user) = &mut self.actors[number].role else { continue };
            if number != granted && user.group == group && user.waits_since().is_some() {
                let verdict = user.turns.miss(users);
                self.verdicts.judge(self.now, Invariant::L6, verdict);
            }
        }
    }

    // ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn slot_user_notified(&mut self, actor: usize, port: Port, notice: Notice) {
        let process = self.actors[actor].process;
        let now = self.nodes[process].local(self.now);
        let Some(attempt) = self.slot_attempt(actor) else { return };
        if let Notice::Answered(answer) = notice {
            let Some((_, sent)) = attempt.size_call.take_if(|(call, _)| *call == port) else { return };
            if is_final(&answer) {
                return self.slot_fails(actor);
            }
            return self.step_slot(actor, SlotInput::Size { sent, answer: size_of(&answer) });
        }
        let Some((_, index)) = attempt.lease.filter(|(lease, _)| *lease == port) else { return };
        match notice {
            Notice::Granted(_) => self.step_slot(actor, SlotInput::Granted { index }),
            Notice::Denied(denied) => {
                attempt.lease = None;
                let input = not_granted(index, &denied, now);
                self.step_slot(actor, input);
            }
            Notice::Lost(_) => {
                attempt.lease = None;
                let believed = std::mem::replace(&mut attempt.believes, false);
                self.judges_of_group(actor).ends(port.caller);
                if believed {
                    self.tally.met(Met::SlotLost);
                    self.slot_ends(actor);
                } else {
                    self.step_slot(actor, SlotInput::Lost);
                }
            }
            Notice::Left | Notice::Answered(_) | Notice::SawLeader(..) => {}
        }
    }

    /// The answer to a read of a slot.
    pub(super) fn slot_looked(&mut self, port: Port, input: Input) {
        let (now, clock) = (self.now, self.plan.store.clock);
        let Some(caller) = self.callers[port.caller as usize].take() else { return };
        let (actor, key) = (caller.actor, caller.key);
        let Engine::Slot(look) = caller.engine else { return };
        let Some(attempt) = self.slot_attempt(actor) else { return };
        let Some(place) = attempt.reads.iter().position(|(read, _)| *read == port) else { return };
        let (_, index) = attempt.reads.swap_remove(place);
        let node = &mut self.nodes[port.process as usize];
        let (returned, wall) = (node.local(now), node.wall_time(now));
        let Input::Read(Ok(answer)) = input else {
            return self.step_slot(actor, SlotInput::Failed { index });
        };
        let content = answer.content.clone();
        let read = ObservedRead { look: answer, clock, sent: look.sent, returned, wall };
        let standing = node.observers[key].judge(&read, Sighting::default());
        let input = match (standing, content) {
            (None, _) => SlotInput::Failed { index },
            (Some(standing), content) => {
                SlotInput::Seen { index, sight: sight(&standing, content, returned) }
            }
        };
        self.step_slot(actor, input);
    }

    // ── resizing ──────────────────────────────────────────────────────────────────────────────────────────────────

    fn resizer(&mut self, actor: usize) -> &mut Resizer {
        match &mut self.actors[actor].role {
            ActorRole::Resizer(resizer) => resizer,
            _ => unreachable!("the role of an actor never changes"),
        }
    }

    /// The operator reads the size, and then replaces it.
    pub(super) fn resizer_starts(&mut self, actor: usize) {
        if self.stretch != Stretch::Faults || self.resizer(actor).call.is_some() {
            return;
        }
        self.resizer_calls(actor, KeyOperation::Get);
    }

    fn resizer_calls(&mut self, actor: usize, operation: KeyOperation) {
        let group = self.resizer(actor).group;
        let key = self.plan.size_key(group);
        let port = self.operates(actor, key, operation, secret_of(actor, 0), None);
        self.resizer(actor).call = Some(port);
    }

    pub(super) fn resizer_notified(&mut self, actor: usize, port: Port, notice: Notice) {
        let Notice::Answered(answer) = notice else { return };
        if self.resizer(actor).call.take_if(|call| *call == port).is_none() {
            return;
        }
        match &*answer {
            KeyAnswer::Found(Some(entry)) if self.stretch == Stretch::Faults => {
                let revision = entry.record.token;
                let value: Arc<str> =
                    self.rng.between(1, u64::from(super::plan::LARGEST_GROUP)).to_string().into();
                return self.resizer_calls(actor, KeyOperation::Set { revision, value, ttl: None });
            }
            KeyAnswer::Updated(_) => self.tally.met(Met::Resized),
            _ => {}
        }
        let span = self.rng.between(MILLI, 2 * self.plan.resize_every);
        self.start_at(actor, self.now + span);
    }

    // ── the freed slot ────────────────────────────────────────────────────────────────────────────────────────────

    /// A slot was vacated under fair contention: a contender that waits must have it, or another one, in time.
    pub(super) fn slot_freed(&mut self, key: usize, record: &Record) {
        let Some((group, index)) = self.plan.slot_of(key).filter(|_| self.stretch == Stretch::Fair) else {
            return;
        };
        let size = self.groups[group].size();
        if size.is_none_or(|size| index >= size) || self.is_void(group) {
            return;
        }
        let waits =
            |user: &SlotUser| user.group == group && Some(user.size) == size && user.waits_since().is_some();
        let waiting =
            self.actors.iter().position(|actor| matches!(&actor.role, ActorRole::Slot(it) if waits(it)));
        let Some(actor) = waiting else { return };
        self.tally.met(Met::SlotFreed);
        let within = self.plan.freed_slot_within(size.unwrap_or(1));
        let freed = self.freed.insert((key, record.nonce, actor, self.now));
        self.agenda.push(self.now + within, Happening::FreedSlotBy { freed });
    }

    /// L3: the time limit of a freed slot is reached.
    pub(super) fn freed_slot_by(&mut self, freed: u32) {
        let (key, nonce, actor, since) = self.freed.take(freed);
        let is_free = self.store[key].record().is_some_and(|record| record.nonce == nonce);
        let still_waits = self.slot_user(actor).waits_since().is_some_and(|began| began <= since);
        if is_free && still_waits && self.stretch == Stretch::Fair {
            let sentence = format!(
                "a slot is free since{}, and a contender that waited has none",
                crate::trace::Moment(since)
            );
            self.verdicts.judge(self.now, Invariant::L3, Err(sentence));
        }
    }

    /// L5: the calls of every contender that waited in a full group since they are counted. Hints cause more reads.
    pub(super) fn judge_calls_of_waiting(&mut self) {
        if self.plan.store.hints > 0 {
            return;
        }
        let (since, span, ttl) =
            (self.counted_since, self.now - self.counted_since, self.plan.shortest_ttl());
        for actor in &self.actors {
            let ActorRole::Slot(user) = &actor.role else { continue };
            let Some(size) = self.groups[user.group].size() else { continue };
            let holders = self.groups[user.group].believers_granted_before(since, size);
            if holders == usize::from(size) && user.waits_since().is_some_and(|began| began <= since) {
                self.tally.met(Met::WaitedInFullGroup);
                self.verdicts.judge(self.now, Invariant::L5, reads_are_few(actor.calls, size, span, ttl));
            }
        }
    }

    /// True if a record of the group was deleted on a store without a clock: nothing is granted there any more.
    fn is_void(&self, group: usize) -> bool {
        let mut keys = (0..self.plan.keys()).filter(|key| self.plan.group_of(*key) == Some(group));
        keys.any(|key| self.judges[key].tokens.are_void())
    }

    /// L1: after healing, a group has no free slot while a contender waits.
    pub(super) fn judge_groups_filled(&mut self, healed: u64) {
        for group in 0..self.groups.len() {
            let Some(size) = self.groups[group].size() else { continue };
            let waits = self.actors.iter().any(|actor| {
                let ActorRole::Slot(user) = &actor.role else { return false };
                let since = user.waits_since().is_some_and(|since| since <= healed);
                user.group == group && user.size == size && since
            });
            let held = self.groups[group].believers_below(self.now, size);
            if waits && !self.is_void(group) && held < usize::from(size) {
                let sentence =
                    format!("healed, but only {held} of {size} slots are held while a contender waits");
                self.verdicts.judge(self.now, Invariant::L1, Err(sentence));
            }
        }
    }
}

/// True if the answer is an error that no retry changes.
fn is_final(answer: &KeyAnswer) -> bool {
    let KeyAnswer::Denied { why, .. } = answer else { return false };
    !matches!(why, KeyDenied::Unavailable(_) | KeyDenied::Overtaken(_))
}

/// The size of a group, by the answer of an operation on its key.
fn size_of(answer: &KeyAnswer) -> SizeAnswer {
    let entry = match answer {
        KeyAnswer::Found(None) => return SizeAnswer::Absent,
        KeyAnswer::Found(Some(entry)) | KeyAnswer::Conflict(Some(entry)) | KeyAnswer::Created(entry) => entry,
        _ => return SizeAnswer::Unknown,
    };
    GroupSize::from_stored(&entry.record.value).map_or(SizeAnswer::Unknown, SizeAnswer::Is)
}

fn not_granted(index: u16, denied: &Denied, now: Instant) -> SlotInput {
    let sight = match denied {
        Denied::Held(held) => {
            SlotSight::Held { record: Arc::clone(&held.record), due: due(&held.record, now) }
        }
        Denied::Outlived { .. } | Denied::Unstoppable(_) => return SlotInput::Denied { index },
        Denied::Foreign(_) | Denied::Closed(_) | Denied::WentBack { .. } => SlotSight::Unusable,
        _ => return SlotInput::Failed { index },
    };
    SlotInput::Seen { index, sight }
}

fn sight(standing: &Standing, content: Content, now: Instant) -> SlotSight {
    match content {
        _ if standing.is_free() => SlotSight::Free,
        Content::Record(record, _) if !matches!(standing, Standing::Closed) => {
            let remaining = standing.remaining().map(|remaining| now + remaining.at_most);
            SlotSight::Held { due: remaining.unwrap_or_else(|| due(&record, now)), record }
        }
        _ => SlotSight::Unusable,
    }
}

/// Latest instant at which a version that was just seen has run out.
fn due(record: &Record, now: Instant) -> Instant {
    now + Drift::DEFAULT.lengthen(record.ttl.map_or(std::time::Duration::ZERO, |ttl| ttl.as_duration()))
}

/// Longest time for which a slot is held, or its user rests, under fair contention: longer than a freed slot may stay
/// unseen.
const LONG_TTLS: u64 = 6;

/// The memory of a process of what it read of each key.
pub(super) fn observers(keys: usize) -> Vec<Observer> {
    (0..keys).map(|_| Observer::new()).collect()
}
