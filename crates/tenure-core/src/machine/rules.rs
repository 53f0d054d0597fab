//! The decisions of the protocol. To read this file is to read the protocol: the other files of the machine only call
//! these rules in the right order. Every mutant of the simulation replaces exactly one rule.

use std::fmt;
use std::time::Duration;

use tenure_store::{StoreClock, StoreTime, Version};

use super::{Attempts, Fault, Outcome, Seen, Sighting, TermRef};
use crate::record::{LastSuccess, Nonce, Record, State, Ttl};
use crate::{Drift, Instant, Timing, Token};

/// The decisions of the protocol, each with its correct implementation.
pub trait Rules: fmt::Debug + Send + Sync {
    // ── time: a holder counts less than the ttl, a contender counts more ──────────────────────────────────────────

    /// Deadline of a holder's belief. It counts from *before the request was sent*: the store may have applied the
    /// write right then, and a contender counts from no earlier.
    fn deadline(&self, sent: Instant, answered: Instant, ttl: Ttl, drift: Drift) -> Instant {
        let _ = answered;
        sent + drift.shorten(ttl.as_duration())
    }

    /// Instant from which a contender counts a version. It is the *return* of the read: the holder may have renewed it
    /// while the answer was in transit.
    fn observed_from(&self, sent: Instant, returned: Instant) -> Instant {
        let _ = sent;
        returned
    }

    /// Instant since which the store itself knows the version, if its clock does not jump. `clocks` are the wall clocks
    /// of record and reader: they are informational, and this rule must not use them.
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
            // A kind of clock that this version does not know gives no age either.
            _ => None,
        }
    }

    /// Instant at which a held version has run out: after the *record's* ttl, which its holder counts on, and the
    /// drift.
    fn runs_out_at(&self, from: Instant, records: Ttl, own: Ttl, drift: Drift) -> Instant {
        let _ = own;
        from + drift.lengthen(records.as_duration())
    }

    /// True if both are the same version. Some stores repeat versions when a key is created again, so the nonce must be
    /// the same too.
    fn same_observation(&self, old: (&Version, Nonce), new: (&Version, Nonce)) -> bool {
        old == new
    }

    /// True if this witness proves that no process acts under the record: it is the exact file, no part of it is
    /// locked, and it lists the nonce of the holder's last write. Any other sighting proves nothing.
    fn is_dead(&self, sighting: Sighting) -> bool {
        sighting.found && sighting.same_file && !sighting.is_locked() && sighting.lists_nonce
    }

    /// True if this witness shows that work still runs under a record that has run out by its ttl: it is the exact
    /// file, with the part of the tree locked. A process that merely keeps the lease may be late or stopped; contenders
    /// take over from it.
    fn work_goes_on(&self, sighting: Sighting) -> bool {
        sighting.same_file && sighting.tree_locked
    }

    /// True if a term may continue, by sending a renewal or by believing its answer. Not after the deadline: a lost
    /// lease never revives.
    fn may_go_on(&self, now: Instant, deadline: Instant) -> bool {
        now < deadline
    }

    // ── tokens: strictly greater for every grant, forever ─────────────────────────────────────────────────────────

    /// The next token. It is greater than the previous one, than any that this process has seen, and at least the
    /// store's time in microseconds, which survives deletion and restore. `None` at the top of the range.
    fn next_token(&self, previous: Token, highest: Token, floor: Option<StoreTime>) -> Option<Token> {
        let next = previous.max(highest).next()?;
        match floor {
            Some(time) => Token::new(time.as_micros()).map(|floor| next.max(floor)),
            None => Some(next),
        }
    }

    /// True if this answer may still be acted on: for one ttl from its request, because a pause may have delayed the
    /// answer. After that, the record may have been restored, or created again under an earlier version. It may look
    /// the same and be another one, and the time in the answer is too old for a floor.
    fn is_fresh(&self, seen: &Seen, now: Instant, own: Ttl) -> bool {
        now.since(seen.sent) <= own.as_duration()
    }

    /// Floor of a grant that replaces what `seen` showed: the store time in that same answer.
    fn floor(&self, seen: &Seen, clock: StoreClock) -> Floor {
        match (clock, seen.time) {
            (clock, _) if clock < StoreClock::Floors => Floor::None,
            (_, None) => Floor::ReadFirst,
            (_, Some(time)) if !is_plausible(time) => Floor::None,
            (_, Some(time)) => Floor::At(time),
        }
    }

    /// True if the store time of this answer is a floor for a grant. A planted record remembers no earlier token. If the
    /// store's clock has a tick, a grant, a deletion and the plant may all be within one tick. So the first grant needs
    /// a later time than the first answer that showed the planted record: tokens of earlier grants are not beyond the
    /// tick of that answer.
    fn is_after_plant(&self, seen: &Seen, tick: Duration) -> bool {
        tick.is_zero() || !seen.is_planted() || seen.time > seen.first_time
    }

    /// Store time of a version that an own write created: the time in its answer. The time `before` is older than the
    /// version, and than any grant that was made and deleted in between.
    fn time_of_write(&self, before: Option<StoreTime>, answer: Option<StoreTime>) -> Option<StoreTime> {
        let _ = before;
        answer
    }

    /// True if a missing record is planted vacant before it is granted. Always: every grant then replaces a version
    /// that was seen, and its floor is younger than any deleted record.
    fn plants_first(&self) -> bool {
        true
    }

    /// True if a grant is allowed although the token went back. Only if the store's time puts the next token above
    /// every forgotten one.
    fn may_grant_after_going_back(&self, floor: Floor) -> bool {
        matches!(floor, Floor::At(_))
    }

    /// Token of the record that a release leaves behind: the same token. With a smaller one, the next grant would not
    /// be newer.
    fn token_left_behind(&self, token: Token) -> Token {
        token
    }

    // ── answers: an unknown outcome is never guessed ──────────────────────────────────────────────────────────────

    /// The nonce of a write: fresh each time.
    fn nonce(&self, fresh: Nonce, previous: Nonce) -> Nonce {
        let _ = previous;
        fresh
    }

    /// True if this record is an own write: it is of this term and carries the nonce of one of the outstanding writes.
    /// The holder's name is no proof: a twin has the same.
    fn is_ours(&self, record: &Record, mine: Mine<'_>) -> bool {
        mine.term.is_none_or(|term| term == record.term)
            && mine.attempts.find(record.holders_nonce()).is_some()
    }

    /// Proof that this outcome gives. Every outcome but *applied*, *refused* and *withheld* is read back before it is believed: a
    /// balancer may have sent the request twice, and the conflict may be with an own write.
    fn proof(&self, outcome: &Outcome) -> Proof {
        match outcome {
            Outcome::Applied { .. } => Proof::Done,
            Outcome::Fault(Fault::Refused(_) | Fault::Withheld(_)) => Proof::NoEffect,
            Outcome::Conflict | Outcome::Fault(_) => Proof::ReadBack,
        }
    }

    /// True if a write with this outcome stays outstanding: always, unless it certainly never lands.
    fn stays_outstanding(&self, outcome: &Outcome) -> bool {
        !matches!(outcome, Outcome::Applied { .. } | Outcome::Fault(Fault::Refused(_) | Fault::Withheld(_)))
    }

    /// True if older writes stay outstanding when a write is retried. Always: they expect the same version and may
    /// still land.
    fn keeps_earlier_attempts(&self) -> bool {
        true
    }

    // ── a term: fixed when granted, ended once ────────────────────────────────────────────────────────────────────

    /// Ttl of a renewal: the term's own. A contender that saw a shorter one would count on it.
    fn ttl_of_renewal(&self, term: Ttl, fresh: u32) -> Ttl {
        let _ = fresh;
        term
    }

    /// True if this lease may vacate this record: only if the record is its own write. A retried vacate of an earlier
    /// term must not end the next one, even if both have the same holder.
    fn may_vacate(&self, record: &Record, mine: Mine<'_>) -> bool {
        self.is_ours(record, mine)
    }

    /// True if a vacate may be written while work may still run under the term. Never: the record lapses instead.
    fn vacates_under_work(&self) -> bool {
        false
    }

    /// True if the secret of a handle is that of the record; both may have none. The nonces are no proof: every reader of
    /// the record sees them.
    fn knows_secret(&self, recorded: Option<[u8; 32]>, own: Option<[u8; 32]>) -> bool {
        recorded == own
    }

    /// True if this handle is valid for the term in this record: only if the record is the exact write that the handle
    /// names. Of two copies of a handle, the one that is used first is valid.
    fn may_resume(&self, record: &Record, handle: &TermRef) -> bool {
        record.state == State::Held && (record.term, record.nonce) == (handle.term, handle.nonce)
    }

    /// True if a resumed handle believes before its renewal is applied. Never: its term may have been taken over since.
    fn resume_believes_at_once(&self) -> bool {
        false
    }

    /// Limit of the belief in a resumption that has landed: the deadline of its handle, which is before its own. The
    /// process that has the handle has stopped by then, and a lost lease never revives.
    fn resumable_until(&self, handle: Instant, own: Instant) -> Instant {
        handle.min(own)
    }

    /// True if a resumption that may have landed is vacated when it is given up. Never: the process that has the handle
    /// may act under the term until its deadline, and nothing asks it.
    fn vacates_doubtful_resume(&self) -> bool {
        false
    }

    // ── a failed renewal ──────────────────────────────────────────────────────────────────────────────────────────

    /// Pause of a holder before it calls the store again after a failed call; `None` if it is too late for another one.
    ///
    /// The pause is at least half a period, with a random part of up to the same length, so that holders spread. It is
    /// shorter in two cases: for the last call whose answer is certainly in time, and for the third call. A holder makes at
    /// most [`RENEWAL_CALLS`] failing calls in a row, however fast they fail.
    fn renewal_pause(&self, room: RenewalRoom, timing: &Timing, jitter: u32) -> Option<Duration> {
        let RenewalRoom { failures, until_last, until_stop } = room;
        let half = timing.period() / 2;
        let calls = RENEWAL_CALLS.saturating_sub(failures);
        if until_last.is_zero() {
            // An answer that takes its timeout comes too late, but most answers take less.
            let pause = if failures < 3 { half.min(until_stop / 2).max(timing.retry()) } else { half };
            return Some(pause).filter(|pause| calls > 0 && *pause < until_stop);
        }
        let least = half.max(until_last / calls.max(1));
        if until_last < 2 * least {
            return Some(until_last.max(timing.retry()));
        }
        // The last call has at least the same pause before it.
        Some(least + part_by_chance(least.min(until_last - 2 * least), jitter))
    }

    // ── credentials ───────────────────────────────────────────────────────────────────────────────────────────────

    /// Pause of a patient contender after this many denied answers in a row; `None` if it reports the denial. Credentials
    /// that are being rotated are wrong for some seconds, and at most for about a minute. Wrong ones stay wrong, and a person
    /// must learn that soon.
    fn pause_after_denied(&self, denials: u32, jitter: u32) -> Option<Duration> {
        let longest = DENIED_PAUSE * 2u32.pow(denials.clamp(1, DENIALS_MAX) - 1);
        (denials < DENIALS_MAX).then(|| half_by_chance(longest, jitter))
    }

    // ── stealing ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// True if a second stealer revokes a record that is already revoked. Never: a new version would restart the wait
    /// of every contender.
    fn revokes_again(&self) -> bool {
        false
    }

    /// True if a stealer waits after revoking. Always: for the acknowledgement, the old ttl, or the witness.
    fn waits_after_revoking(&self) -> bool {
        true
    }

    // ── work that cannot be stopped ───────────────────────────────────────────────────────────────────────────────

    /// True if this record says that the work under it cannot be stopped. Only if it says so of its own term: programs
    /// that do not know the field copy it into the records of later terms.
    fn is_unstoppable(&self, record: &Record) -> bool {
        record.cannot_stop().is_some()
    }

    /// True if such a term is revoked anyway. Never: its holder could only stop believing, but not stop the work. The
    /// stealer receives an error instead.
    fn revokes_unstoppable(&self) -> bool {
        false
    }

    /// True if the record of such a term is kept after its belief has ended, until the work has ended. Always: a record
    /// that runs out under running work gives the lease to another holder.
    fn keeps_unstoppable(&self) -> bool {
        true
    }

    // ── once per period ───────────────────────────────────────────────────────────────────────────────────────────

    /// True if a release records a success: only if the holder has reported one.
    fn counts_as_done(&self, succeeded: bool) -> bool {
        succeeded
    }

    /// Standing of the period that began with the latest success, by the store's time `now`. The wall clock never makes a run
    /// due. If it is far from the store's time, the store's clock may stand still, and the answer is [`Due::Unclear`] instead of
    /// a skip that never ends.
    fn due(&self, last: LastSuccess, period: Duration, now: StoreTime, wall: crate::WallTime) -> Due {
        let (began, now) = (u128::from(last.began.as_micros()), u128::from(now.as_micros()));
        let since = now.saturating_sub(began);
        // A period of zero ends the doubt about a wrong clock: the next success has the right time again.
        if period.is_zero() || (began <= now && since >= period.as_micros()) {
            return Due::Now;
        }
        let slack = (period / 20).max(SLACK_MIN);
        let ahead = duration_of(began.saturating_sub(now));
        if ahead > slack {
            return Due::Unclear(Doubt::SuccessAhead(ahead));
        }
        let apart = duration_of(now.abs_diff(u128::from(wall.as_millis()) * 1_000));
        if apart > slack {
            return Due::Unclear(Doubt::WallApart(apart));
        }
        let since = duration_of(since);
        Due::NotYet { since, left: period.saturating_sub(since).saturating_add(ahead) }
    }

    // ── fail closed ───────────────────────────────────────────────────────────────────────────────────────────────

    /// True if a record that is not fully understood may be overwritten, or a plain key by a lease. Never.
    fn overwrites_foreign(&self) -> bool {
        false
    }

    /// Time of a contender's next read of a held record: when the next renewal is `due` by the rhythm of the holder,
    /// and without a rhythm after the usual pause since the latest read was `sent`. It decides nothing but when to read.
    fn next_look(&self, due: Option<Instant>, sent: Instant, records: Ttl, jitter: u32) -> Instant {
        due.unwrap_or_else(|| sent + self.poll_after(records, jitter))
    }

    /// Pause between two reads without a rhythm: at most three reads per ttl of the record. Jitter shortens it a
    /// little, so that many contenders spread.
    fn poll_after(&self, records: Ttl, jitter: u32) -> Duration {
        earlier_by_chance(poll_period(records), jitter)
    }

    /// True if an observer that has shown the token `shown` may show `next`: never an older token.
    fn may_show(&self, shown: Token, next: Token) -> bool {
        next >= shown
    }
}

/// The correct rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Rules for Standard {}

/// Source of the floor of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The store has no clock that could give one.
    None,
    /// This time.
    At(StoreTime),
    /// The current answer has no time: read first.
    ReadFirst,
}

/// Proof that an outcome gives about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It happened.
    Done,
    /// It did not happen, and never will.
    NoEffect,
    /// Only a read back can tell.
    ReadBack,
    /// It did not happen because another holder was granted. No correct rule returns this without a read.
    Lost,
}

/// Standing of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A run may begin.
    Now,
    /// The latest success began this long ago, and a run may begin after the rest of the period.
    NotYet {
        /// Time since the latest success began.
        since: Duration,
        /// Time until the next run may begin.
        left: Duration,
    },
    /// Inconclusive.
    Unclear(Doubt),
}

/// Reason why the standing of a period is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// The clocks of the store and of this machine differ by this much: the store's clock may stand still.
    WallApart(Duration),
    /// The latest success began this far in the future: the store's clock was ahead, or went back.
    SuccessAhead(Duration),
    /// The answers of the store have no time, or an implausible one.
    NoTime,
}

/// Room for further calls of a holder after a failed one.
#[derive(Clone, Copy, Debug)]
pub struct RenewalRoom {
    /// Number of failed calls in a row.
    pub failures: u32,
    /// Time until the last call whose answer is in time even if every call takes a complete timeout.
    pub until_last: Duration,
    /// Time until the work must begin to stop.
    pub until_stop: Duration,
}

/// Facts by which a lease recognises its own records.
#[derive(Clone, Copy, Debug)]
pub struct Mine<'a> {
    /// The term, once there is one.
    pub term: Option<Nonce>,
    /// The writes whose outcome is not settled, and the latest confirmed one.
    pub attempts: &'a Attempts,
    /// The holder's name, which proves nothing.
    pub holder: &'a str,
}

/// The wall clocks of record and reader, which prove nothing.
#[derive(Clone, Copy, Debug)]
pub struct Walls {
    /// Time at which the record says it was written.
    pub written: crate::WallTime,
    /// The reader's own time.
    pub now: crate::WallTime,
}

fn duration_of(micros: u128) -> Duration {
    u64::try_from(micros).map_or(Duration::MAX, Duration::from_micros)
}

/// Least slack between the clocks of a store and a machine.
const SLACK_MIN: Duration = Duration::from_secs(60);

/// Longest time from one read to the next, with and without a rhythm, counted from when they are sent: without a rhythm at
/// most three reads per ttl of the record, even if jitter takes away a tenth.
pub(crate) fn poll_period(records: Ttl) -> Duration {
    records.as_duration() * 3 / 8
}

/// Shortest pause between an answer and the next read, however long the answer took. It is so short that also the slowest
/// read is followed by another one in time.
pub(crate) fn shortest_pause(records: Ttl) -> Duration {
    poll_period(records) / 8
}

/// Makes a duration up to a half shorter.
pub(crate) fn half_by_chance(span: Duration, jitter: u32) -> Duration {
    span / 2 + part_by_chance(span / 2, jitter)
}

/// Makes a duration up to a tenth shorter.
pub(crate) fn earlier_by_chance(span: Duration, jitter: u32) -> Duration {
    span - part_by_chance(span / JITTER_PART, jitter)
}

/// A random part of a duration.
pub(crate) fn part_by_chance(span: Duration, jitter: u32) -> Duration {
    Duration::from_nanos(((span.as_nanos() * u128::from(jitter)) >> 32) as u64)
}

/// Jitter takes away at most one part in this many.
pub(crate) const JITTER_PART: u32 = 10;

/// Maximum number of failing calls of a holder in a row. Behind the last of them, a read may be followed by a write.
pub const RENEWAL_CALLS: u32 = 5;

/// Number of denied answers in a row after which a patient contender reports the denial.
const DENIALS_MAX: u32 = 7;

/// Longest pause after the first denied answer. It doubles after each: all pauses together take half a minute to a minute.
const DENIED_PAUSE: Duration = Duration::from_secs(1);

/// True for a store time from 2020 up to 2200. Any other is from a clock that was never set, or is nonsense.
pub fn is_plausible(time: StoreTime) -> bool {
    (YEAR_2020..YEAR_2200).contains(&time.as_micros())
}

/// The year 2020, in microseconds since 1970.
pub const YEAR_2020: u64 = 1_577_836_800_000_000;
const YEAR_2200: u64 = 7_258_118_400_000_000;
