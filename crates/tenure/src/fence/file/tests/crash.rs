//! Writers that are killed at each step.

use std::os::unix::process::ExitStatusExt;

use super::super::step::faults::{ALL, StepFault};
use super::{Call, Folder, child, token};

/// What the file has seen before the killed writer comes.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    /// A write under token 5.
    Older,
    /// A write under token 7, the token of the killed writer.
    Equal,
}

/// S3 across a crash: the file is as before the write or as after it, the mark never goes back, a smaller token than any
/// that has changed the file is refused, and the next writer needs no help.
#[test]
fn a_writer_that_is_killed_at_any_step_admits_no_smaller_token_and_leaves_nothing_half_written() {
    let mut killed = 0;
    for call in Call::ALL {
        for before in [Before::Nothing, Before::Older, Before::Equal] {
            for step in ALL {
                let folder = Folder::new();
                let first = if call.is_of_log() { Call::Append } else { Call::Put };
                let (text, mark) = match before {
                    Before::Nothing => ("", 0),
                    Before::Older => ("first\n", 5),
                    Before::Equal => ("first\n", 7),
                };
                if mark > 0 {
                    first.make(&folder.0, &token(mark), text).unwrap();
                }
                let mut child =
                    child::start(call, &folder.0, 7, "second, of the killed\n", step, StepFault::Kill);
                let status = child.wait().unwrap();
                if status.code() == Some(child::NOT_REACHED) {
                    continue;
                }
                assert_eq!(status.signal(), Some(9), "{call:?} {before:?} {step:?}: {status}");
                killed += 1;
                let case = format!("{call:?}, {before:?}, killed at {step:?}");

                let marked = folder.file().mark_blocking().or_else(|_| folder.log().mark_blocking()).unwrap();
                let marked = marked.map_or(0, |mark| mark.token().get());
                assert!(marked >= mark && [0, 5, 7].contains(&marked), "{case}: {marked}");
                if marked == 0 {
                    assert_eq!(folder.content(), "", "{case}: content without a mark");
                } else {
                    assert!(first.make(&folder.0, &token(4), "late\n").unwrap_err().is_stale(), "{case}");
                }
                if folder.content() != text {
                    assert_eq!(marked, 7, "{case}: the write is visible and its mark is not");
                    assert!(first.make(&folder.0, &token(6), "late\n").unwrap_err().is_stale(), "{case}");
                }
                first.make(&folder.0, &token(8), "third\n").unwrap_or_else(|error| panic!("{case}: {error}"));
                let expected = [text.to_owned(), call.after(text, "second, of the killed\n")];
                let expected = expected.map(|there| first.after(&there, "third\n"));
                assert!(expected.contains(&folder.content()), "{case}: {:?}", folder.content());
                assert!(first.make(&folder.0, &token(7), "late\n").unwrap_err().is_stale(), "{case}");
                // A killed writer leaves at most one file, which the next one uses.
                assert!(folder.names().len() <= 3, "{case}: {:?}", folder.names());
                folder.file().put_blocking(&token(8), b"x").map_or_else(
                    |_| (),
                    |()| {
                        assert_eq!(folder.names(), [".data.fence", "data"], "{case}");
                    },
                );
            }
        }
    }
    // Every step of each call, in each state of the file that leads there.
    assert!(killed >= 80, "{killed}");
    println!("{killed} writers were killed");
}

#[test]
fn a_torn_append_of_a_killed_writer_is_cut_off_and_a_complete_one_stays() {
    use super::super::step::Step;
    for (step, torn, expected) in [
        (Step::Append, "one\n", "one\nthree\n"),
        (Step::AppendRest, "one\ntw", "one\nthree\n"),
        (Step::SyncLog, "one\ntwo\n", "one\ntwo\nthree\n"),
        (Step::Settle, "one\ntwo\n", "one\ntwo\nthree\n"),
    ] {
        let folder = Folder::new();
        folder.log().append_blocking(&token(7), b"one\n").unwrap();
        child::start(Call::Append, &folder.0, 7, "two\n", step, StepFault::Kill).wait().unwrap();
        assert_eq!(folder.content(), torn, "{step:?}");
        assert_eq!(folder.log().length_blocking().unwrap(), 4, "{step:?}: readers are told the safe length");
        assert_eq!(folder.log().append_blocking(&token(7), b"three\n").unwrap(), expected.len() as u64);
        assert_eq!(folder.content(), expected, "{step:?}");
    }
}

#[test]
fn a_seal_settles_the_append_of_a_killed_writer_so_that_the_log_does_not_change_after_it() {
    use super::super::step::Step;
    for (step, sealed) in [
        (Step::Append, "one\n"),
        (Step::AppendRest, "one\n"),
        (Step::SyncLog, "one\ntwo\n"),
        (Step::Settle, "one\ntwo\n"),
    ] {
        let folder = Folder::new();
        folder.log().append_blocking(&token(7), b"one\n").unwrap();
        child::start(Call::Append, &folder.0, 7, "two\n", step, StepFault::Kill).wait().unwrap();
        folder.log().seal_blocking(&token(8)).unwrap();
        assert_eq!(folder.content(), sealed, "{step:?}");
        assert_eq!(folder.log().length_blocking().unwrap(), sealed.len() as u64, "{step:?}");
        folder.log().append_blocking(&token(8), b"three\n").unwrap();
        assert_eq!(folder.content(), format!("{sealed}three\n"), "{step:?}");
    }
}
