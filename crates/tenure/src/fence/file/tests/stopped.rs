//! Writers that are stopped between the check and the write.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Pid, Signal, kill_process};

use super::super::step::Step;
use super::super::step::faults::StepFault;
use super::{Call, Folder, child, token};
use crate::fence::FenceError;

/// Waits until the process is stopped. The limit is ten seconds.
fn wait_until_stopped(process: u32) {
    for _ in 0..10_000 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        if stat.rsplit_once(") ").unwrap().1.starts_with('T') {
            return;
        }
        crate::host::pause::pause(std::time::Duration::from_millis(1));
    }
    panic!("process {process} was not stopped");
}

#[test]
fn a_writer_that_is_stopped_after_the_check_keeps_others_out_who_learn_its_name() {
    for (call, step) in [(Call::Put, Step::Rename), (Call::Append, Step::Append), (Call::Put, Step::Admitted)]
    {
        let folder = Folder::new();
        call.make(&folder.0, &token(5), "first\n").unwrap();
        let mut writer = child::start(call, &folder.0, 7, "second\n", step, StepFault::Stop);
        wait_until_stopped(writer.id());
        let error = call.make(&folder.0, &token(8), "third\n").unwrap_err();
        assert!(matches!(error, FenceError::Refused { .. }), "{error}");
        for part in [&*writer.id().to_string(), "is stopped", "kill -CONT", ".data.fence"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(folder.content(), "first\n");
        let pid = Pid::from_raw(writer.id().cast_signed()).unwrap();
        kill_process(pid, Signal::CONT).unwrap();
        assert_eq!(writer.wait().unwrap().code(), Some(child::CONTINUED));
        assert_eq!(folder.content(), call.after("first\n", "second\n"));
        call.make(&folder.0, &token(8), "third\n").unwrap();
        assert!(call.make(&folder.0, &token(7), "late\n").unwrap_err().is_stale());
    }
}

#[test]
fn a_stopped_writer_that_is_killed_frees_the_lock() {
    let folder = Folder::new();
    Call::Put.make(&folder.0, &token(5), "first\n").unwrap();
    let mut writer = child::start(Call::Put, &folder.0, 7, "second\n", Step::Rename, StepFault::Stop);
    wait_until_stopped(writer.id());
    writer.kill().unwrap();
    assert_eq!(writer.wait().unwrap().signal(), Some(9));
    Call::Put.make(&folder.0, &token(8), "third\n").unwrap();
    assert_eq!(folder.content(), "third\n");
}

/// The accident: the holder is paused before its write, and its successor writes first.
#[test]
fn a_writer_that_is_stopped_before_the_lock_is_refused_when_it_continues() {
    for call in [Call::Put, Call::AppendFrom] {
        let folder = Folder::new();
        call.make(&folder.0, &token(5), "first\n").unwrap();
        // It has found its token to be good, and prepares the write.
        let mut writer = child::start(call, &folder.0, 7, "second\n", Step::WriteBeside, StepFault::Stop);
        wait_until_stopped(writer.id());
        call.make(&folder.0, &token(8), "third\n").unwrap();
        kill_process(Pid::from_raw(writer.id().cast_signed()).unwrap(), Signal::CONT).unwrap();
        assert_eq!(writer.wait().unwrap().code(), Some(child::STALE));
        assert_eq!(folder.content(), call.after("first\n", "third\n"));
        assert_eq!(folder.names(), [".data.fence", "data"]);
    }
}
