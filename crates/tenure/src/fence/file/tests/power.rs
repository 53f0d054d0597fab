//! Power cuts: the disk has only what was synced, and any part of what was not.

use super::super::mark::{Content, FenceMark, Intent, Tail};
use super::super::mark_file::MarkFile;
use super::super::place::Place;
use super::super::step::Step;
use super::super::step::faults::StepFault;
use super::{Call, Folder, child, token};
use crate::fence::FenceError;

/// A log whose writer was killed before it synced the append "two\n". Then the power is cut.
fn cut_before_sync(content: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.log().append_blocking(&token(7), b"one\n").unwrap();
    child::start(Call::Append, &folder.0, 7, "two\n", Step::SyncLog, StepFault::Kill).wait().unwrap();
    std::fs::write(folder.data(), content).unwrap();
    let place = Place::find(&folder.data()).unwrap();
    let locked = MarkFile::lock(&place, std::time::Duration::ZERO).unwrap().unwrap();
    let mark = locked.read().unwrap();
    let Content::Log(Tail::Appending(intent)) = mark.content else { panic!("{mark:?}") };
    let intent = Intent { boot: intent.boot ^ 1, ..intent };
    locked.write(&FenceMark { content: Content::Log(Tail::Appending(intent)), ..mark }).unwrap();
    drop(locked);
    folder
}

#[test]
fn after_a_power_cut_the_unsynced_append_is_cut_off_or_complete() {
    for (there, expected) in [
        (&b"one\n"[..], "one\nthree\n"),
        (b"one\nt", "one\nthree\n"),
        (b"one\ntwo", "one\nthree\n"),
        // The size was on the disk, and the bytes were not.
        (b"one\n\0\0\0\0", "one\nthree\n"),
        (b"one\ntw\0\0", "one\nthree\n"),
        (b"one\ntwo\n", "one\ntwo\nthree\n"),
    ] {
        let folder = cut_before_sync(there);
        folder.log().append_blocking(&token(7), b"three\n").unwrap();
        assert_eq!(folder.content(), expected, "{there:?}");
    }
}

#[test]
fn a_log_that_no_append_explains_is_not_cut_off() {
    for there in [&b""[..], b"one", b"one\ntwo\nthree\n"] {
        let folder = cut_before_sync(there);
        let error = folder.log().append_blocking(&token(7), b"three\n").unwrap_err();
        assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
        assert_eq!(folder.content().as_bytes(), there);
    }
}

/// Without a reboot, all bytes of a log with its full size were written by the dead writer.
#[test]
fn wrong_bytes_without_a_reboot_are_of_another_program_and_are_not_cut_off() {
    let folder = Folder::new();
    folder.log().append_blocking(&token(7), b"one\n").unwrap();
    child::start(Call::Append, &folder.0, 7, "two\n", Step::SyncLog, StepFault::Kill).wait().unwrap();
    std::fs::write(folder.data(), b"one\nTWO\n").unwrap();
    let error = folder.log().append_blocking(&token(7), b"three\n").unwrap_err();
    assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
    assert_eq!(folder.content(), "one\nTWO\n");
    folder.log().adopt_blocking(&token(7)).unwrap();
    folder.log().append_blocking(&token(7), b"three\n").unwrap();
    assert_eq!(folder.content(), "one\nTWO\nthree\n");
}
