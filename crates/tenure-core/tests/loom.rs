//! Every interleaving of a lease and its keeper, on memory as weak as the language allows.
//!
//! The files under test are those of the library, compiled here with the atomics of the model checker instead of those
//! of the standard library.
#![expect(unsafe_code, reason = "the work writes without a lock, and the model checker verifies it")]

/// The files under test import this by its path in the library.
use tenure_core::Instant;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
}

#[allow(unreachable_pub, reason = "it is public in the library")]
#[path = "../src/belief.rs"]
mod belief;

#[allow(unreachable_pub, reason = "it is public in the library")]
#[path = "../src/works.rs"]
mod works;

use belief::Belief;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use works::Works;

struct Lease {
    belief: Belief,
    works: Works,
    /// The data that the work changes.
    done: UnsafeCell<u32>,
}

impl Lease {
    fn new() -> Arc<Self> {
        let belief = Belief::until(at(100));
        Arc::new(Self { belief, works: Works::default(), done: UnsafeCell::new(0) })
    }

    /// Starts work as `run` and `acting` do.
    fn begin(&self) -> bool {
        self.works.begin();
        self.belief.left(|| at(1)).is_some()
    }

    /// Ends the belief as the keeper does. True if the keeper vacates at once.
    fn lose(&self) -> bool {
        self.belief.latch();
        self.works.is_drained()
    }

    fn act(&self) {
        // SAFETY: the model checker fails if this overlaps with another access.
        self.done.with_mut(|done| unsafe { *done += 1 });
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn work_that_begins_sees_the_loss_or_the_keeper_sees_the_work() {
    loom::model(|| {
        let lease = Lease::new();
        let worker = thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.begin()
        });
        let vacates = lease.lose();
        let begins = worker.join().unwrap();
        assert!(!(begins && vacates), "work began under a record that is being vacated");
    });
}

#[test]
fn the_keeper_sees_the_end_of_the_last_work_or_receives_a_report() {
    loom::model(|| {
        let lease = Lease::new();
        assert!(lease.begin());
        let worker = thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.works.end(&lease.belief)
        });
        let vacates = lease.lose();
        let tells = worker.join().unwrap();
        assert!(tells || vacates, "no thread vacates: the next holder waits for the ttl");
    });
}

#[test]
fn of_two_ending_works_one_reports_and_the_keeper_vacates_after_both() {
    loom::model(|| {
        let lease = Lease::new();
        assert!(lease.begin());
        lease.works.begin();
        let workers: Vec<_> = (0..2)
            .map(|turn| {
                let lease = Arc::clone(&lease);
                thread::spawn(move || {
                    if turn == 0 {
                        lease.act();
                    }
                    let tells = lease.works.end(&lease.belief);
                    if tells {
                        // The keeper does this when the end of the work is reported: all work happens before it.
                        lease.done.with(|_| ());
                    }
                    tells
                })
            })
            .collect();
        let vacates = lease.lose();
        if vacates {
            lease.done.with(|_| ());
        }
        let tells = workers.into_iter().map(|worker| worker.join().unwrap()).filter(|tells| *tells).count();
        assert!(tells <= 1, "told twice");
        assert!(tells == 1 || vacates, "no thread vacates: the next holder waits for the ttl");
    });
}

#[test]
fn a_belief_that_has_ended_for_one_thread_has_ended_for_all() {
    loom::model(|| {
        let lease = Lease::new();
        let late = thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.belief.left(|| at(100)).is_none()
        });
        let extended = lease.belief.extend(at(99), at(200));
        let was_over = late.join().unwrap();
        assert_eq!(was_over, !extended, "one of the two was first");
        assert_eq!(lease.belief.left(|| at(1)).is_none(), was_over);
    });
}

#[test]
fn a_belief_that_is_ended_during_its_extension_stays_ended_for_every_reader() {
    loom::model(|| {
        let lease = Lease::new();
        let keeper = thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.belief.extend(at(1), at(200))
        });
        let reader = thread::spawn({
            let lease = Arc::clone(&lease);
            move || {
                let was_over = lease.belief.left(|| at(1)).is_none();
                assert!(!was_over || lease.belief.is_over(), "a belief that had ended came back");
            }
        });
        lease.belief.latch();
        assert!(lease.belief.is_over(), "the thread that ended the belief still has it");
        keeper.join().unwrap();
        reader.join().unwrap();
        assert!(lease.belief.is_over(), "the extension brought the belief back");
    });
}

#[test]
fn work_that_is_refused_reports_its_end_if_the_keeper_has_counted_it() {
    loom::model(|| {
        let lease = Lease::new();
        let worker = thread::spawn({
            let lease = Arc::clone(&lease);
            move || {
                lease.begin();
                // Refused, or done at once.
                lease.works.end(&lease.belief)
            }
        });
        let vacates = lease.lose();
        let tells = worker.join().unwrap();
        assert!(tells || vacates, "no thread vacates: the next holder waits for the ttl");
    });
}

#[test]
fn work_that_ends_after_a_reader_saw_the_deadline_pass_is_reported_or_seen() {
    loom::model(|| {
        let lease = Lease::new();
        assert!(lease.begin());
        let worker = thread::spawn({
            let lease = Arc::clone(&lease);
            move || {
                lease.act();
                lease.works.end(&lease.belief)
            }
        });
        // No call of the keeper ends this belief: the reader is the first to see that its deadline has passed.
        let reader = thread::spawn({
            let lease = Arc::clone(&lease);
            move || assert_eq!(lease.belief.left(|| at(100)), None)
        });
        reader.join().unwrap();
        let vacates = lease.lose();
        if vacates {
            lease.done.with(|_| ());
        }
        assert!(worker.join().unwrap() || vacates, "no thread vacates: the next holder waits for the ttl");
    });
}
