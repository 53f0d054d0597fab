//! The decisions of the protocol. Reading this file is reading the protocol: the rest of the machine only asks these
//! questions in the right order. Every mutant of the simulation replaces exactly one answer.

use std::fmt;
use std::time::Duration;

use tenure_store::{StoreClock, StoreTime, Version};

use super::{Attempts, Outcome, Seen, Sighting, TermRef};
use crate::record::{Nonce, Record, State, Ttl};
use crate::{Drift, Instant, Token};

/// The decisions of the protocol, each with the answer that is right.
pub trait Rules: fmt::Debug + Send + Sync {
    // ── time: a holder counts less than the ttl, a contender counts more ──────────────────────────────────────────

    /// Until when does a holder believe? From *before the request was sent*: the store may have applied it right then,
    /// and a contender counts from no earlier.
    fn deadline(&self, sent: Instant, answered: Instant, ttl: Ttl, drift: Drift) -> Instant {
        let _ = answered;
        sent + drift.shorten(ttl.as_duration())
    }

    /// From when has a contender seen a version? From the *return* of the read: the holder may have renewed it while
    /// the answer was on its way.
    fn observed_from(&self, sent: Instant, returned: Instant) -> Instant {
        let _ = sent;
        returned
    }

    /// From when does the store itself know the version, if its clock does not jump? `clocks` are the wall clocks of
    /// record and reader: they are for people, and this rule must not look at them.
    fn aged_from(
        &self,
        returned: Instant,
        age: Option<Duration>,
        clock: StoreClock,
        clocks: Walls,
    ) -> Option<Instant> {
        let _ = clocks;
        match clock {
            StoreClock::Ages => age.map(|age| returned - age),
            // Nor by a clock that this version does not know.
            _ => None,
        }
    }

    /// When has a held version run out? After the *record's* ttl, which its holder counts on, and the drift.
    fn runs_out_at(&self, from: Instant, records: Ttl, own: Ttl, drift: Drift) -> Instant {
        let _ = own;
        from + drift.lengthen(records.as_duration())
    }

    /// Is it still the same version? Some stores repeat versions when a key is made anew, so the nonce must be the
    /// same too.
    fn same_observation(&self, old: (&Version, Nonce), new: (&Version, Nonce)) -> bool {
        old == new
    }

    /// Does this witness prove that nobody acts under the record? Only the very file, with no part locked, and the nonce
    /// of the holder's last write listed. Anything else proves nothing.
    fn is_dead(&self, sighting: Sighting) -> bool {
        sighting.found && sighting.same_file && !sighting.is_locked() && sighting.lists_nonce
    }

    /// Does this witness show that the work under a record goes on that has run out by its ttl? Only the very file, with
    /// the part of the tree locked. A process that merely keeps the lease may be late or stopped, and is succeeded.
    fn work_goes_on(&self, sighting: Sighting) -> bool {
        sighting.same_file && sighting.tree_locked
    }

    /// May a term go on, by sending a renewal or by believing its answer? Not after the deadline: nothing revives.
    fn may_go_on(&self, now: Instant, deadline: Instant) -> bool {
        now < deadline
    }

    // ── tokens: strictly greater for every grant, for ever ────────────────────────────────────────────────────────

    /// What is the next token? Greater than the one before, than any this process has seen, and than the store's time
    /// in microseconds, which survives deletion and restore. `None` at the top of the range.
    fn next_token(&self, previous: Token, highest: Token, floor: Option<StoreTime>) -> Option<Token> {
        let next = previous.max(highest).next()?;
        match floor {
            Some(time) => Token::new(time.as_micros()).map(|floor| next.max(floor)),
            None => Some(next),
        }
    }

    /// May this answer still be acted on? For one ttl, counted from its request: a pause may have kept the answer
    /// waiting. After that a restored record, or one that was made anew under a version of before, may look the same
    /// and be another, and the time in the answer is too old for a floor.
    fn is_fresh(&self, seen: &Seen, now: Instant, own: Ttl) -> bool {
        now.since(seen.sent) <= own.as_duration()
    }

    /// Which store time may be the floor of a grant that replaces what `seen` showed? The one of that very answer.
    fn floor(&self, seen: &Seen, clock: StoreClock) -> Floor {
        match (clock, seen.time) {
            (clock, _) if clock < StoreClock::Floors => Floor::None,
            (_, None) => Floor::ReadFirst,
            (_, Some(time)) if !is_plausible(time) => Floor::None,
            (_, Some(time)) => Floor::At(time),
        }
    }

    /// Which store time belongs to a version that our own write made? That of its answer. The one we had `before` is
    /// older than the version, and than whatever was granted and deleted in between.
    fn time_of_write(&self, before: Option<StoreTime>, answer: Option<StoreTime>) -> Option<StoreTime> {
        let _ = before;
        answer
    }

    /// Is a missing record planted vacant before it is granted? Always, so that every grant replaces a version that
    /// was seen, and its floor is younger than whatever was deleted.
    fn plants_first(&self) -> bool {
        true
    }

    /// May something be granted although the token went back? Only where the store's time puts the next token above
    /// everything that was forgotten.
    fn may_grant_after_going_back(&self, floor: Floor) -> bool {
        matches!(floor, Floor::At(_))
    }

    /// The token of the record that a release leaves behind: the same. Never less, or the next grant is not newer.
    fn token_left_behind(&self, token: Token) -> Token {
        token
    }

    // ── answers: an unknown outcome is never guessed ──────────────────────────────────────────────────────────────

    /// The nonce of a write: fresh each time.
    fn nonce(&self, fresh: Nonce, previous: Nonce) -> Nonce {
        let _ = previous;
        fresh
    }

    /// Is this record a write of ours? Only if it is of this term and carries the nonce of one of its outstanding
    /// writes. Never by the holder's name: a twin has the same.
    fn is_ours(&self, record: &Record, mine: Mine<'_>) -> bool {
        mine.term.is_none_or(|term| term == record.term)
            && mine.attempts.find(record.holders_nonce()).is_some()
    }

    /// What does this outcome prove? Everything but *applied* and *refused* is read back before it is believed: a
    /// balancer may have sent the request twice, and a conflict may be with ourselves.
    fn proof(&self, outcome: &Outcome) -> Proof {
        match outcome {
            Outcome::Applied { .. } => Proof::Done,
            Outcome::Fault(super::Fault::Refused(_)) => Proof::NoEffect,
            Outcome::Conflict | Outcome::Fault(_) => Proof::ReadBack,
        }
    }

    /// Does a write with this outcome stay outstanding? Yes, unless it is certain that it never lands.
    fn stays_outstanding(&self, outcome: &Outcome) -> bool {
        !matches!(outcome, Outcome::Applied { .. } | Outcome::Fault(super::Fault::Refused(_)))
    }

    /// Do older writes stay outstanding when one is tried again? Yes: they expect the same version and may still land.
    fn keeps_earlier_attempts(&self) -> bool {
        true
    }

    // ── a term: fixed when granted, ended once ────────────────────────────────────────────────────────────────────

    /// The ttl of a renewal: the term's own. A contender that saw the shorter one counts on it.
    fn ttl_of_renewal(&self, term: Ttl, fresh: u32) -> Ttl {
        let _ = fresh;
        term
    }

    /// May this record be vacated by us? Only if it is our own write. A retried vacate of an earlier term must not end
    /// the next one, even if that is of the same holder.
    fn may_vacate(&self, record: &Record, mine: Mine<'_>) -> bool {
        self.is_ours(record, mine)
    }

    /// May a vacate be written while work may still be going on under the term? No: it lapses instead.
    fn vacates_under_work(&self) -> bool {
        false
    }

    /// Is this handle good for the term in this record? Only if the record is the very write that the handle tells of: of
    /// two copies, the one that is used first counts.
    fn may_resume(&self, record: &Record, handle: &TermRef) -> bool {
        record.state == State::Held && (record.term, record.nonce) == (handle.term, handle.nonce)
    }

    /// Does a resumed handle believe before its renewal is applied? No: its term may have been taken meanwhile.
    fn resume_believes_at_once(&self) -> bool {
        false
    }

    /// Until when may a resumption that has landed be believed? Until the deadline of its handle, which is before its own:
    /// whoever has the handle has stopped by then, and nothing revives.
    fn resumable_until(&self, handle: Instant, own: Instant) -> Instant {
        handle.min(own)
    }

    /// Is a resumption that may have landed vacated when it is given up? No: whoever has the handle may be acting under
    /// the term until its deadline, and is not asked.
    fn vacates_doubtful_resume(&self) -> bool {
        false
    }

    // ── taking on purpose ─────────────────────────────────────────────────────────────────────────────────────────

    /// Does a second stealer revoke again what is revoked already? No: a new version would restart everybody's wait.
    fn revokes_again(&self) -> bool {
        false
    }

    /// Does a stealer wait after revoking? Yes: for the acknowledgement, the old ttl, or the witness.
    fn waits_after_revoking(&self) -> bool {
        true
    }

    // ── work that cannot be stopped ───────────────────────────────────────────────────────────────────────────────

    /// Does this record say that the work under it cannot be stopped? Only if it says so of its own term: programs that do
    /// not know the field copy it into the records of later terms.
    fn is_unstoppable(&self, record: &Record) -> bool {
        record.cannot_stop().is_some()
    }

    /// Is such a term revoked all the same? No: its holder could only stop believing, and not the work. Its stealer is told.
    fn revokes_unstoppable(&self) -> bool {
        false
    }

    /// Is the record of such a term kept when its belief is over, until the work has ended? Yes: a record that runs out
    /// under work that goes on gives the lease to another.
    fn keeps_unstoppable(&self) -> bool {
        true
    }

    // ── fail closed ───────────────────────────────────────────────────────────────────────────────────────────────

    /// May a record that is not fully understood be overwritten? Never.
    fn overwrites_foreign(&self) -> bool {
        false
    }

    /// After how long does a contender look again? At most three times per ttl of the record, a little earlier by
    /// chance so that a crowd spreads.
    fn poll_after(&self, records: Ttl, jitter: u32) -> Duration {
        earlier_by_chance(poll_period(records), jitter)
    }

    /// What may an observer show after it has shown `shown`? Never an older token.
    fn may_show(&self, shown: Token, next: Token) -> bool {
        next >= shown
    }
}

/// The rules that are right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Rules for Standard {}

/// Where the floor of a token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The store has no clock that could be one.
    None,
    /// This time.
    At(StoreTime),
    /// The answer at hand has none: read first.
    ReadFirst,
}

/// What an outcome proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It happened.
    Done,
    /// It did not, and never will.
    NoEffect,
    /// Only reading back will tell.
    ReadBack,
    /// It did not happen because somebody else was granted. No right rule says this without a read.
    Lost,
}

/// What this lease can prove to be its own.
#[derive(Clone, Copy, Debug)]
pub struct Mine<'a> {
    /// The term, once there is one.
    pub term: Option<Nonce>,
    /// The writes whose outcome is not settled, and the latest that was confirmed.
    pub attempts: &'a Attempts,
    /// The name, which proves nothing.
    pub holder: &'a str,
}

/// The wall clocks at hand, which prove nothing.
#[derive(Clone, Copy, Debug)]
pub struct Walls {
    /// When the record says that it was written.
    pub written: crate::WallTime,
    /// The reader's own.
    pub now: crate::WallTime,
}

/// How often a contender looks: never more than three times per ttl of the record, also when jitter takes a tenth.
pub(crate) fn poll_period(records: Ttl) -> Duration {
    records.as_duration() * 3 / 8
}

/// Makes a span up to a tenth shorter.
pub(crate) fn earlier_by_chance(span: Duration, jitter: u32) -> Duration {
    span - part_by_chance(span / JITTER_PART, jitter)
}

/// A random part of a span.
pub(crate) fn part_by_chance(span: Duration, jitter: u32) -> Duration {
    Duration::from_nanos(((span.as_nanos() * u128::from(jitter)) >> 32) as u64)
}

/// Jitter takes away at most one part in so many.
pub(crate) const JITTER_PART: u32 = 10;

/// A store time before 2020 or after 2200 is a clock that was never set, or nonsense.
pub fn is_plausible(time: StoreTime) -> bool {
    (YEAR_2020..YEAR_2200).contains(&time.as_micros())
}

/// In microseconds since 1970.
pub const YEAR_2020: u64 = 1_577_836_800_000_000;
const YEAR_2200: u64 = 7_258_118_400_000_000;
