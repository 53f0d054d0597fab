use std::sync::Arc;

use tenure_store::{StoreClock, StoreTime, Version};

use super::in_flight::SentWrite;
use super::own_writes::OwnWrites;
use super::rules::{Walls, is_plausible};
use super::{Ambient, Attempt, Content, Look, Rules};
use crate::record::Nonce;
use crate::{Instant, Token, WallTime};

/// The answers of the store about one key that this process has seen. All its leases of the key share them.
#[derive(Clone, Debug)]
pub struct Sightings {
    highest: Token,
    latest: Option<Seen>,
    recalled: Option<Recalled>,
    own_writes: OwnWrites,
}

/// A version that was seen earlier, on the same clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// The version.
    pub version: Version,
    /// The nonce of the record that had it.
    pub nonce: Nonce,
    /// Instant from which the wait for this version counts.
    pub from: Instant,
}

/// The latest answer that showed the key.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The content that it showed.
    pub content: Content,
    /// Instant from which the wait for this exact version counts.
    pub from: Instant,
    /// Time at which the request was sent.
    pub sent: Instant,
    /// Time at which the answer arrived.
    pub returned: Instant,
    /// The store's time in that answer.
    pub time: Option<StoreTime>,
    /// The store's time in the first answer that showed this exact version. The version is not younger.
    pub first_time: Option<StoreTime>,
    /// The greatest token that had been seen when the request was sent, if this answer shows less.
    pub went_back: Option<Token>,
}

impl Seen {
    /// The store's time at this instant: the time in the answer, and the time since it arrived by the own clock.
    pub(crate) fn store_time_at(&self, now: Instant) -> Option<StoreTime> {
        let since = u64::try_from(now.since(self.returned).as_micros()).ok()?;
        let time = self.time.filter(|time| is_plausible(*time))?;
        time.as_micros().checked_add(since).map(StoreTime::from_micros)
    }
}

impl Default for Sightings {
    /// Nothing was seen.
    fn default() -> Self {
        Self { highest: Token::ZERO, latest: None, recalled: None, own_writes: OwnWrites::default() }
    }
}

impl Sightings {
    /// The latest answer, if there was one.
    pub fn latest(&self) -> Option<&Seen> {
        self.latest.as_ref()
    }

    /// The greatest token seen.
    pub fn highest(&self) -> Token {
        self.highest
    }

    /// Sets a sighting from before this process first read the key. It counts for the first answer, if that shows the
    /// exact same version. Later answers count from what this process itself has seen.
    pub fn recall(&mut self, recalled: Recalled) {
        self.recalled = Some(recalled);
    }

    /// Records the answer to a read that was sent at `sent`, when `before` was the greatest token seen.
    pub(crate) fn note_read(
        &mut self,
        rules: &dyn Rules,
        clock: StoreClock,
        (sent, before): (Instant, Token),
        look: Look,
        ambient: &Ambient,
    ) {
        let returned = ambient.now;
        let observed = rules.observed_from(sent, returned);
        let aged = aged_from(rules, &look, clock, returned, ambient.wall);
        let from = aged.map_or(observed, |aged| aged.min(observed));
        let Look { content, time, .. } = look;
        let seen = Seen { content, from, sent, returned, time, first_time: time, went_back: None };
        self.note(rules, before, seen);
    }

    /// Records that an own write was applied, and left this version behind.
    pub(crate) fn note_write(
        &mut self,
        rules: &dyn Rules,
        write: &SentWrite,
        version: &Version,
        time: Option<StoreTime>,
        ambient: &Ambient,
    ) {
        let returned = ambient.now;
        let before = self.latest().and_then(|seen| seen.time);
        let time = rules.time_of_write(before, time);
        let seen = Seen {
            content: Content::Record(Arc::clone(&write.record), version.clone()),
            from: returned,
            sent: write.attempt.sent,
            returned,
            time,
            first_time: time,
            went_back: None,
        };
        self.note(rules, write.highest, seen);
    }

    /// Records that this own write of a plain key is sent now.
    pub(crate) fn note_sent(&mut self, attempt: &Attempt) {
        self.own_writes.sends(attempt.nonce, attempt.sent);
    }

    /// Records that this own write of a plain key was applied.
    pub(crate) fn note_applied(&mut self, attempt: &Attempt) {
        self.own_writes.applied(attempt.nonce);
    }

    /// Earliest instant at which this version may have been written, as far as this process knows. The answer to an own
    /// write, or the read that found it, may have come much later.
    pub(crate) fn written_from(&self, seen: &Seen) -> Instant {
        let own = seen.identity().and_then(|(_, nonce)| self.own_writes.sent(nonce));
        own.into_iter().fold(seen.from.min(seen.sent), Instant::min)
    }

    /// Records an answer that showed the key. `before` is the greatest token seen when the request was sent. A later
    /// answer that shows more may overtake this one, but the key itself never shows less later.
    fn note(&mut self, rules: &dyn Rules, before: Token, mut seen: Seen) {
        let shown = seen.token().unwrap_or(Token::ZERO);
        if shown < before && !seen.is_foreign() {
            seen.went_back = Some(before);
        }
        if let Some(identity) = seen.identity() {
            let latest = self.latest.as_ref().and_then(|latest| Some((latest.identity()?, latest.from)));
            let is_same = latest.is_some_and(|(latest, _)| rules.same_observation(latest, identity));
            let recalled = self.recalled.as_ref().map(|recalled| (recalled.identity(), recalled.from));
            let earlier = [latest, recalled].into_iter().flatten();
            let same = earlier.filter(|(earlier, _)| rules.same_observation(*earlier, identity));
            seen.from = same.fold(seen.from, |from, (_, earlier)| from.min(earlier));
            let first = self.latest.as_ref().filter(|_| is_same).and_then(|latest| latest.first_time);
            seen.first_time = first.filter(|time| is_plausible(*time)).or(seen.first_time);
        }
        self.recalled = None;
        self.highest = self.highest.max(shown);
        self.latest = Some(seen);
    }
}

impl Seen {
    /// The token that it showed.
    pub fn token(&self) -> Option<Token> {
        match &self.content {
            Content::Record(record, _) => Some(record.token),
            Content::Absent | Content::Foreign { .. } => None,
        }
    }

    /// True if it showed a planted record, which was never granted.
    pub fn is_planted(&self) -> bool {
        matches!(&self.content, Content::Record(record, _) if record.term == Nonce::ZERO)
    }

    /// Identity of the observed version: no other version has the same.
    pub fn identity(&self) -> Option<(&Version, Nonce)> {
        match &self.content {
            Content::Record(record, version) => Some((version, record.nonce)),
            Content::Absent | Content::Foreign { .. } => None,
        }
    }

    /// The part of it that the next process can recall.
    pub fn to_recall(&self) -> Option<Recalled> {
        let (version, nonce) = self.identity()?;
        Some(Recalled { version: version.clone(), nonce, from: self.from })
    }

    fn is_foreign(&self) -> bool {
        matches!(self.content, Content::Foreign { .. })
    }
}

impl Recalled {
    /// Identity of the version: no other version has the same.
    pub(super) fn identity(&self) -> (&Version, Nonce) {
        (&self.version, self.nonce)
    }
}

/// Instant since which the store itself knows the version that a read showed, if the store reports it.
pub(super) fn aged_from(
    rules: &dyn Rules,
    look: &Look,
    clock: StoreClock,
    returned: Instant,
    wall: WallTime,
) -> Option<Instant> {
    let Content::Record(record, _) = &look.content else { return None };
    let walls = Walls { written: record.written_at, now: wall };
    rules.aged_from(returned, look.age, clock, walls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Standard;
    use crate::record::Record;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn seen(version: &str, nonce: u128, when: u64) -> Seen {
        let nonce = Nonce::from_bits(nonce);
        let record = Arc::new(Record::new(Token::ZERO, nonce, WallTime::default()));
        let content = Content::Record(record, Version::new(version));
        let (from, time) = (at(when), None);
        Seen { content, from, sent: from, returned: from, time, first_time: time, went_back: None }
    }

    /// Instant from which a process counts after these answers, if it recalls version `v` with nonce 7 from second 3.
    fn counts_from(answers: &[(&str, u128, u64)]) -> Instant {
        let mut sightings = Sightings::default();
        let nonce = Nonce::from_bits(7);
        sightings.recall(Recalled { version: Version::new("v"), nonce, from: at(3) });
        for (version, nonce, when) in answers {
            sightings.note(&Standard, Token::ZERO, seen(version, *nonce, *when));
        }
        sightings.latest().unwrap().from
    }

    #[test]
    fn what_is_recalled_counts_for_the_very_version_and_only_moves_the_beginning_back() {
        assert_eq!(counts_from(&[("v", 7, 9)]), at(3));
        assert_eq!(counts_from(&[("v", 7, 9), ("v", 7, 11)]), at(3));
        assert_eq!(counts_from(&[("v", 7, 2)]), at(2), "no process saw it later than now");
        assert_eq!(counts_from(&[("w", 7, 9)]), at(9));
        assert_eq!(counts_from(&[("v", 8, 9)]), at(9));
    }

    #[test]
    fn what_is_recalled_counts_for_the_first_answer_alone() {
        assert_eq!(counts_from(&[("w", 8, 9), ("v", 7, 11)]), at(11));
    }
}
