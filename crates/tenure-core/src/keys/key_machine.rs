use std::sync::Arc;

use tenure_store::{Expect, Reason, Version};

use super::outstanding::Outstanding;
use super::{KeyAnswer, KeyDenied, KeyOperation, KeyParams, KeyRules, SeenEntry, writes};
use crate::machine::in_flight::{InFlight, SentWrite};
use crate::machine::rules::{Proof, earlier_by_chance};
use crate::machine::tick_reads::{NextTick, TickReads};
use crate::machine::{
    Ambient, Attempt, Content, Effect, Event, Fault, Floor, Input, Look, Outcome, Purpose, Remaining, Seen,
    Sightings, Standard, Write,
};
use crate::record::{Record, State};
use crate::{Instant, Token};

/// One operation on one plain key, from its start to its answer.
///
/// The machine performs no I/O. [`step`](Self::step) takes an [`Input`] and the [`Ambient`] world, and appends
/// [`Effect`]s: at most one read or write is pending at any time. It uses the inputs `Start`, `Read`, `Written`, `Wake` and
/// `Changed`.
#[derive(Debug)]
pub struct KeyMachine {
    rules: &'static dyn KeyRules,
    params: KeyParams,
    in_flight: Option<InFlight>,
    outstanding: Outstanding,
    /// True if a read of this operation has shown the latest sighting.
    looked: bool,
    /// Time of the next call.
    next: Option<Instant>,
    /// True if that call is the next read of an entry that the operation waits for.
    waits: bool,
    /// Number of failed calls in a row.
    failures: u32,
    last_fault: Option<Fault>,
    tick_reads: TickReads,
    ended: bool,
}

/// Everything that one step may use besides the fields of the machine.
struct Step<'a> {
    ambient: &'a Ambient,
    sightings: &'a mut Sightings,
    effects: &'a mut Vec<Effect>,
}

/// A record of a plain key that was read or written.
#[derive(Clone, Copy)]
struct FoundKey<'a> {
    seen: &'a Seen,
    record: &'a Arc<Record>,
    version: &'a Version,
}

/// Answer of the operation, if it has one already.
type Done = Option<KeyAnswer>;

impl KeyMachine {
    /// A machine for one operation. It does nothing before [`Input::Start`].
    pub fn new(params: KeyParams) -> Self {
        Self::with_rules(params, &Standard)
    }

    /// A machine under other rules, for the simulation.
    pub fn with_rules(params: KeyParams, rules: &'static dyn KeyRules) -> Self {
        Self {
            rules,
            params,
            in_flight: None,
            outstanding: Outstanding::default(),
            looked: false,
            next: None,
            waits: false,
            failures: 0,
            last_fault: None,
            tick_reads: TickReads::default(),
            ended: false,
        }
    }

    /// True if the operation has its answer. The machine requests nothing any more.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Handles an input and appends the resulting effects. Returns the answer of the operation once.
    ///
    /// `sightings` are what this process has seen of the key; all its operations on the key share them.
    pub fn step(
        &mut self,
        ambient: &Ambient,
        sightings: &mut Sightings,
        input: Input,
        effects: &mut Vec<Effect>,
    ) -> Option<KeyAnswer> {
        if self.ended {
            return None;
        }
        let step = &mut Step { ambient, sightings, effects };
        let answer = match input {
            Input::Start => self.proceed(step),
            Input::Read(answer) => self.read_answered(step, answer),
            Input::Written(outcome) => self.write_answered(step, outcome),
            Input::Wake => self.woken(step),
            Input::Changed => self.hinted(step),
            _ => None,
        };
        self.ended = answer.is_some();
        if let Some(at) = self.next.filter(|_| !self.ended && self.in_flight.is_none()) {
            step.effects.push(Effect::SleepUntil(at));
        }
        answer
    }

    /// Takes in that the driver sends the pending write only now, because the store accepts few writes of one key. False if
    /// it must not be sent: a renewal, whose entry may have run out for another participant. [`Input::Wake`] follows.
    pub fn send_later(&mut self, sightings: &mut Sightings, now: Instant) -> bool {
        let Some(InFlight::Write(write)) = &mut self.in_flight else { return true };
        write.attempt.sent = now;
        let attempt = write.attempt;
        self.outstanding.sent(&attempt);
        sightings.note_sent(&attempt);
        let in_time = |seen: &Seen| match &seen.content {
            Content::Record(record, _) => self.may_renew(sightings, seen, record, now),
            Content::Absent | Content::Foreign { .. } => false,
        };
        if attempt.purpose != Purpose::Renew || sightings.latest().is_some_and(in_time) {
            return true;
        }
        self.outstanding.never_sent(&attempt);
        self.in_flight = None;
        self.next = Some(now);
        false
    }

    // ── calls and their answers ───────────────────────────────────────────────────────────────────────────────────

    fn read(&mut self, step: &mut Step<'_>) -> Done {
        self.in_flight = Some(InFlight::Read { sent: step.ambient.now, highest: step.sightings.highest() });
        step.effects.push(Effect::Read);
        None
    }

    /// Sends a write. One that replaces an entry or its absence is tracked until it is settled.
    fn write(
        &mut self,
        step: &mut Step<'_>,
        purpose: Purpose,
        replaced: Option<FoundKey<'_>>,
        record: Record,
    ) -> Done {
        if self.is_late(step) {
            return self.deny(KeyDenied::Unavailable(self.last_fault));
        }
        let attempt = Attempt { nonce: record.nonce, sent: step.ambient.now, purpose };
        let record = Arc::new(record);
        let expect = match replaced {
            Some(found) => {
                self.outstanding.add(self.rules, attempt, (found.version, found.record), &record);
                Expect::Version(found.version.clone())
            }
            None => Expect::Absent,
        };
        step.sightings.note_sent(&attempt);
        let write = Write { purpose, expect: expect.clone(), record: Arc::clone(&record) };
        let highest = step.sightings.highest();
        self.in_flight = Some(InFlight::Write(SentWrite { attempt, record, expect, highest }));
        step.effects.push(Effect::Write(write));
        None
    }

    fn read_answered(&mut self, step: &mut Step<'_>, answer: Result<Look, Fault>) -> Done {
        let Some(InFlight::Read { sent, highest }) = self.in_flight.take() else {
            unreachable!("an answer to a read that was not sent");
        };
        let look = match answer {
            Ok(look) => look,
            Err(fault) => return self.failed(step, fault),
        };
        let clock = self.params.store_clock;
        step.sightings.note_read(self.rules, clock, (sent, highest), look, step.ambient);
        if let Some(seen @ Seen { went_back: Some(highest), .. }) = step.sightings.latest() {
            let event = Event::WentBack { seen: *highest, shown: seen.token() };
            step.effects.push(Effect::Tell(event));
        }
        self.looked = true;
        self.last_fault = None;
        self.proceed(step)
    }

    fn write_answered(&mut self, step: &mut Step<'_>, outcome: Outcome) -> Done {
        let Some(InFlight::Write(write)) = self.in_flight.take() else {
            unreachable!("an answer to a write that was not sent");
        };
        if let Outcome::Applied { version, time } = &outcome {
            step.sightings.note_write(self.rules, &write, version, *time, step.ambient);
        }
        self.outstanding.answered(self.rules, &write, &outcome);
        match (self.rules.proof(&outcome), &outcome) {
            (Proof::Done, _) => {
                self.failures = 0;
                self.looked = false;
                match write.attempt.purpose {
                    Purpose::Plant => self.proceed(step),
                    _ => Some(self.landed(step, write.attempt, &write.record)),
                }
            }
            (Proof::NoEffect, Outcome::Fault(fault))
            | (Proof::ReadBack, Outcome::Fault(fault @ Fault::Throttled(_))) => self.failed(step, *fault),
            // Only a wrong rule believes a conflict without a read.
            (Proof::Lost, _) => Some(KeyAnswer::Conflict(None)),
            (_, outcome) if self.failures > 0 => self.failed(step, outcome.fault().unwrap_or(Fault::Unknown)),
            // One lost answer, or one conflict, is read back at once. If it fails again without a change, the store
            // gets a pause.
            _ => {
                self.failures = 1;
                self.looked = false;
                self.read(step)
            }
        }
    }

    /// A call failed: retry later, unless that cannot help.
    fn failed(&mut self, step: &mut Step<'_>, fault: Fault) -> Done {
        self.looked = false;
        self.last_fault = Some(fault);
        if let Fault::Refused(reason) = fault
            && reason != Reason::Unreachable
        {
            return self.deny(KeyDenied::Refused(reason));
        }
        // The caller knows whether it is worth waiting for so long.
        if let Fault::Withheld(after) = fault
            && after > self.params.retry_max
        {
            return self.deny(KeyDenied::Withheld(after));
        }
        let growing = self.params.retry * 2u32.pow(self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        let pause = earlier_by_chance(growing.min(self.params.retry_max), step.ambient.jitter);
        let next = step.ambient.now + pause.max(fault.asked_pause());
        if next > self.params.give_up_at {
            return self.deny(KeyDenied::Unavailable(Some(fault)));
        }
        self.next = Some(next);
        None
    }

    fn woken(&mut self, step: &mut Step<'_>) -> Done {
        if self.in_flight.is_some() || self.next.is_none_or(|next| next > step.ambient.now) {
            return None;
        }
        // Either the version seen has run out by now, or it is time to read again.
        self.looked = false;
        self.proceed(step)
    }

    /// The entry that the operation waits for may have changed.
    fn hinted(&mut self, step: &mut Step<'_>) -> Done {
        if self.in_flight.is_some() || !self.waits {
            return None;
        }
        self.looked = false;
        self.proceed(step)
    }

    /// Ends the operation without success. A write that was answered with a conflict is in doubt until a read shows
    /// another participant's record: a balancer may have sent it twice.
    fn deny(&self, why: KeyDenied) -> Done {
        let in_doubt = self.outstanding.in_doubt() || self.outstanding.may_land();
        Some(KeyAnswer::Denied { why, in_doubt })
    }

    /// Ends the operation with an answer that says that nothing was changed. While a write may have been applied, no
    /// participant can say that.
    fn unchanged(&self, answer: KeyAnswer) -> Done {
        if self.outstanding.in_doubt() && self.outstanding.may_land() {
            return self.deny(KeyDenied::Unavailable(self.last_fault));
        }
        Some(answer)
    }

    // ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────────

    /// Takes the next step of the operation.
    fn proceed(&mut self, step: &mut Step<'_>) -> Done {
        self.next = None;
        self.waits = false;
        if !self.looked && self.is_late(step) {
            return self.deny(KeyDenied::Unavailable(self.last_fault));
        }
        let Some(seen) = step.sightings.latest().cloned() else { return self.read(step) };
        let fresh = self.rules.is_fresh(&seen, step.ambient.now, self.params.fresh_for);
        if !fresh || (!self.looked && !self.can_write_unread(step, &seen)) {
            return self.read(step);
        }
        match &seen.content {
            Content::Absent => self.absent(step, &seen),
            Content::Foreign { what, .. } => self.deny(KeyDenied::Foreign(Arc::clone(what))),
            Content::Record(record, version) => self.found(step, FoundKey { seen: &seen, record, version }),
        }
    }

    /// There is no record.
    fn absent(&mut self, step: &mut Step<'_>, seen: &Seen) -> Done {
        if self.outstanding.in_doubt() {
            return self.deny(KeyDenied::Overtaken(None));
        }
        match &self.params.operation {
            KeyOperation::Get => Some(KeyAnswer::Found(None)),
            KeyOperation::Set { revision: Token::ZERO, .. } => self.plant(step, seen),
            KeyOperation::Set { .. } => Some(KeyAnswer::Conflict(None)),
            KeyOperation::Renew | KeyOperation::Release => self.deny(KeyDenied::NoEntry),
        }
    }

    fn found(&mut self, step: &mut Step<'_>, found: FoundKey<'_>) -> Done {
        let FoundKey { seen, record, version } = found;
        let name = self.params.owner.holder.id();
        if let Some(attempt) = self.outstanding.behind(self.rules, record, name) {
            return Some(self.landed(step, attempt, self.outstanding.entry_of(&attempt, record)));
        }
        if self.outstanding.overtaken(self.rules, seen.sent, record, version)
            && (self.changes_revision() || self.would_release_next(record))
        {
            return self.deny(KeyDenied::Overtaken(Some(Arc::clone(record))));
        }
        if !self.outstanding.may_land() {
            self.failures = 0;
        }
        if !record.is_key() && !self.rules.overwrites_foreign() {
            return self.deny(KeyDenied::Lease(Arc::clone(record)));
        }
        if let Some(highest) = seen.went_back
            && !self.may_go_on_after_going_back(seen)
        {
            return self.deny(KeyDenied::WentBack { seen: highest });
        }
        let has_run_out = self.rules.has_run_out(seen.from, record.ttl, self.params.drift, step.ambient.now);
        let entry = match record.state {
            State::Held if has_run_out && self.needs_later_read(seen, record) => {
                self.looked = false;
                return self.proceed(step);
            }
            State::Held if !has_run_out => Some(self.entry(step, seen, record)),
            _ => None,
        };
        match (&self.params.operation, entry) {
            (KeyOperation::Get, entry) => Some(KeyAnswer::Found(entry)),
            (KeyOperation::Set { revision: Token::ZERO, .. }, Some(entry))
                if !self.rules.may_create_over(record) =>
            {
                self.wait_for(step, found, entry)
            }
            (KeyOperation::Set { revision: Token::ZERO, .. }, _) => self.set(step, found),
            (KeyOperation::Set { revision, .. }, Some(_))
                if self.rules.may_update(record.token, *revision) =>
            {
                self.set(step, found)
            }
            (KeyOperation::Set { .. }, Some(entry)) => self.unchanged(KeyAnswer::Conflict(Some(entry))),
            (KeyOperation::Set { revision, .. }, None) => {
                let same = record.state == State::Held && record.token == *revision;
                if same && self.rules.may_update_run_out() {
                    return self.set(step, found);
                }
                self.unchanged(KeyAnswer::Conflict(None))
            }
            (KeyOperation::Renew | KeyOperation::Release, None) => self.deny(KeyDenied::NoEntry),
            (KeyOperation::Renew, Some(entry)) => self.renew(step, found, entry),
            (KeyOperation::Release, Some(entry)) => self.release(step, found, entry),
        }
    }

    /// Waits until the present entry has run out or was released, if the operation waits at all.
    fn wait_for(&mut self, step: &Step<'_>, found: FoundKey<'_>, entry: SeenEntry) -> Done {
        let now = step.ambient.now;
        let Some(limit) = self.params.wait_until.filter(|limit| *limit > now) else {
            return self.unchanged(KeyAnswer::Conflict(Some(entry)));
        };
        let ttl = found.record.ttl;
        let look = now + self.rules.look_after(ttl, self.params.fresh_for, step.ambient.jitter);
        let out = entry.remaining.map_or(look, |remaining| now + remaining.at_most);
        self.next = Some(look.min(out).min(limit));
        self.waits = true;
        None
    }

    // ── writes ────────────────────────────────────────────────────────────────────────────────────────────────────

    fn plant(&mut self, step: &mut Step<'_>, seen: &Seen) -> Done {
        let floor = match self.rules.floor(seen, self.params.store_clock) {
            Floor::At(time) => Token::new(time.as_micros()).unwrap_or(Token::ZERO),
            Floor::None | Floor::ReadFirst => Token::ZERO,
        };
        if let Some(highest) = seen.went_back
            && !self.may_go_on_after_going_back(seen)
        {
            return self.deny(KeyDenied::WentBack { seen: highest });
        }
        let token = floor.max(step.sightings.highest());
        let planted = Record::new_key(token, step.ambient.nonce, step.ambient.wall);
        self.write(step, Purpose::Plant, None, planted)
    }

    /// Writes the new entry over what was found.
    fn set(&mut self, step: &mut Step<'_>, found: FoundKey<'_>) -> Done {
        let FoundKey { seen, record: old, .. } = found;
        let floor = match self.rules.floor(seen, self.params.store_clock) {
            Floor::None => None,
            Floor::At(_) if !self.rules.is_after_plant(seen, self.params.clock_tick) => {
                return self.await_tick(step, seen);
            }
            Floor::At(time) => Some(time),
            // The store declares a clock, but the answer to the read had no time.
            Floor::ReadFirst if self.looked => return self.deny(KeyDenied::Refused(Reason::Unsupported)),
            Floor::ReadFirst => return self.read(step),
        };
        let Some(revision) = self.rules.next_revision(old.token, step.sightings.highest(), floor) else {
            return self.deny(KeyDenied::RevisionsExhausted);
        };
        let KeyOperation::Set { value, ttl, .. } = &self.params.operation else {
            unreachable!("only a change of an entry has a revision");
        };
        let nonce = self.rules.nonce(step.ambient.nonce, old.nonce);
        let entry = writes::entry(old, nonce, revision, (value, *ttl), &self.params.owner, step.ambient);
        self.write(step, Purpose::Grant, Some(found), entry)
    }

    /// Waits for a later time of the store's clock than a planted record has.
    fn await_tick(&mut self, step: &mut Step<'_>, seen: &Seen) -> Done {
        let tick = self.params.drift.lengthen(self.params.clock_tick);
        match self.tick_reads.after(seen, tick, self.params.retry_max, step.ambient.now) {
            NextTick::Wait(due) if due > self.params.give_up_at => self.deny(KeyDenied::Unavailable(None)),
            NextTick::Wait(due) => {
                self.next = Some(due);
                None
            }
            NextTick::Stands => self.deny(KeyDenied::ClockStands),
            NextTick::Read { .. } => self.read(step),
        }
    }

    fn renew(&mut self, step: &mut Step<'_>, found: FoundKey<'_>, entry: SeenEntry) -> Done {
        let FoundKey { seen, record: old, .. } = found;
        if !self.may_renew(step.sightings, seen, old, step.ambient.now) {
            let is_owner = self.rules.is_owner(old, &self.params.owner);
            return self.deny(if is_owner { KeyDenied::NoEntry } else { KeyDenied::NotOwner(entry) });
        }
        let nonce = self.rules.nonce(step.ambient.nonce, old.nonce);
        let revision = self.rules.revision_of_renewal(old.token);
        let renewed = writes::renewed(old, nonce, revision, step.ambient.wall);
        self.write(step, Purpose::Renew, Some(found), renewed)
    }

    fn release(&mut self, step: &mut Step<'_>, found: FoundKey<'_>, entry: SeenEntry) -> Done {
        let old = found.record;
        if !self.rules.may_release(old, &self.params.owner) {
            return self.deny(KeyDenied::NotOwner(entry));
        }
        let nonce = self.rules.nonce(step.ambient.nonce, old.nonce);
        let revision = self.rules.token_left_behind(old.token);
        let released = writes::released(old, nonce, revision, step.ambient.wall);
        self.write(step, Purpose::Vacate, Some(found), released)
    }

    // ── small questions ───────────────────────────────────────────────────────────────────────────────────────────

    /// The answer to a write that has landed and left this record.
    fn landed(&self, step: &mut Step<'_>, attempt: Attempt, record: &Arc<Record>) -> KeyAnswer {
        step.sightings.note_applied(&attempt);
        let remaining = record.ttl.map(|ttl| {
            let now = step.ambient.now;
            let from = step.sightings.latest().map_or(now, |seen| seen.from);
            let out = self.rules.runs_out_at(from, ttl, ttl, self.params.drift);
            Remaining { at_most: out.since(now), judged: true }
        });
        let entry = SeenEntry { record: Arc::clone(record), remaining };
        match (attempt.purpose, &self.params.operation) {
            (Purpose::Vacate, _) => KeyAnswer::Released,
            (Purpose::Renew, _) => KeyAnswer::Renewed(entry),
            (_, KeyOperation::Set { revision: Token::ZERO, .. }) => KeyAnswer::Created(entry),
            _ => KeyAnswer::Updated(entry),
        }
    }

    /// The entry of a record that was read.
    fn entry(&self, step: &Step<'_>, seen: &Seen, record: &Arc<Record>) -> SeenEntry {
        let remaining = record.ttl.map(|ttl| {
            let out = self.rules.runs_out_at(seen.from, ttl, ttl, self.params.drift);
            let at_most = out.since(step.ambient.now);
            Remaining { at_most, judged: seen.from < seen.returned }
        });
        SeenEntry { record: Arc::clone(record), remaining }
    }

    /// True if an earlier sighting allows to write without a read: then one write is the complete operation. An answer
    /// that says that nothing was changed always follows a read of this operation.
    fn can_write_unread(&self, step: &Step<'_>, seen: &Seen) -> bool {
        let Content::Record(record, _) = &seen.content else { return false };
        if !record.is_key() || seen.went_back.is_some() || self.outstanding.may_land() {
            return false;
        }
        let is_held = record.state == State::Held;
        let has_run_out = self.rules.has_run_out(seen.from, record.ttl, self.params.drift, step.ambient.now);
        match &self.params.operation {
            KeyOperation::Get => false,
            KeyOperation::Set { revision, .. } => {
                let expected = match *revision {
                    Token::ZERO => !is_held || has_run_out,
                    revision => is_held && !has_run_out && self.rules.may_update(record.token, revision),
                };
                expected && self.rules.floor(seen, self.params.store_clock) != Floor::ReadFirst
            }
            KeyOperation::Renew => {
                is_held && !has_run_out && self.may_renew(step.sightings, seen, record, step.ambient.now)
            }
            KeyOperation::Release => {
                is_held && !has_run_out && self.rules.may_release(record, &self.params.owner)
            }
        }
    }

    fn may_renew(&self, sightings: &Sightings, seen: &Seen, record: &Record, now: Instant) -> bool {
        let KeyParams { owner, drift, .. } = &self.params;
        self.rules.may_renew(record, owner, sightings.written_from(seen), *drift, now)
    }

    /// True if no further call may begin.
    fn is_late(&self, step: &Step<'_>) -> bool {
        step.ambient.now > self.params.give_up_at
    }

    /// True if the answer is that there is no entry, and the entry ran out only after its read was sent. Another
    /// participant may have changed it in between.
    fn needs_later_read(&self, seen: &Seen, record: &Record) -> bool {
        let creates = matches!(self.params.operation, KeyOperation::Set { revision: Token::ZERO, .. });
        !creates && !self.rules.has_run_out(seen.from, record.ttl, self.params.drift, seen.sent)
    }

    /// True if the operation may have released one entry of this owner, and would now release the next one.
    fn would_release_next(&self, record: &Record) -> bool {
        self.params.operation == KeyOperation::Release
            && self.outstanding.is_of_another_term(record)
            && self.rules.may_release(record, &self.params.owner)
    }

    /// True if the operation gives the entry a new revision.
    fn changes_revision(&self) -> bool {
        matches!(self.params.operation, KeyOperation::Set { .. })
    }

    /// True if the key may be changed although its revision went back: only a change gets a revision above all earlier
    /// ones, and only if the store's time gives it.
    fn may_go_on_after_going_back(&self, seen: &Seen) -> bool {
        let floor = self.rules.floor(seen, self.params.store_clock);
        self.changes_revision() && self.rules.may_grant_after_going_back(floor)
    }
}
