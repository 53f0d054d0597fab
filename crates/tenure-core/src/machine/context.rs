use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Expect, StoreTime};

use super::in_flight::{InFlight, SentWrite};
use super::outlived::Outlived;
use super::rules::{Mine, earlier_by_chance, half_by_chance};
use super::stage::{Next, STAY};
use super::{
    AcquireParams, Ambient, Attempt, Attempts, Content, Effect, Event, Fault, Look, Outcome, Patience,
    Purpose, Rules, Seen, Sightings, Write,
};
use crate::Instant;
use crate::record::{LastSuccess, Nonce, Record, Ttl};

/// Everything that a stage may use in one step besides its own fields: the parts of the lease that outlive a stage, and
/// the world.
pub(super) struct Context<'a> {
    pub(super) rules: &'static dyn Rules,
    pub(super) params: &'a AcquireParams,
    pub(super) attempts: &'a mut Attempts,
    pub(super) in_flight: &'a mut Option<InFlight>,
    /// Reason why the work under the term cannot be stopped, if its holder has said so.
    pub(super) unstoppable: Option<&'a Arc<str>>,
    /// The store's time when the latest grant was sent, as far as it is known.
    pub(super) began: &'a mut Option<StoreTime>,
    /// True if the holder has reported that the work of the term is done.
    pub(super) succeeded: bool,
    /// The record that was last seen to run out by its ttl.
    pub(super) outlived: &'a mut Option<Outlived>,
    /// True if an inspection of a witness is pending.
    pub(super) looking_at_witness: &'a mut bool,
    pub(super) ambient: &'a Ambient,
    pub(super) sightings: &'a mut Sightings,
    pub(super) effects: &'a mut Vec<Effect>,
}

impl<'a> Context<'a> {
    // ── effects ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Sends a read; the stage stays until its answer arrives.
    pub(super) fn read(&mut self) -> Next {
        assert!(self.is_idle(), "one call at a time");
        *self.in_flight = Some(InFlight::Read { sent: self.ambient.now, highest: self.sightings.highest() });
        self.effects.push(Effect::Read);
        STAY
    }

    /// Sends a write; the stage stays until its answer arrives. A write that expects a version is tracked until it is
    /// settled.
    pub(super) fn write(&mut self, purpose: Purpose, expect: Expect, record: Record) -> Next {
        assert!(self.is_idle(), "one call at a time");
        let attempt = Attempt { nonce: record.nonce, sent: self.ambient.now, purpose };
        if let (Expect::Version(version), true) = (&expect, purpose.is_of_a_term()) {
            self.attempts.add(attempt, version);
        }
        let record = Arc::new(record);
        let write = Write { purpose, expect: expect.clone(), record: Arc::clone(&record) };
        let highest = self.sightings.highest();
        *self.in_flight = Some(InFlight::Write(SentWrite { attempt, record, expect, highest }));
        self.effects.push(Effect::Write(write));
        STAY
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.effects.push(Effect::Tell(event));
    }

    // ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Takes in the answer to the pending read, for all leases of the key.
    pub(super) fn read_answered(&mut self, answer: Result<Look, Fault>) -> Result<Content, Fault> {
        let Some(InFlight::Read { sent, highest }) = self.in_flight.take() else {
            unreachable!("an answer to a read that was not sent");
        };
        let look = answer?;
        let content = look.content.clone();
        let clock = self.params.store_clock;
        self.sightings.note_read(self.rules, clock, (sent, highest), look, self.ambient);
        if let Some(seen @ Seen { went_back: Some(highest), .. }) = self.sightings.latest() {
            let event = Event::WentBack { seen: *highest, shown: seen.token() };
            self.tell(event);
        }
        Ok(content)
    }

    /// Takes in the answer to the pending write, and returns that write.
    pub(super) fn write_answered(&mut self, outcome: &Outcome) -> SentWrite {
        let Some(InFlight::Write(write)) = self.in_flight.take() else {
            unreachable!("an answer to a write that was not sent");
        };
        if let Outcome::Applied { version, time } = outcome {
            self.sightings.note_write(self.rules, &write, version, *time, self.ambient);
        }
        if !self.rules.stays_outstanding(outcome) {
            self.attempts.settle(write.attempt.nonce);
        }
        write
    }

    // ── small questions ───────────────────────────────────────────────────────────────────────────────────────────

    /// True if no call is pending.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_none()
    }

    /// Facts by which this lease recognises its own records, in a stage of this term.
    pub(super) fn mine(&self, term: Option<Nonce>) -> Mine<'_> {
        Mine { term, attempts: self.attempts, holder: self.params.holder.id() }
    }

    /// The own write that left this record. Only a wrong rule recognises a record that none of them left.
    pub(super) fn attempt_behind(&self, record: &Record) -> Attempt {
        let unknown = Attempt { nonce: record.nonce, sent: self.ambient.now, purpose: Purpose::Grant };
        self.attempts.find(record.holders_nonce()).copied().unwrap_or(unknown)
    }

    /// The success that the release of this record reports, if the work of its term is done.
    pub(super) fn success_of(&self, record: &Record) -> Option<LastSuccess> {
        if !self.rules.counts_as_done(self.succeeded) {
            return None;
        }
        let began = (*self.began)?;
        Some(LastSuccess { token: record.token, began })
    }

    pub(super) fn nonce(&self, previous: &Record) -> Nonce {
        self.rules.nonce(self.ambient.nonce, previous.nonce)
    }

    /// End of the patience, if it has one.
    pub(super) fn limit(&self) -> Option<Instant> {
        match self.params.patience {
            Patience::Until(limit) => Some(limit),
            Patience::Once | Patience::Forever => None,
        }
    }

    pub(super) fn own_ttl(&self) -> Ttl {
        self.params.timing.ttl()
    }

    /// True if the record was granted with the secret of the handle, or without one if the handle has none.
    pub(super) fn knows_the_secret(&self, record: &Record) -> bool {
        self.rules.knows_secret(record.secret_hash, self.params.secret_hash)
    }

    /// Instant at which every possible remains of this lease have run out for all contenders.
    pub(super) fn lapsed_at(&self) -> Instant {
        let sent = self.attempts.latest_sent().unwrap_or(self.ambient.now);
        sent + self.params.timing.drift().lengthen(self.own_ttl().as_duration())
    }

    /// Time of the renewal after a write that was sent at `sent`.
    pub(super) fn renewal_after(&self, sent: Instant) -> Instant {
        (sent + earlier_by_chance(self.params.timing.period(), self.ambient.jitter)).max(self.ambient.now)
    }

    /// Pause after this many failed calls in a row, if no deadline limits it. It doubles each time, up to a period, and
    /// jitter shortens it by up to a half.
    pub(super) fn pause_after(&self, failures: u32) -> Duration {
        let timing = self.params.timing;
        let growing = timing.retry() * 2u32.pow(failures.clamp(1, 8));
        half_by_chance(growing.min(timing.period()), self.ambient.jitter).max(timing.retry())
    }

    /// True if the record of this term is kept after the belief has ended.
    pub(super) fn keeps(&self) -> bool {
        self.unstoppable.is_some() && self.rules.keeps_unstoppable()
    }
}
