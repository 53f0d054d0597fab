//! Every interleaving of the threads that share a held lease, on memory as weak as the language allows.
//!
//! The files under test are those of the library, compiled here with the atomics and locks of the model checker instead
//! of those of the standard library. Tokio's channels are the real ones: a model runs each call of them in one step.
#![allow(dead_code, unreachable_pub, reason = "the models do not call everything that the library has")]

mod atomic {
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

    pub(crate) use crate::belief::Belief;
    pub(crate) use crate::cancellation_token::CancellationToken;
    pub(crate) use crate::once_lock::OnceLock;
    pub(crate) use crate::works::Works;
}

#[path = "../../tenure-core/src/belief.rs"]
mod belief;

#[path = "../../tenure-core/src/works.rs"]
mod works;

#[path = "../src/keeper/belief_mirror.rs"]
mod belief_mirror;

#[path = "../src/keeper/held_lease.rs"]
mod held_lease;

#[path = "../src/keeper/lease_state.rs"]
mod lease_state;

/// A `OnceLock` in terms of the model checker, with the guarantees of the standard one and no more: a thread that sees
/// the value sees all that happened before it was set.
mod once_lock {
    use std::fmt;

    use loom::sync::Mutex;
    use loom::sync::atomic::{AtomicUsize, Ordering};

    pub(crate) struct OnceLock<T> {
        is_set: AtomicUsize,
        setting: Mutex<()>,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self { is_set: AtomicUsize::new(0), setting: Mutex::new(()), value: std::sync::OnceLock::new() }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            (self.is_set.load(Ordering::Acquire) == 1).then(|| self.value.get().unwrap())
        }

        pub(crate) fn get_or_init(&self, value: impl FnOnce() -> T) -> &T {
            if self.get().is_none() {
                let _setting = self.setting.lock().unwrap();
                self.value.get_or_init(value);
                self.is_set.store(1, Ordering::Release);
            }
            self.value.get().unwrap()
        }
    }

    impl<T> fmt::Debug for OnceLock<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("OnceLock")
        }
    }
}

/// A `CancellationToken` in terms of the model checker: a lock and a flag, as the one of Tokio has them.
mod cancellation_token {
    use loom::sync::Mutex;

    #[derive(Debug)]
    pub(crate) struct CancellationToken(Mutex<bool>);

    impl CancellationToken {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(false))
        }

        pub(crate) fn cancel(&self) {
            *self.0.lock().unwrap() = true;
        }

        pub(crate) fn is_cancelled(&self) -> bool {
            *self.0.lock().unwrap()
        }

        pub(crate) async fn cancelled(&self) {
            unreachable!("no model waits: the models look at every moment");
        }
    }
}

/// The files under test import these by their paths in the library.
use tenure::clock::Instant;
use tenure::{Error, ErrorKind};

mod clock {
    pub(crate) use tenure::clock::{Clock, Instant};
}

mod host {
    /// Every duty is done: no model neglects one.
    pub(crate) mod simulation {
        pub(crate) enum Duty {
            CountWork,
            TellDrained,
            LockWitnessUnderWork,
        }

        pub(crate) fn does(_: Duty) -> bool {
            true
        }
    }

    pub(crate) mod fork {
        /// No process forks in these models.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct ForkGuard;

        impl ForkGuard {
            pub(crate) fn is_present(&self) -> bool {
                true
            }
        }
    }

    pub(crate) mod witness {
        #[derive(Debug)]
        pub(crate) struct Lock;
    }
}

use std::sync::Arc;
use std::time::Duration;

use belief::Belief;
use belief_mirror::BeliefMirror;
use held_lease::{Granted, HeldLease};
use host::fork::ForkGuard;
use lease_state::LeaseState;
use loom::thread;
use tenure::clock::{Clock, ManualClock};
use tenure::{Holder, Lost, Token};
use tokio::sync::mpsc::error::TryRecvError;

fn token(number: u64) -> Token {
    Token::new(number).unwrap()
}

/// A lease for ten seconds, on a clock that stands still.
fn lease(clock: &ManualClock) -> Arc<HeldLease> {
    let granted = Granted {
        key: "billing/nightly".parse().unwrap(),
        holder: Arc::new(Holder::new("web-1").unwrap()),
        token: token(7),
        store: "memory:".into(),
        deadline: clock.now() + Duration::from_secs(10),
        witness: None,
    };
    Arc::new(HeldLease::new(granted, Arc::new(clock.clone()), ForkGuard))
}

#[test]
fn a_thread_that_sees_the_cancellation_finds_the_lease_lost_and_its_cause() {
    loom::model(|| {
        let lease = lease(&ManualClock::new());
        let keeper = thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.latch(Lost::Deleted)
        });
        let was_held = lease.is_held();
        if lease.cancellation().is_cancelled() {
            assert_eq!(*lease.states().borrow(), LeaseState::Lost(Lost::Deleted));
            assert!(!lease.is_held(), "the work is told to stop while the lease is held");
        }
        if !was_held {
            assert_eq!(lease.loss(), Some(Lost::Deleted));
        }
        keeper.join().unwrap();
        assert!(lease.cancellation().is_cancelled());
    });
}

#[test]
fn when_latch_returns_the_lease_is_lost_although_another_thread_began_to_latch_it() {
    let mut model = loom::model::Builder::new();
    // Every order would take minutes. A thread that is preempted once in its latch is the case in question.
    model.preemption_bound = Some(2);
    model.check(|| {
        let lease = lease(&ManualClock::new());
        let ends = |why: Lost| {
            let lease = Arc::clone(&lease);
            move || {
                lease.latch(why);
                assert!(!lease.is_held());
                assert!(lease.cancellation().is_cancelled());
                lease.states().borrow().clone()
            }
        };
        let keeper = thread::spawn(ends(Lost::Deleted));
        let seen = ends(Lost::Released)();
        assert_eq!(seen, keeper.join().unwrap(), "the first cause stays");
    });
}

#[test]
fn a_lease_that_is_lost_during_its_renewal_stays_lost_for_all_who_look() {
    loom::model(|| {
        let (clock, mirror) = (ManualClock::new(), Arc::new(BeliefMirror::default()));
        let lease = lease(&clock);
        lease.mirror_in(&mirror);
        let keeper = thread::spawn({
            let (lease, deadline) = (Arc::clone(&lease), clock.now() + Duration::from_secs(20));
            move || lease.extend(deadline)
        });
        lease.latch(Lost::Released);
        assert_eq!(mirror.is_held(&clock), Some(false), "the mirror shows a lease that is lost");
        keeper.join().unwrap();
        assert_eq!(
            *lease.states().borrow(),
            LeaseState::Lost(Lost::Released),
            "the renewal replaced the state"
        );
        assert_eq!(mirror.is_held(&clock), Some(false), "the renewal brought the belief back");
        assert!(!lease.is_held());
    });
}

#[test]
fn a_lease_that_is_lost_while_a_mirror_is_attached_is_lost_in_the_mirror() {
    loom::model(|| {
        let (clock, mirror) = (ManualClock::new(), Arc::new(BeliefMirror::default()));
        let lease = lease(&clock);
        let keeper = thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.latch(Lost::Deleted)
        });
        lease.mirror_in(&mirror);
        keeper.join().unwrap();
        assert_eq!(mirror.is_held(&clock), Some(false), "an election leads under a lease that is lost");
    });
}

#[test]
fn a_stream_of_renewals_that_begins_during_the_loss_ends() {
    loom::model(|| {
        let lease = lease(&ManualClock::new());
        let keeper = thread::spawn({
            let lease = Arc::clone(&lease);
            move || lease.latch(Lost::Deleted)
        });
        let mut renewals = lease.renewals();
        keeper.join().unwrap();
        assert_eq!(renewals.try_recv(), Err(TryRecvError::Disconnected), "the reader waits for ever");
    });
}

#[test]
fn the_last_copy_in_the_mirror_is_of_the_last_state_whichever_thread_comes_last() {
    loom::model(|| {
        let (clock, mirror) = (ManualClock::new(), Arc::new(BeliefMirror::default()));
        let second = Duration::from_secs(1);
        let belief = Arc::new(Belief::until(clock.now() + second));
        mirror.copy(token(7), &belief);
        let keeper = thread::spawn({
            let (mirror, belief, clock) = (Arc::clone(&mirror), Arc::clone(&belief), clock.clone());
            move || {
                let extended = belief.extend(clock.now(), clock.now() + 9 * second);
                mirror.copy(token(7), &belief);
                extended
            }
        });
        let ender = thread::spawn({
            let (mirror, belief) = (Arc::clone(&mirror), Arc::clone(&belief));
            move || {
                belief.latch();
                mirror.copy(token(7), &belief);
            }
        });
        let first = mirror.is_held(&clock);
        let second_look = mirror.is_held(&clock);
        assert!(first == Some(true) || second_look == Some(false), "a lost term came back");
        ender.join().unwrap();
        assert_eq!(mirror.is_held(&clock), Some(false), "the mirror shows a lease that is lost");
        keeper.join().unwrap();
        assert_eq!(mirror.is_held(&clock), Some(false));
    });
}

#[test]
fn the_mirror_shows_the_latest_term_whichever_thread_comes_last() {
    loom::model(|| {
        let (clock, mirror) = (ManualClock::new(), Arc::new(BeliefMirror::default()));
        assert_eq!(mirror.is_held(&clock), Some(false), "there was no term yet");
        let old = Belief::until(clock.now() + Duration::from_secs(1));
        let earlier = thread::spawn({
            let mirror = Arc::clone(&mirror);
            move || {
                mirror.copy(token(7), &old);
                old.latch();
                mirror.copy(token(7), &old);
            }
        });
        let new = Belief::until(clock.now() + Duration::from_secs(9));
        mirror.copy(token(8), &new);
        assert_eq!(mirror.is_held(&clock), Some(true));
        earlier.join().unwrap();
        assert_eq!(mirror.is_held(&clock), Some(true), "the end of an earlier term ended the later one");
        clock.advance(Duration::from_secs(9));
        assert_eq!(mirror.is_held(&clock), None, "at the deadline the lease itself decides, and latches");
        new.latch();
        mirror.copy(token(8), &new);
        assert_eq!(mirror.is_held(&clock), Some(false));
    });
}
