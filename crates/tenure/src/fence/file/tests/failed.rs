//! Steps that fail, such as on a full disk.

use rustix::io::Errno;

use super::super::super::FenceError;
use super::super::step::Step;
use super::super::step::faults::{ALL, StepFault, is_left, plan};
use super::{Call, Folder, token};
use crate::Reason;

#[test]
fn a_step_that_fails_loses_nothing_and_the_next_call_succeeds() {
    let mut failed = 0;
    for call in Call::ALL {
        for errno in [Errno::NOSPC, Errno::IO] {
            for step in ALL {
                let folder = Folder::new();
                let first = if call.is_of_log() { Call::Append } else { Call::Put };
                first.make(&folder.0, &token(5), "first\n").unwrap();
                plan(step, StepFault::Fail(errno));
                let answer = call.make(&folder.0, &token(7), "second\n");
                if is_left() {
                    continue;
                }
                failed += 1;
                let case = format!("{call:?}, {errno} at {step:?}");
                let after = call.after("first\n", "second\n");
                match &answer {
                    // Releasing the lock cannot fail, and the note that an append is complete may.
                    Ok(()) => assert!(matches!(step, Step::Unlock | Step::Settle), "{case}"),
                    Err(FenceError::Refused { reason, .. }) => {
                        assert_eq!(*reason, Reason::Unreachable, "{case}");
                        assert_eq!(folder.content(), "first\n", "{case}");
                    }
                    Err(FenceError::Unknown { .. }) => {
                        assert!(["first\n", &after].contains(&&*folder.content()), "{case}");
                    }
                    Err(error) => panic!("{case}: {error}"),
                }
                if let Err(error) = &answer {
                    let words = error.to_string();
                    assert!(words.contains(folder.data().to_str().unwrap()), "{words}");
                    let step = if errno == Errno::NOSPC { "Free some space" } else { "kernel's log" };
                    assert!(words.contains(step), "{words}");
                }
                let there = folder.content();
                first.make(&folder.0, &token(7), "third\n").unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(folder.content(), first.after(&there, "third\n"), "{case}");
                assert_eq!(folder.names(), [".data.fence", "data"], "{case}");
            }
        }
    }
    assert!(failed >= 50, "{failed}");
}

#[test]
fn a_mark_that_cannot_be_put_on_the_disk_lets_nothing_be_written() {
    for call in [Call::Put, Call::Append] {
        let folder = Folder::new();
        call.make(&folder.0, &token(5), "first\n").unwrap();
        plan(Step::SyncMark, StepFault::Fail(Errno::IO));
        assert!(matches!(call.make(&folder.0, &token(7), "second\n"), Err(FenceError::Refused { .. })));
        assert_eq!(folder.content(), "first\n");
    }
}

/// The mark may be in memory alone: its writer was killed before the sync. Then a power cut would take it back, and the
/// file that was written under it would admit a smaller token.
#[test]
fn each_handle_puts_the_mark_on_the_disk_once_for_each_token() {
    let folder = Folder::new();
    folder.file().put_blocking(&token(7), b"one").unwrap();
    let other = folder.file();
    for (number, syncs) in [(7, true), (7, false), (7, false), (8, true), (8, false)] {
        plan(Step::SyncMark, StepFault::Fail(Errno::IO));
        let answer = other.put_blocking(&token(number), b"two");
        assert_eq!(answer.is_err(), syncs, "{number}");
        let _ = is_left();
        other.put_blocking(&token(number), b"two").unwrap();
    }
}

/// On ext4, a further append sends the mark to the disk without a sync of its own. If that fails, nothing is appended.
#[test]
fn an_append_whose_mark_cannot_be_sent_to_the_disk_is_not_made() {
    let folder = Folder::on_disk();
    let log = folder.log();
    log.append_blocking(&token(7), b"one\n").unwrap();
    plan(Step::SyncMark, StepFault::Fail(Errno::IO));
    assert!(matches!(log.append_blocking(&token(7), b"two\n"), Err(FenceError::Refused { .. })));
    assert!(!is_left());
    assert_eq!(folder.content(), "one\n");
    log.append_blocking(&token(7), b"three\n").unwrap();
    assert_eq!(folder.content(), "one\nthree\n");
}
