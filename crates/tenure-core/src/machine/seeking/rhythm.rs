use std::time::Duration;

use crate::Instant;
use crate::machine::rules::{part_by_chance, poll_period};
use crate::record::{Nonce, Record, Ttl};

/// Rhythm of a holder's renewals, as a contender has seen it.
///
/// A contender counts the ttl from the answer that first showed the last version. If it reads just after each renewal, it
/// takes over about one ttl after the last one; at a random phase, up to three eighths of a ttl later.
///
/// The rhythm is learned from the numbers of the versions. It only schedules reads: with a wrong rhythm a contender reads
/// too early or too late, and judges no version differently. A renewal that does not come is looked for once more; then
/// the contender reads as often as without a rhythm.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    /// The latest version.
    latest: Option<Beat>,
    /// Average time between two renewals.
    period: Duration,
    /// Time of the read that should show the next renewal; `None` without a rhythm.
    due: Option<Instant>,
    /// Number of reads since then that did not show it.
    in_vain: u32,
    /// True if a read was just before a renewal: the next ones are just after it.
    in_phase: bool,
    /// The latest answers, the oldest first.
    answers: [Option<Instant>; ANSWERS],
}

/// A version, and the answer that showed it first.
#[derive(Clone, Copy, Debug)]
struct Beat {
    term: Nonce,
    sequence: u64,
    seen: Instant,
}

impl Rhythm {
    /// Time of the next read; `None` without a rhythm.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// An answer that arrived at `seen` showed this record. If a hint caused the read, the store may hint at every renewal:
    /// the contender then needs no rhythm.
    pub(super) fn saw(&mut self, record: &Record, (seen, hinted): (Instant, bool), ttl: Ttl, jitter: u32) {
        if self.answers[ANSWERS - 1] != Some(seen) {
            self.answers.rotate_left(1);
            self.answers[ANSWERS - 1] = Some(seen);
        }
        let beat = Beat { term: record.term, sequence: record.sequence, seen };
        let latest = self.latest.filter(|latest| latest.term == beat.term);
        match latest {
            Some(latest) if latest.sequence == beat.sequence => {
                return self.saw_no_renewal((seen, hinted), ttl, jitter);
            }
            Some(latest) => self.saw_renewal(latest, beat, ttl),
            // Most holders renew each third of the ttl, or up to a tenth earlier.
            None => {
                let (period, answers) = (ttl.as_duration() * 19 / 60, self.answers);
                *self = Self { period, answers, ..Self::default() };
            }
        }
        self.latest = Some(beat);
        self.in_vain = 0;
        self.due = (!hinted).then(|| seen + self.pause(ttl, jitter));
    }

    fn saw_renewal(&mut self, latest: Beat, beat: Beat, ttl: Ttl) {
        self.in_phase &= self.in_vain <= TRIES;
        let renewals = u32::try_from(beat.sequence.saturating_sub(latest.sequence)).unwrap_or(u32::MAX);
        let observed = beat.seen.since(latest.seen) / renewals.max(1);
        // A surprise says more than a small difference, which is chance.
        let part = if observed.abs_diff(self.period) < self.period / 4 { 4 } else { 2 };
        let learned = (self.period * (part - 1) + observed) / part;
        self.period = learned.clamp(ttl.as_duration() / 20, ttl.as_duration() * 3 / 5);
    }

    fn saw_no_renewal(&mut self, (seen, hinted): (Instant, bool), ttl: Ttl, jitter: u32) {
        if hinted {
            self.due = None;
        }
        // The same answer again, or a read for another reason, says nothing about the rhythm.
        if self.due.is_none_or(|due| seen < due) {
            return;
        }
        self.in_vain += 1;
        self.in_phase |= self.in_vain <= TRIES;
        let again = self.period / 8 + part_by_chance(self.period / 40, jitter);
        // Against a holder that renews at random times, a read more would often be in vain.
        let many = self.answers[0].is_some_and(|oldest| seen.since(oldest) < ttl.as_duration() * 2);
        self.due = (self.in_vain <= TRIES && !many).then(|| seen + again);
    }

    /// Pause until the read after the next renewal, or after several of them if the holder renews often.
    ///
    /// Jitter makes each renewal up to a tenth earlier. A pause of the average period would shift the reads away from the
    /// renewals without notice, so the pause is a little shorter: now and then a read is just before a renewal, and the
    /// next one soon after it. A contender that had no such read yet approaches the renewals in larger steps.
    fn pause(&self, ttl: Ttl, jitter: u32) -> Duration {
        let renewals = (poll_period(ttl).as_nanos() / self.period.as_nanos().max(1)).max(1) as u32;
        let earlier = if self.in_phase { self.period / 100 } else { self.period / 10 };
        self.period * renewals - earlier - part_by_chance(self.period / 100, jitter)
    }
}

/// Number of further reads for a renewal that did not come.
const TRIES: u32 = 1;

/// After so many answers within two ttl, a missing renewal is not looked for: a contender makes about five calls per ttl at
/// most.
const ANSWERS: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Token, WallTime};

    const TTL: Duration = Duration::from_secs(60);

    fn ttl() -> Ttl {
        Ttl::from_millis(60_000).unwrap()
    }

    /// A holder that renews with this period, up to a tenth earlier, until it dies.
    struct History {
        written: Vec<Instant>,
        chance: fastrand::Rng,
    }

    impl History {
        fn new(period: Duration, lasts: Duration, seed: u64) -> Self {
            let mut chance = fastrand::Rng::with_seed(seed);
            let (mut written, mut at) = (Vec::new(), Instant::from_nanos(1));
            while at < Instant::from_nanos(0) + lasts {
                written.push(at);
                at = at + period - part_by_chance(period / 10, chance.u32(..));
            }
            Self { written, chance }
        }

        fn record(&self, at: Instant) -> Record {
            let mut record = Record::new(Token::ZERO, Nonce::from_bits(7), WallTime::default());
            record.term = Nonce::from_bits(1);
            record.sequence = self.written.iter().filter(|written| **written <= at).count() as u64;
            record
        }

        /// Lets a contender read from a random phase on. Time from the last renewal to the first answer that showed it, and
        /// the reads until then, both per ttl.
        fn contend(&mut self) -> (f64, f64) {
            let ttl = ttl();
            let (last, mut reads) = (*self.written.last().unwrap(), 0);
            let mut rhythm = Rhythm::default();
            let mut now = Instant::from_nanos(0) + part_by_chance(TTL / 3, self.chance.u32(..));
            loop {
                reads += 1;
                rhythm.saw(&self.record(now), (now, false), ttl, self.chance.u32(..));
                if now >= last {
                    let per_ttl = now.as_nanos() as f64 / TTL.as_nanos() as f64;
                    return (now.since(last).as_secs_f64() / TTL.as_secs_f64(), f64::from(reads) / per_ttl);
                }
                now = rhythm.due().unwrap_or(now + poll_period(ttl));
            }
        }
    }

    /// Sorted delays and the average number of reads of many contenders.
    fn contenders(period: Duration, terms: u32) -> (Vec<f64>, f64) {
        let runs: Vec<_> = (0..400).map(|seed| History::new(period, TTL * terms, seed).contend()).collect();
        let mut delays: Vec<_> = runs.iter().map(|(delay, _)| *delay).collect();
        delays.sort_by(f64::total_cmp);
        (delays, runs.iter().map(|(_, reads)| reads).sum::<f64>() / runs.len() as f64)
    }

    #[test]
    fn a_contender_sees_each_renewal_soon_after_it_was_written() {
        let (delays, reads) = contenders(TTL / 3, 14);
        assert!(delays[200] < 0.04 && delays[395] < 0.1, "{} {}", delays[200], delays[395]);
        assert!(reads <= 4.0, "{reads} reads per ttl");
    }

    #[test]
    fn a_contender_is_in_phase_after_three_ttl() {
        let (delays, reads) = contenders(TTL / 3, 3);
        assert!(delays[200] < 0.04 && delays[360] < 0.1, "{} {}", delays[200], delays[360]);
        assert!(reads <= 5.0, "{reads} reads per ttl");
    }

    #[test]
    fn the_period_is_learned_whatever_the_holder_chose() {
        for (period, reads_max) in [(TTL * 9 / 20, 4.0), (TTL / 4, 5.1), (TTL / 10, 4.0)] {
            let (delays, reads) = contenders(period, 14);
            assert!(delays[200] < 0.19, "{period:?}: {}", delays[200]);
            assert!(reads <= reads_max, "{period:?}: {reads} reads per ttl");
        }
    }

    #[test]
    fn a_renewal_that_does_not_come_is_looked_for_once_more() {
        let history = History::new(TTL / 3, TTL, 7);
        let ttl = ttl();
        let mut rhythm = Rhythm::default();
        let mut now = *history.written.last().unwrap();
        let mut pauses = Vec::new();
        while let Some(due) = {
            rhythm.saw(&history.record(now), (now, false), ttl, 0);
            rhythm.due()
        } {
            pauses.push(due.since(now));
            now = due;
        }
        assert_eq!(pauses.len(), 2, "{pauses:?}");
        assert!(pauses[1..].iter().all(|pause| *pause < TTL / 20), "{pauses:?}");
    }

    #[test]
    fn a_store_with_hints_needs_no_rhythm() {
        let history = History::new(TTL / 3, TTL, 7);
        let ttl = ttl();
        let mut rhythm = Rhythm::default();
        let now = *history.written.last().unwrap();
        rhythm.saw(&history.record(now), (now, false), ttl, 0);
        assert!(rhythm.due().is_some());
        rhythm.saw(&history.record(now), (now + TTL / 10, true), ttl, 5);
        assert_eq!(rhythm.due(), None);
    }
}
