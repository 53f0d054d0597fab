//! Result of a run.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tenure::Timing;

use super::arena::{Arena, Size};
use super::book::{Entry, judge};
use super::tally::Tally;

/// The faults of a run, and their consequences.
#[derive(Debug)]
pub(crate) struct Outcome {
    size: Size,
    tally: Tally,
    took: Duration,
    /// Violations that must never occur.
    wrong: Vec<String>,
    /// Errors that should not have occurred.
    odd: Vec<String>,
    /// For each key, the time from the end of the faults until it was held again, if it was.
    held_again: Vec<Option<Duration>>,
    grants: usize,
    looks: usize,
    accepted: usize,
    stale: usize,
    lost: u64,
    denied: u64,
    dropped: u64,
}

impl Outcome {
    pub(crate) fn new(arena: &Arena, size: Size, took: Duration, held_again: Vec<Option<Duration>>) -> Self {
        let mut outcome = Self {
            size,
            tally: arena.tally(),
            took,
            wrong: Vec::new(),
            odd: arena.odd.lock().unwrap().clone(),
            held_again,
            grants: 0,
            looks: 0,
            accepted: 0,
            stale: 0,
            lost: arena.lost.load(Relaxed),
            denied: arena.denied.load(Relaxed),
            dropped: arena.dropped.load(Relaxed),
        };
        for (key, book) in arena.books() {
            let entries = book.entries();
            outcome.wrong.extend(judge(&entries).into_iter().map(|why| format!("{key}: {why}")));
            for entry in entries {
                match entry {
                    Entry::Granted { .. } => outcome.grants += 1,
                    Entry::Held { .. } => outcome.looks += 1,
                    Entry::Accepted { .. } => outcome.accepted += 1,
                    Entry::Refused { .. } => outcome.stale += 1,
                }
            }
        }
        outcome
    }

    /// Violations that must never occur, and errors that should not have occurred.
    pub(crate) fn violations(&self) -> (&[String], &[String]) {
        (&self.wrong, &self.odd)
    }

    /// Verifies that there was no violation, that enough faults happened, and that every key recovered in time.
    #[track_caller]
    pub(crate) fn assert_passed(&self) {
        let Size { seed, ttl, quota, .. } = self.size;
        println!("{self}");
        let shown = &self.wrong[..self.wrong.len().min(20)];
        assert!(shown.is_empty(), "seed {seed}: {} violations: {shown:#?}", self.wrong.len());
        assert!(self.odd.is_empty(), "seed {seed}: {:#?}", self.odd);
        assert!(
            self.tally.covers(&quota),
            "too little went wrong to show anything: {} of {quota}",
            self.tally
        );
        // L1, and an allowance for a busy machine.
        let bound = 2 * ttl + Timing::new(ttl).unwrap().timeout();
        let slowest = self.held_again.iter().max_by_key(|held| held.unwrap_or(Duration::MAX)).unwrap();
        assert!(
            slowest.is_some_and(|slowest| slowest <= bound + ttl),
            "seed {seed}: held again after {slowest:?}, and it should take {bound:?} at most: {:?}",
            self.held_again
        );
        assert!(self.stale > 0 || quota.is_empty(), "no write came late, so the fence had nothing to refuse");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tally, took, grants, looks, accepted, stale, lost, denied, dropped, .. } = self;
        let slowest = self.held_again.iter().flatten().max().copied().unwrap_or_default();
        write!(
            f,
            "seed {}: {tally}, in {took:.1?}; {} keys: {grants} grants, {looks} times held, {accepted} writes accepted and \
             {stale} stale ones refused, {lost} leases lost, {denied} acquires denied and {dropped} dropped; {} violations; \
             after the faults each key was held again within {slowest:.1?} ({:.2} ttl)",
            self.size.seed,
            self.held_again.len(),
            self.wrong.len(),
            slowest.as_secs_f64() / self.size.ttl.as_secs_f64()
        )
    }
}
