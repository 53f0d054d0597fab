use std::time::Duration;

use crate::machine::rules::{part_by_chance, poll_period};
use crate::record::{Nonce, Record, Ttl};
use crate::{Instant, WallTime};

/// Rhythm of a holder's renewals, as a contender has seen it.
///
/// A contender counts the ttl from the answer that first showed the last version. If it reads just after each renewal, it
/// takes over about one ttl after the last one; at a random phase, up to three eighths of a ttl later.
///
/// The rhythm is learned from the numbers of the versions, and from the times between them by the wall clock of the holder
/// that wrote them. Only differences of its times count: no clock is compared with another one. The rhythm only schedules
/// reads: with a wrong rhythm a contender reads too early or too late, and judges no version differently. A renewal that
/// does not come is looked for twice more; then the contender reads as often as without a rhythm.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    /// The latest version.
    latest: Option<Beat>,
    /// Average time between two renewals.
    period: Duration,
    /// The latest version was written between these instants, as far as is known.
    written: Span,
    /// Time of the read that should show the next renewal; `None` without a rhythm.
    due: Option<Instant>,
    /// Number of reads since then that did not show it.
    in_vain: u32,
    /// True if the latest answer found this contender in a crowd.
    in_crowd: bool,
    /// Time at which the latest read was sent.
    sent: Option<Instant>,
    /// Arrival of the latest answer.
    answered: Option<Instant>,
    /// Time until which the reads so far are enough.
    read_until: Instant,
}

/// A version of a term.
#[derive(Clone, Copy, Debug)]
struct Beat {
    term: Nonce,
    sequence: u64,
    written_at: WallTime,
}

/// Two instants on the contender's own clock.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    from: Instant,
    to: Instant,
}

/// An answer to a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) sent: Instant,
    pub(super) returned: Instant,
    /// Time for which one read is enough on average, by a clock that may be fast.
    pub(super) lasts: Duration,
    /// True if a hint caused the read.
    pub(super) hinted: bool,
    /// True if other contenders were faster recently.
    pub(super) in_crowd: bool,
}

impl Rhythm {
    /// Time of the next read; `None` without a rhythm.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// An answer showed this record.
    ///
    /// If a hint caused the read, the store may hint at every renewal: the contender then needs no rhythm. One of many
    /// contenders does without one, too. It reads once at a random phase, and then each poll period: together they see each
    /// renewal soon.
    pub(super) fn saw(&mut self, record: &Record, answer: Answer, ttl: Ttl, jitter: u32) {
        if self.answered.replace(answer.returned) == Some(answer.returned) {
            return;
        }
        self.read_until = self.read_until.max(answer.returned) + answer.lasts;
        let previous = self.sent.replace(answer.sent);
        let was_in_crowd = std::mem::replace(&mut self.in_crowd, answer.in_crowd);
        let beat = Beat { term: record.term, sequence: record.sequence, written_at: record.written_at };
        let latest = self.latest.filter(|latest| latest.term == beat.term);
        match latest {
            Some(latest) if latest.sequence == beat.sequence => {
                return self.saw_no_renewal(answer, ttl, jitter);
            }
            Some(latest) => self.saw_renewal(latest, beat, previous, answer.returned, ttl),
            // Most holders renew each third of the ttl, or up to a tenth earlier.
            None => {
                self.period = ttl.as_duration() * 19 / 60;
                let from = answer.returned - self.period;
                let from = previous.map_or(from, |previous| previous.max(from));
                self.written = Span { from, to: answer.returned };
            }
        }
        self.latest = Some(beat);
        self.in_vain = 0;
        self.due = match latest {
            _ if answer.hinted || self.reads_often(answer.returned, ttl) => None,
            None if answer.in_crowd && !was_in_crowd => {
                let look = answer.returned + part_by_chance(poll_period(ttl), jitter);
                Some(look.min(answer.sent + poll_period(ttl)))
            }
            _ if answer.in_crowd => None,
            _ => Some(self.after_next_renewal(answer.sent, ttl, jitter)),
        };
    }

    /// The version is younger than the `previous` read, which did not show it, and it follows the one before by as much as
    /// the holder's clock says.
    fn saw_renewal(&mut self, latest: Beat, beat: Beat, previous: Option<Instant>, seen: Instant, ttl: Ttl) {
        let renewals =
            u32::try_from(beat.sequence.saturating_sub(latest.sequence)).unwrap_or(u32::MAX).max(1);
        let between = beat.written_at.as_millis().saturating_sub(latest.written_at.as_millis());
        let between = Duration::from_millis(between);
        let observed = between / renewals;
        // The holder may have failed to renew in time, its clock may have been set, or it has another period than most.
        let surprise = observed.abs_diff(self.period) >= self.period / 4;
        let shown = Span { from: previous.unwrap_or(self.written.from), to: seen };
        // Clocks differ in their rates.
        let drift = self.period.saturating_mul(renewals) / 128;
        let from = shown.from.max(self.written.from + between - drift);
        let to = shown.to.min(self.written.to + between);
        self.written = if surprise || from > to { shown } else { Span { from, to } };
        let part = if surprise { 2 } else { 4 };
        let learned = (self.period * (part - 1) + observed) / part;
        self.period = learned.clamp(ttl.as_duration() / 20, ttl.as_duration() * 3 / 5);
    }

    fn saw_no_renewal(&mut self, answer: Answer, ttl: Ttl, jitter: u32) {
        if answer.hinted || answer.in_crowd {
            self.due = None;
        }
        let seen = answer.returned;
        // A read for another reason says nothing about the rhythm.
        if self.due.is_none_or(|due| seen < due) {
            return;
        }
        self.in_vain += 1;
        let late = part_by_chance(self.period / 20, jitter);
        let rest = (self.written.to + self.period * self.renewals_per_read(ttl)).since(seen);
        let again = (rest * 7 / 10).max(self.period / 8) + late;
        let look = (seen + again).min(answer.sent + poll_period(ttl));
        self.due = (self.in_vain <= TRIES && !self.reads_often(seen, ttl)).then_some(look);
    }

    /// Time of the read after the next renewal, or after several of them if the holder renews often.
    ///
    /// Each read that shows a renewal, or does not show it yet, narrows the span in which it was written. So the read is in
    /// the later part of that span: half of a wide span is soon excluded, and most reads show a renewal. Jitter makes a
    /// renewal up to a tenth earlier. Chance spreads the reads of contenders that do not know of each other.
    fn after_next_renewal(&self, sent: Instant, ttl: Ttl, jitter: u32) -> Instant {
        let written = self.written.from + self.written.to.since(self.written.from) * 7 / 10;
        let late = self.period / 50 + part_by_chance(self.period * 3 / 20, jitter);
        let look = written + self.period * self.renewals_per_read(ttl) + late;
        look.min(sent + poll_period(ttl))
    }

    /// True if the contender has read often lately, as against a holder that renews at random times. The next read then
    /// comes after the poll period, so that a contender makes at most five calls per ttl.
    fn reads_often(&self, seen: Instant, ttl: Ttl) -> bool {
        self.read_until.since(seen) > ttl.as_duration() / 2
    }

    fn renewals_per_read(&self, ttl: Ttl) -> u32 {
        (poll_period(ttl).as_nanos() / self.period.as_nanos().max(1)).max(1) as u32
    }
}

/// Number of further reads for a renewal that did not come.
const TRIES: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Token;
    use crate::machine::rules::shortest_pause;

    const TTL: Duration = Duration::from_secs(60);
    const CALL: Duration = Duration::from_millis(100);

    /// The first version is written now.
    const GRANTED: Instant = Instant::from_nanos(1_000_000_000_000);

    fn ttl() -> Ttl {
        Ttl::from_millis(60_000).unwrap()
    }

    /// A holder that renews with this period, up to a tenth earlier, until it dies.
    struct History {
        written: Vec<Instant>,
        /// Its wall clock is this much ahead of the instants above, from the second half of its life on.
        stepped: Duration,
        chance: fastrand::Rng,
    }

    impl History {
        fn new(period: Duration, lasts: Duration, seed: u64) -> Self {
            let mut chance = fastrand::Rng::with_seed(seed);
            let (mut written, mut at) = (Vec::new(), GRANTED);
            while at < GRANTED + lasts {
                written.push(at);
                at = at + period - part_by_chance(period / 10, chance.u32(..));
            }
            Self { written, stepped: Duration::ZERO, chance }
        }

        fn last(&self) -> Instant {
            *self.written.last().unwrap()
        }

        fn record(&self, at: Instant) -> Record {
            let sequence = self.written.iter().filter(|written| **written <= at).count();
            let stepped = if sequence > self.written.len() / 2 { self.stepped } else { Duration::ZERO };
            let wall = self.written[sequence - 1] + stepped + Duration::from_secs(1_700_000_000);
            let wall = WallTime::from_millis(wall.as_nanos() / 1_000_000);
            let mut record = Record::new(Token::ZERO, Nonce::from_bits(7), wall);
            record.term = Nonce::from_bits(1);
            record.sequence = sequence as u64;
            record
        }

        /// Lets a contender read from a random phase on. Time from the last renewal to the first answer that showed it, and
        /// the reads until then, both per ttl.
        fn contend(&mut self) -> (f64, f64) {
            let ttl = ttl();
            let (last, mut reads) = (self.last(), 0);
            let mut rhythm = Rhythm::default();
            let mut now = GRANTED + part_by_chance(TTL / 3, self.chance.u32(..));
            loop {
                reads += 1;
                rhythm.saw(&self.record(now), answer(now), ttl, self.chance.u32(..));
                if now >= last {
                    let per_ttl = now.since(GRANTED).as_secs_f64() / TTL.as_secs_f64();
                    return (now.since(last).as_secs_f64() / TTL.as_secs_f64(), f64::from(reads) / per_ttl);
                }
                let look = rhythm.due().unwrap_or(now + poll_period(ttl));
                now = look.max(now + CALL + shortest_pause(ttl));
            }
        }
    }

    /// The answer to a read that the store served now.
    fn answer(now: Instant) -> Answer {
        let lasts = TTL * 5 / 24;
        Answer { sent: now - CALL, returned: now + CALL, lasts, hinted: false, in_crowd: false }
    }

    /// Sorted delays and the average number of reads of many contenders.
    fn contenders(period: Duration, terms: u32, stepped: Duration) -> (Vec<f64>, f64) {
        let history = |seed| History { stepped, ..History::new(period, TTL * terms, seed) };
        let runs: Vec<_> = (0..400).map(|seed| history(seed).contend()).collect();
        let mut delays: Vec<_> = runs.iter().map(|(delay, _)| *delay).collect();
        delays.sort_by(f64::total_cmp);
        (delays, runs.iter().map(|(_, reads)| reads).sum::<f64>() / runs.len() as f64)
    }

    #[test]
    fn a_contender_sees_each_renewal_soon_after_it_was_written() {
        let (delays, reads) = contenders(TTL / 3, 14, Duration::ZERO);
        assert!(delays[200] < 0.04 && delays[395] < 0.08, "{} {}", delays[200], delays[395]);
        assert!(reads <= 3.8, "{reads} reads per ttl");
    }

    #[test]
    fn a_contender_is_in_phase_after_two_ttl() {
        let (delays, reads) = contenders(TTL / 3, 2, Duration::ZERO);
        assert!(delays[200] < 0.05 && delays[360] < 0.1, "{} {}", delays[200], delays[360]);
        assert!(reads <= 4.5, "{reads} reads per ttl");
    }

    #[test]
    fn the_period_is_learned_whatever_the_holder_chose() {
        for (period, reads_max) in [(TTL * 9 / 20, 4.5), (TTL / 4, 4.8), (TTL / 10, 5.1)] {
            let (delays, reads) = contenders(period, 14, Duration::ZERO);
            assert!(delays[200] < 0.19, "{period:?}: {}", delays[200]);
            assert!(reads <= reads_max, "{period:?}: {reads} reads per ttl");
        }
    }

    #[test]
    fn a_wall_clock_that_is_set_costs_some_reads_and_not_the_rhythm() {
        for stepped in [TTL / 12, TTL / 3, TTL * 1_000] {
            let (delays, reads) = contenders(TTL / 3, 14, stepped);
            assert!(delays[200] < 0.06 && delays[395] < 0.12, "{} {}", delays[200], delays[395]);
            assert!(reads <= 4.0, "{reads} reads per ttl");
        }
    }

    #[test]
    fn a_renewal_that_does_not_come_is_looked_for_twice_more() {
        let mut history = History::new(TTL / 3, TTL * 6, 7);
        let ttl = ttl();
        let mut rhythm = Rhythm::default();
        let mut now = GRANTED;
        let mut pauses = Vec::new();
        loop {
            rhythm.saw(&history.record(now), answer(now), ttl, history.chance.u32(..));
            let look = match rhythm.due() {
                None if now > history.last() => break,
                due => due.unwrap_or(now + poll_period(ttl)).max(now + CALL + shortest_pause(ttl)),
            };
            if now > history.last() {
                pauses.push(look.since(now));
            }
            now = look;
        }
        assert_eq!(pauses.len(), 3, "{pauses:?}");
        assert!(pauses[1..].iter().all(|pause| *pause < TTL / 20), "{pauses:?}");
    }

    #[test]
    fn a_renewal_that_comes_late_restarts_the_search() {
        let history = History::new(TTL / 3, TTL, 7);
        let ttl = ttl();
        let mut rhythm = Rhythm::default();
        let mut late = history.record(GRANTED);
        let mut now = history.last();
        while {
            rhythm.saw(&late, answer(now), ttl, 0);
            rhythm.due().is_some()
        } {
            now = now + TTL / 3;
        }
        late.sequence += 1;
        rhythm.saw(&late, answer(now + TTL / 3), ttl, 0);
        assert!(rhythm.due().is_some());
    }

    #[test]
    fn a_read_is_never_later_than_without_a_rhythm() {
        for period in [TTL / 30, TTL / 10, TTL / 3, TTL * 9 / 10] {
            let mut history = History::new(period, TTL * 14, 7);
            let ttl = ttl();
            let mut rhythm = Rhythm::default();
            let mut now = GRANTED;
            while now < history.last() {
                rhythm.saw(&history.record(now), answer(now), ttl, history.chance.u32(..));
                let next = rhythm.due().unwrap_or(now + poll_period(ttl));
                assert!(next.since(now) <= poll_period(ttl), "{:?}", next.since(now));
                now = next;
            }
        }
    }

    #[test]
    fn one_of_many_contenders_reads_at_a_random_phase() {
        let mut history = History::new(TTL / 3, TTL * 2, 7);
        let ttl = ttl();
        let in_crowd = |now| Answer { in_crowd: true, ..answer(now) };
        let mut pauses: Vec<_> = (0..100)
            .map(|_| {
                let mut rhythm = Rhythm::default();
                rhythm.saw(&history.record(GRANTED), in_crowd(GRANTED), ttl, history.chance.u32(..));
                let first = rhythm.due().unwrap();
                rhythm.saw(&history.record(first), in_crowd(first), ttl, history.chance.u32(..));
                assert_eq!(rhythm.due(), None, "then it reads as often as without a rhythm");
                first.since(GRANTED)
            })
            .collect();
        pauses.sort();
        assert!(pauses[20] < TTL / 10 && pauses[80] > TTL / 4, "{pauses:?}");
    }

    #[test]
    fn a_store_with_hints_needs_no_rhythm() {
        let history = History::new(TTL / 3, TTL, 7);
        let ttl = ttl();
        let mut rhythm = Rhythm::default();
        let now = history.last();
        rhythm.saw(&history.record(now), answer(now), ttl, 0);
        assert!(rhythm.due().is_some());
        let hinted = Answer { hinted: true, ..answer(now + TTL / 10) };
        rhythm.saw(&history.record(now), hinted, ttl, 5);
        assert_eq!(rhythm.due(), None);
    }
}
