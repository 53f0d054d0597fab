//! Wanting a lease: plant, observe, grant.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Expect, Reason, Version};

use super::holding::Holding;
use super::leaving::Leaving;
use super::outlived::After;
use super::rules::{Floor, Verdict, earlier_by_chance, part_by_chance};
use super::{
    Attempt, Content, Denied, Effect, Event, Fault, Flown, Handle, Left, Lost, Machine, Outcome, Patience,
    Purpose, Seen, Sighting, Stage, Step, Way, writes,
};
use crate::record::{End, Nonce, Past, Record, State};
use crate::{Instant, Token};

/// Where a contender is.
#[derive(Debug, Default)]
pub(super) struct Seeking {
    /// Whether the latest sighting was made, or waited out, by this contender itself.
    looked: bool,
    /// When to look or try again.
    pub(super) next: Option<Instant>,
    /// How many calls in a row failed.
    failures: u32,
    /// Whether the latest of them was a plant.
    planted_in_vain: bool,
    /// How the latest call failed.
    trouble: Option<Fault>,
    /// Whether a hint came while a look was under way, which may have missed what it hints at.
    pub(super) overtaken: bool,
    /// The nonce of the record that is waited for.
    waits_for: Option<Nonce>,
    /// Whether the latest look was made because of a hint.
    hinted: bool,
    /// How many hints in a row hinted at nothing.
    in_vain: u32,
    /// The term that is waited for.
    waits_for_term: Option<Nonce>,
    /// How often others were faster of late.
    crowd: u32,
    /// The nonce whose witness was looked at.
    witness_asked: Option<Nonce>,
    /// The nonce whose witness proved that nobody acts under it.
    dead: Option<Nonce>,
    /// The term that this contender wants to end: the one it found when it came. Not those that come after.
    revokes: Option<Nonce>,
    /// Whether this contender has revoked it.
    revoked: bool,
}

impl Seeking {
    fn others_were_faster(&mut self) {
        self.crowd = (self.crowd + 1).min(CROWD_MAX);
    }
}

/// How a held version came to be free.
#[derive(Clone, Copy, Debug)]
enum RunOut {
    Not,
    Ttl,
    Dead,
}

impl Machine {
    /// Does the next thing towards the lease, given what was seen.
    pub(super) fn seek(&mut self, step: &mut Step<'_>) {
        self.seeking().next = None;
        let Some(seen) = step.sightings.latest().cloned() else { return self.read(step) };
        // What was seen before is good for one try: while a write of ours may have landed, only a read tells.
        let must_read = seen.went_back.is_some() || self.attempts.may_land() || !self.could_take(step, &seen);
        let fresh = self.rules.is_fresh(&seen, step.ambient.now, self.own_ttl());
        if !fresh || (!self.seeking().looked && must_read) {
            return self.read(step);
        }
        let floor = self.rules.floor(&seen, self.ask.store_clock);
        if let Some(highest) = seen.went_back
            && !self.rules.may_grant_after_going_back(floor)
        {
            return self.deny(step, Denied::WentBack { seen: highest });
        }
        match &seen.content {
            Content::Absent => self.plant(step, &seen, Expect::Absent),
            Content::Foreign { version, .. } if self.rules.overwrites_foreign() => {
                self.plant(step, &seen, Expect::Version(version.clone()));
            }
            Content::Foreign { what, .. } => self.deny(step, Denied::Foreign(Arc::clone(what))),
            Content::Record(record, version) => self.seek_record(step, &seen, record, version),
        }
    }

    fn plant(&mut self, step: &mut Step<'_>, seen: &Seen, expect: Expect) {
        if matches!(self.ask.way, Way::Resume(_)) {
            return self.deny(step, Denied::StaleHandle(Lost::Deleted));
        }
        let floor = match self.rules.floor(seen, self.ask.store_clock) {
            Floor::At(time) => Token::new(time.as_micros()).unwrap_or(Token::ZERO),
            Floor::None | Floor::ReadFirst => Token::ZERO,
        };
        let token = floor.max(step.sightings.highest());
        let planted = writes::planted(step.ambient.nonce, token, step.ambient);
        if self.rules.plants_first() {
            return self.write(step, Purpose::Plant, expect, planted);
        }
        let granted = writes::granted(&planted, planted.nonce, token, End::Released, &self.ask, step.ambient);
        self.write(step, Purpose::Grant, expect, granted);
    }

    fn seek_record(&mut self, step: &mut Step<'_>, seen: &Seen, record: &Arc<Record>, version: &Version) {
        if record.is_held() && self.rules.is_ours(record, self.mine()) {
            let attempt = self.attempt_behind(step, record);
            return self.adopt(step, attempt, record, version);
        }
        // A read that was sent after our writes shows another version: the one they expect is gone for good.
        let later = self.attempts.latest_sent().is_none_or(|sent| sent <= seen.sent);
        if later && self.attempts.expects().is_some_and(|expected| expected != version) {
            self.attempts.forget_outstanding();
            self.seeking().failures = 0;
        }
        // Somebody else planted it: the store did not fail.
        if std::mem::take(&mut self.seeking().planted_in_vain) {
            self.seeking().failures = 0;
        }
        if let Way::Resume(handle) = self.ask.way.clone() {
            let good = self.rules.may_resume(record, &handle)
                && record.ttl == Some(self.own_ttl())
                && self.knows_the_secret(record);
            if !good {
                return self.deny(step, Denied::StaleHandle(why_not_ours(record, &handle)));
            }
            if !self.rules.may_go_on(step.ambient.now, handle.deadline) {
                return self.deny(step, Denied::StaleHandle(Lost::Expired));
            }
            return self.resume(step, record, version, handle.deadline);
        }
        match &record.state {
            State::Closed(_) => self.deny(step, Denied::Closed(Arc::clone(record))),
            State::Vacant => self.grant(step, seen, record, version, End::Released),
            State::Reserved(successor) if **successor == **self.ask.holder.id() => {
                self.grant(step, seen, record, version, End::Released)
            }
            State::Held | State::Revoked(_) | State::Reserved(_) => {
                match self.run_out(step.ambient.now, seen, record) {
                    RunOut::Ttl => match self.after_run_out(step, record) {
                        After::Take => self.grant(step, seen, record, version, End::RanOut),
                        After::Look => {}
                        After::Wait(limit) => self.wait_for_tree(step, seen, record, limit),
                    },
                    RunOut::Dead => self.grant(step, seen, record, version, End::Died),
                    RunOut::Not => match self.ask.way.clone() {
                        Way::TakeNow(because) => {
                            let by = Arc::clone(self.ask.holder.id());
                            self.grant(step, seen, record, version, End::Revoked { by, because });
                        }
                        _ => self.wait_or_revoke(step, seen, record, version),
                    },
                }
            }
        }
    }

    fn wait_or_revoke(&mut self, step: &mut Step<'_>, seen: &Seen, record: &Arc<Record>, version: &Version) {
        if self.is_answered(step, record) {
            return;
        }
        if let Way::Revoke(because) = self.ask.way.clone()
            && *self.seeking().revokes.get_or_insert(record.term) == record.term
            && !self.seeking().revoked
            && (record.state == State::Held || self.rules.revokes_again())
        {
            let nonce = self.nonce(step, record);
            let revoked = writes::revoked(record, nonce, &because, &self.ask, step.ambient);
            return self.write(step, Purpose::Revoke, Expect::Version(version.clone()), revoked);
        }
        self.wait(step, seen, record);
    }

    /// A stealer that finds work which cannot be stopped is told so, and revokes nothing; first its witness is looked at,
    /// since the holder may be dead. A stealer that has revoked already, or waits for another's revocation, waits on.
    fn is_answered(&mut self, step: &mut Step<'_>, record: &Arc<Record>) -> bool {
        let is_first = self.seeking().revokes.is_none() || record.state == State::Held;
        if !matches!(self.ask.way, Way::Revoke(_))
            || self.seeking().revoked
            || self.seeking().revokes.is_some_and(|term| term != record.term)
            || !is_first
            || !self.rules.is_unstoppable(record)
            || self.rules.revokes_unstoppable()
        {
            return false;
        }
        if !self.looks_at_witness(step, record) {
            self.deny(step, Denied::Unstoppable(Arc::clone(record)));
        }
        true
    }

    /// Looks at the witness of a record, once for each answer that shows it; `false` if that was done or there is none.
    fn looks_at_witness(&mut self, step: &mut Step<'_>, record: &Record) -> bool {
        let Some(witness) = &record.witness else { return false };
        if self.seeking().witness_asked.replace(record.nonce) == Some(record.nonce) {
            return false;
        }
        let nonce = record.holders_nonce();
        self.looking = true;
        step.effects.push(Effect::LookAtWitness { witness: Arc::clone(witness), nonce });
        true
    }

    fn wait(&mut self, step: &mut Step<'_>, seen: &Seen, record: &Arc<Record>) {
        let once = self.ask.patience == Patience::Once;
        if self.looks_at_witness(step, record) && once {
            return;
        }
        if once {
            return self.deny(step, Denied::Held(Arc::clone(record)));
        }
        let ttl = record.ttl.unwrap_or(self.own_ttl());
        let out = self.rules.runs_out_at(seen.from, ttl, self.own_ttl(), self.ask.timing.drift());
        self.look_later(step, seen, record, Some(out));
    }

    /// The record has run out, and the work under it goes on.
    fn wait_for_tree(
        &mut self,
        step: &mut Step<'_>,
        seen: &Seen,
        record: &Arc<Record>,
        limit: Option<Instant>,
    ) {
        match self.waits_for_tree(record) {
            Some(sighting) if self.ask.patience == Patience::Once => {
                self.deny(step, Denied::Outlived { record: Arc::clone(record), sighting });
            }
            _ => self.look_later(step, seen, record, limit),
        }
    }

    /// Looks again when it is time to, or at this instant at the latest.
    fn look_later(
        &mut self,
        step: &mut Step<'_>,
        seen: &Seen,
        record: &Arc<Record>,
        latest: Option<Instant>,
    ) {
        let ttl = record.ttl.unwrap_or(self.own_ttl());
        let look = step.ambient.now + self.rules.poll_after(ttl, step.ambient.jitter);
        let seeking = self.seeking();
        seeking.next = Some(latest.map_or(look, |latest| look.min(latest)));
        let hinted = std::mem::take(&mut seeking.hinted);
        if seeking.waits_for_term.replace(record.term).is_some_and(|term| term != record.term) {
            seeking.others_were_faster();
        }
        if seeking.waits_for.replace(record.nonce) != Some(record.nonce) {
            seeking.in_vain = 0;
        } else if hinted {
            seeking.in_vain = seeking.in_vain.saturating_add(1);
        }
        if std::mem::take(&mut seeking.overtaken) {
            self.look_soon(step, seen.sent);
        }
    }

    fn grant(&mut self, step: &mut Step<'_>, seen: &Seen, old: &Arc<Record>, version: &Version, end: End) {
        let floor = match self.rules.floor(seen, self.ask.store_clock) {
            Floor::None => None,
            Floor::At(time) => Some(time),
            Floor::ReadFirst if self.seeking().looked => {
                // The store declares a clock, and the read we just made did not tell its time.
                return self.deny(step, Denied::Refused(Reason::Unsupported));
            }
            Floor::ReadFirst => return self.read(step),
        };
        let Some(token) = self.rules.next_token(old.token, step.sightings.highest(), floor) else {
            return self.deny(step, Denied::TokensExhausted);
        };
        let seeking = self.seeking();
        seeking.crowd = seeking.crowd.saturating_sub(1);
        let nonce = self.nonce(step, old);
        let record = writes::granted(old, nonce, token, end, &self.ask, step.ambient);
        self.write(step, Purpose::Grant, Expect::Version(version.clone()), record);
    }

    fn resume(&mut self, step: &mut Step<'_>, old: &Arc<Record>, version: &Version, deadline: Instant) {
        if self.rules.resume_believes_at_once() {
            let attempt = Attempt { nonce: old.nonce, sent: step.ambient.now, purpose: Purpose::Resume };
            return self.hold(step, attempt, old, version, deadline);
        }
        let record = writes::resumed(old, self.nonce(step, old), &self.ask, step.ambient);
        self.write(step, Purpose::Resume, Expect::Version(version.clone()), record);
    }

    /// A held record that is our own write: belief counts from when that very attempt was sent.
    fn adopt(&mut self, step: &mut Step<'_>, attempt: Attempt, record: &Arc<Record>, version: &Version) {
        let now = step.ambient.now;
        let ttl = record.ttl.unwrap_or(self.own_ttl());
        let deadline = self.rules.deadline(attempt.sent, now, ttl, self.ask.timing.drift());
        let learned_by = match &self.ask.way {
            Way::Resume(handle) => self.rules.resumable_until(handle.deadline, deadline),
            _ => deadline,
        };
        if record.state == State::Held && self.rules.may_go_on(now, learned_by) {
            return self.hold(step, attempt, record, version, deadline);
        }
        // Learned too late, or revoked before it was learned: nobody ever believed it, and it is not wanted like that.
        self.attempts.confirm(attempt);
        if let Way::Resume(handle) = &self.ask.way {
            let why = match &record.state {
                State::Held => Lost::Expired,
                _ => why_not_ours(record, handle),
            };
            return self.deny(step, Denied::StaleHandle(why));
        }
        let until = self.lapsed_at(now);
        let target = Some((Arc::clone(record), version.clone()));
        self.stage = Stage::Leaving(Leaving::unused(Some(record.term), target, until, true));
        self.leave(step);
    }

    fn hold(
        &mut self,
        step: &mut Step<'_>,
        attempt: Attempt,
        record: &Arc<Record>,
        version: &Version,
        until: Instant,
    ) {
        self.attempts.confirm(attempt);
        let event = Event::Granted { term: record.term, token: record.token, deadline: until };
        let mut holding = Holding::new(Arc::clone(record), version.clone(), until);
        holding.next = self.next_renewal(step, attempt.sent);
        self.stage = Stage::Holding(holding);
        self.tell(step, event);
    }

    /// Ends the wanting. What may still land is left to be vacated.
    pub(super) fn deny(&mut self, step: &mut Step<'_>, denied: Denied) {
        self.tell(step, Event::Denied(denied));
        if !self.attempts.may_land() {
            self.stage = Stage::Ended(Left::Nothing);
            return;
        }
        if matches!(self.ask.way, Way::Resume(_)) && !self.rules.vacates_doubtful_resume() {
            self.stage = Stage::Ended(Left::Lapsing);
            return;
        }
        let until = self.lapsed_at(step.ambient.now);
        let term = self.mine().term;
        self.stage = Stage::Leaving(Leaving::unused(term, None, until, false));
        self.leave(step);
    }

    // ── inputs ────────────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn seeking_read(&mut self, step: &mut Step<'_>, answer: Result<Content, Fault>) {
        match answer {
            Ok(_) => {
                let seeking = self.seeking();
                seeking.looked = true;
                seeking.trouble = None;
                seeking.witness_asked = None;
                self.forget_outlived_sighting();
                self.seek(step);
            }
            Err(fault) => self.seeking_failed(step, fault),
        }
    }

    pub(super) fn seeking_written(&mut self, step: &mut Step<'_>, flown: Flown, outcome: Outcome) {
        match (self.rules.verdict(&outcome), &outcome) {
            (Verdict::Done, _) => {
                self.seeking().failures = 0;
                match flown.attempt.purpose {
                    Purpose::Grant | Purpose::Resume => {
                        let version = landed_version(&flown, &outcome);
                        self.adopt(step, flown.attempt, &flown.record, &version);
                    }
                    purpose => {
                        // What we wrote ourselves need not be read.
                        let revoked = purpose == Purpose::Revoke;
                        self.seeking().looked = revoked;
                        self.seeking().revoked |= revoked;
                        self.seek(step);
                    }
                }
            }
            (Verdict::NoEffect, Outcome::Fault(fault))
            | (Verdict::ReadBack, Outcome::Fault(fault @ Fault::Throttled(_))) => {
                self.seeking_failed(step, *fault)
            }
            (_, outcome) => {
                // One lost answer, or one conflict, is read back at once. If nothing has changed after that and it fails
                // again, the store gets its pause.
                let fault = outcome.fault().unwrap_or(Fault::Unknown);
                if matches!(outcome, Outcome::Conflict) {
                    self.seeking().others_were_faster();
                }
                if self.seeking().failures > 0 {
                    return self.seeking_failed(step, fault);
                }
                self.seeking().failures = 1;
                self.seeking().planted_in_vain = flown.attempt.purpose == Purpose::Plant;
                self.read(step);
            }
        }
    }

    /// A call failed: come back later, unless that cannot help.
    fn seeking_failed(&mut self, step: &mut Step<'_>, fault: Fault) {
        self.seeking().looked = false;
        self.seeking().trouble = Some(fault);
        match fault {
            Fault::Refused(reason) if reason != Reason::Unreachable => {
                self.deny(step, Denied::Refused(reason))
            }
            _ if self.ask.patience == Patience::Once => self.deny(step, Denied::Unavailable(Some(fault))),
            _ => {
                let failures = self.seeking().failures;
                self.seeking().failures = failures.saturating_add(1);
                let growing = self.ask.timing.retry() * 2u32.pow(failures.min(8));
                let pause = earlier_by_chance(growing.min(self.ask.timing.period()), step.ambient.jitter);
                self.seeking().next = Some(step.ambient.now + pause.max(asked_for(fault)));
            }
        }
    }

    pub(super) fn seeking_woken(&mut self, step: &mut Step<'_>) {
        let now = step.ambient.now;
        if self.limit().is_some_and(|limit| limit <= now) {
            let denied = match (self.seeking().trouble, step.sightings.latest()) {
                _ if matches!(self.ask.way, Way::Resume(_)) => Denied::StaleHandle(Lost::Expired),
                (None, Some(Seen { content: Content::Record(record, _), .. }))
                    if record.state != State::Vacant =>
                {
                    let record = Arc::clone(record);
                    match self.waits_for_tree(&record) {
                        Some(sighting) => Denied::Outlived { record, sighting },
                        None => Denied::Held(record),
                    }
                }
                (trouble, _) => Denied::Unavailable(trouble),
            };
            return self.deny(step, denied);
        }
        if self.flight.is_some() || self.seeking().next.is_none_or(|next| next > now) {
            return;
        }
        // Either the version seen has run out by now, or it is time to look again.
        self.seeking().looked = false;
        self.seek(step);
    }

    /// A hint is worth a look, but with a pause between two of them: some stores hint at every renewal, and some all the
    /// time.
    pub(super) fn hinted(&mut self, step: &mut Step<'_>) {
        let Stage::Seeking(seeking) = &mut self.stage else { return };
        if self.flight.is_some() {
            seeking.overtaken = true;
            return;
        }
        if seeking.next.is_none() {
            // A witness is being looked at.
            seeking.overtaken = true;
        }
        let Seeking { next: Some(_), trouble: None, .. } = seeking else { return };
        let now = step.ambient.now;
        self.look_soon(step, step.sightings.latest().map_or(now, |seen| seen.sent));
        if self.seeking().next.is_some_and(|next| next <= now) {
            self.seeking().next = None;
            self.read(step);
        }
    }

    /// Looks again because of a hint: after a pause since the last look, and a longer one the more hints were in vain.
    ///
    /// Everybody who waits gets the hint at one moment, and only one of them can be granted. Whoever finds others faster
    /// again and again is one of many: it takes its look at a random moment of a longer and longer time, so that most of
    /// them find the key taken and spare the store a write.
    fn look_soon(&mut self, step: &Step<'_>, looked: Instant) {
        let (usual, longest) = (self.ask.hint_pause, self.ask.timing.retry());
        let seeking = self.seeking();
        if seeking.hinted {
            return;
        }
        let growing = match seeking.in_vain {
            0 => Duration::ZERO,
            count => VAIN_PAUSE * 8u32.pow(count.min(8) - 1),
        };
        seeking.hinted = true;
        let crowd = (CROWD_PAUSE * (2u32.pow(seeking.crowd) - 1)).min(longest);
        let soonest = (looked + growing.min(longest).max(usual))
            .max(step.ambient.now + part_by_chance(crowd, step.ambient.jitter));
        seeking.next = seeking.next.map(|next| next.min(soonest));
    }

    pub(super) fn witnessed(&mut self, step: &mut Step<'_>, nonce: Nonce, sighting: Sighting) {
        let freed = self.outlived_seen(step, nonce, sighting);
        let Stage::Seeking(seeking) = &mut self.stage else { return };
        if self.rules.is_dead(sighting) {
            seeking.dead = Some(nonce);
        }
        let matters = seeking.dead == Some(nonce) || seeking.next.is_none() || freed;
        if self.flight.is_none() && seeking.looked && matters {
            self.seek(step);
        }
    }

    // ── small questions ───────────────────────────────────────────────────────────────────────────────────────────

    fn seeking(&mut self) -> &mut Seeking {
        match &mut self.stage {
            Stage::Seeking(seeking) => seeking,
            stage => unreachable!("not seeking but {stage:?}"),
        }
    }

    /// Whether what was seen before can be taken without another look: then one write is all it costs.
    fn could_take(&self, step: &Step<'_>, seen: &Seen) -> bool {
        let Content::Record(record, _) = &seen.content else { return false };
        let now = step.ambient.now;
        let floor = self.rules.floor(seen, self.ask.store_clock);
        let free = match &record.state {
            State::Vacant => true,
            State::Held | State::Revoked(_) | State::Reserved(_) => match self.run_out(now, seen, record) {
                RunOut::Not => false,
                RunOut::Dead => true,
                RunOut::Ttl => !self.heeds_tree_of(record),
            },
            State::Closed(_) => false,
        };
        free && floor != Floor::ReadFirst && !matches!(self.ask.way, Way::Resume(_))
    }

    fn run_out(&self, now: Instant, seen: &Seen, record: &Record) -> RunOut {
        let Stage::Seeking(seeking) = &self.stage else { return RunOut::Not };
        if seeking.dead == Some(record.holders_nonce()) && record.is_held() {
            return RunOut::Dead;
        }
        if seeking.revoked && matches!(record.state, State::Revoked(_)) && !self.rules.waits_after_revoking()
        {
            return RunOut::Ttl;
        }
        let ttl = record.ttl.unwrap_or(self.own_ttl());
        let out = self.rules.runs_out_at(seen.from, ttl, self.own_ttl(), self.ask.timing.drift());
        if out <= now { RunOut::Ttl } else { RunOut::Not }
    }

    /// Whether the record was granted with the secret of the handle, or with none if it has none. The nonces are in the
    /// record for everybody to read.
    pub(super) fn knows_the_secret(&self, record: &Record) -> bool {
        record.secret_hash == self.ask.secret_hash
    }

    /// When whatever this lease may have left in the store has run out for everybody.
    pub(super) fn lapsed_at(&self, now: Instant) -> Instant {
        let sent = self.attempts.latest_sent().unwrap_or(now);
        sent + self.ask.timing.drift().lengthen(self.own_ttl().as_duration())
    }
}

/// Doubled for each time that others were faster.
const CROWD_PAUSE: Duration = Duration::from_millis(1);

/// So that a look comes after 63 ms at most.
const CROWD_MAX: u32 = 6;

/// After the first hint in vain; then eight times as long for each.
const VAIN_PAUSE: Duration = Duration::from_millis(8);

/// Why a handle of an earlier process is not good for this record any more.
pub fn why_not_ours(record: &Record, handle: &Handle) -> Lost {
    match &record.state {
        _ if record.term != handle.term => Lost::to(record, handle.token),
        State::Revoked(revocation) => {
            Lost::Revoked { by: Arc::clone(&revocation.by), because: Arc::clone(&revocation.because) }
        }
        State::Held => Lost::Resumed,
        State::Vacant | State::Reserved(_) | State::Closed(_) => match record.history.last() {
            Some(Past { end: End::Revoked { by, because }, .. }) => {
                Lost::Revoked { by: Arc::clone(by), because: Arc::clone(because) }
            }
            _ => Lost::Released,
        },
    }
}

/// How long a throttling store asks to be left alone, as far as we listen to it.
pub(super) fn asked_for(fault: Fault) -> Duration {
    const LONGEST: Duration = Duration::from_secs(60);
    match fault {
        Fault::Throttled(Some(after)) => after.min(LONGEST),
        Fault::Throttled(None) | Fault::Unknown | Fault::Refused(_) => Duration::ZERO,
    }
}

/// The version that a write left behind. Only a wrong rule comes here without one.
pub(super) fn landed_version(flown: &Flown, outcome: &Outcome) -> Version {
    match (outcome, &flown.expect) {
        (Outcome::Applied { version, .. }, _) | (_, Expect::Version(version)) => version.clone(),
        (_, Expect::Absent) => Version::new("absent"),
    }
}
