//! Every interleaving of threads at the mark of a gate, on memory as weak as the language allows.
//!
//! The files under test are those of the library, compiled here with the atomics of the model checker instead of those
//! of the standard library.
#![expect(unsafe_code, reason = "the passes write without a lock, and the model checker verifies it")]

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[path = "../src/fence/gate/mark.rs"]
mod mark;

#[path = "../src/fence/gate/passes.rs"]
mod passes;

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;
use mark::GateMark;
use passes::Passes;
use tenure::Token;

fn token(number: u64) -> Token {
    Token::new(number).unwrap()
}

#[test]
fn a_thread_that_learns_of_an_admitted_token_is_refused_with_a_smaller_one() {
    loom::model(|| {
        let (mark, told) = (Arc::new(GateMark::default()), Arc::new(atomic::AtomicU64::new(0)));
        let newer = thread::spawn({
            let (mark, told) = (Arc::clone(&mark), Arc::clone(&told));
            move || {
                mark.raise(token(9)).unwrap();
                told.store(1, atomic::Ordering::Release);
            }
        });
        let knows = told.load(atomic::Ordering::Acquire) == 1;
        let answer = mark.raise(token(7));
        assert!(!knows || answer == Err(token(9)), "7 was admitted after 9");
        newer.join().unwrap();
        assert_eq!((mark.highest(), mark.raise(token(7))), (token(9), Err(token(9))));
    });
}

#[test]
fn three_threads_never_lower_the_mark() {
    loom::model(|| {
        let mark = Arc::new(GateMark::default());
        let threads: Vec<_> = [7, 9]
            .map(|number| {
                let mark = Arc::clone(&mark);
                thread::spawn(move || {
                    let answer = mark.raise(token(number));
                    // No thread sees a smaller mark than its own token, admitted or not.
                    assert!(mark.highest() >= token(number));
                    answer.is_ok()
                })
            })
            .into();
        let answer = mark.raise(token(8));
        assert!(mark.highest() >= token(8));
        let admitted: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(admitted[1], "the greatest token is always admitted");
        assert!(answer.is_ok() || answer == Err(token(9)));
        assert_eq!(mark.highest(), token(9));
    });
}

/// The part of `Gate::enter` and of the end of a pass that is under the lock.
struct Gate {
    mark: GateMark,
    passes: Mutex<Passes>,
    written: UnsafeCell<u64>,
}

impl Gate {
    fn enter(&self, token: Token) -> bool {
        let mut passes = self.passes.lock().unwrap();
        self.mark.raise(token).is_ok() && passes.begin(token)
    }

    fn end(&self) -> bool {
        self.passes.lock().unwrap().end()
    }
}

#[test]
fn a_write_under_a_pass_never_overlaps_a_write_under_another_token() {
    loom::model(|| {
        let gate = Arc::new(Gate {
            mark: GateMark::default(),
            passes: Mutex::new(Passes::new()),
            written: UnsafeCell::new(0),
        });
        let threads = [7, 9].map(|number| {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                if gate.enter(token(number)) {
                    // SAFETY: the model checker fails if this overlaps with another access.
                    gate.written.with_mut(|written| unsafe {
                        assert!(*written <= number, "{number} was written after {}", *written);
                        *written = number;
                    });
                    gate.end();
                }
            })
        });
        // A token that is only admitted is not ordered with the writes, but raises the mark.
        let admitted = gate.mark.raise(token(8));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        if admitted.is_ok() {
            assert!(!gate.enter(token(7)), "7 has entered after 8 was admitted");
        }
        assert!(gate.enter(token(9)));
    });
}
