//! Runs the binaries of one lane, one after another or several at once.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::outcome::{Outcome, failures};
use crate::plan::{Lane, is_early, is_left_out, unfit};
use crate::test_binary::TestBinary;

/// Runs the binaries of a lane, at most `at_once` at a time. False if one of them failed.
pub(crate) fn run(directory: &Path, lane: &str, at_once: usize) -> bool {
    let messages = std::fs::read_to_string(directory.join("build.json")).expect("the messages of the build");
    let all = TestBinary::all_in(&messages);
    let names: Vec<_> = all.iter().map(|binary| binary.name.as_str()).collect();
    let unfit = unfit(&names);
    assert!(unfit.is_empty(), "the plan names what is not there: {unfit:?}, among {names:?}");
    let chosen = Lane::named(lane);
    let binaries = all.iter().filter(|binary| Lane::of(&binary.name) == chosen && !is_left_out(&binary.name));
    let mut jobs: Vec<(&TestBinary, &[&str])> = binaries.map(|binary| (binary, USUAL)).collect();
    jobs.sort_by_key(|(binary, _)| !is_early(&binary.name));
    if chosen == Lane::Alone && std::env::var("TENURE_SERVERS").is_ok_and(|servers| servers == "ceph") {
        jobs.extend(all.iter().filter(|binary| has_ceph(binary)).map(|binary| (binary, CEPH)));
    }
    let (queue, good) = (Mutex::new(jobs.into_iter()), AtomicBool::new(true));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((binary, arguments)) = next(&queue) {
                    if !run_one(directory, binary, arguments) {
                        good.store(false, Relaxed);
                    }
                }
            });
        }
    });
    good.into_inner()
}

fn next<T>(queue: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    queue.lock().expect("no lane panics").next()
}

fn run_one(directory: &Path, binary: &TestBinary, arguments: &[&str]) -> bool {
    let log = directory.join(format!("{}.log", binary.name.replace('/', "-")));
    let outcome = Outcome::of(binary, arguments, &log)
        .unwrap_or_else(|error| panic!("{} cannot be run: {error}", binary.program.display()));
    let Outcome { name, good, passed, failed, wall, busy, .. } = &outcome;
    println!("  {name:<40} {passed:>4} passed, {failed} failed {wall:>7.1} s, processor {busy:>6.1} s");
    if !good {
        println!("FAILED: {name}\n{}", failures(&std::fs::read_to_string(&log).unwrap_or_default()));
    }
    let mut rows =
        OpenOptions::new().create(true).append(true).open(directory.join("rows")).expect("a file of ours");
    rows.write_all(outcome.row().as_bytes()).expect("a file of ours");
    *good
}

fn has_ceph(binary: &TestBinary) -> bool {
    let listed = Command::new(&binary.program).args(["--list", "--ignored", "ceph"]).output();
    listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains(": test"))
}

const USUAL: &[&str] = &["--show-output"];

/// The tests of a server that runs only on request.
const CEPH: &[&str] = &["--show-output", "--ignored", "ceph"];
