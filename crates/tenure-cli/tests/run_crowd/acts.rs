//! The child under the lease, and the check of its log.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::run_support::{is_running, parent_of, sleep_ms};

pub(super) const LOG: &str = "TENURE_TEST_LOG";

/// Maximum number of acts, ten milliseconds apart, and maximum lifetime in seconds.
pub(super) const ACTS: &str = "TENURE_TEST_ACTS";
pub(super) const SECONDS: &str = "TENURE_TEST_SECONDS";

/// Once this file exists, children do not act; they only log their start and end.
pub(super) const CLOSING: &str = "closing";

/// The child under the lease.
#[test]
#[ignore = "a process of other tests"]
#[expect(clippy::zombie_processes, reason = "what is left behind is for the command to end")]
fn child() {
    let Some(log) = std::env::var_os(LOG) else { return };
    let token = std::env::var("TENURE_TOKEN").unwrap();
    let act = |what: &str| {
        let mut log = OpenOptions::new().append(true).open(&log).unwrap();
        log.write_all(format!("{what} {token}\n").as_bytes()).unwrap();
    };
    act("start");
    let probe = OpenOptions::new().append(true).open("probe").unwrap();
    if probe.try_lock().is_err() {
        act("overlap");
    }
    let mut rng = fastrand::Rng::with_seed(std::process::id().into());
    if rng.u8(..3) == 0 {
        // It is left behind, holds the lock too, and ignores TERM.
        let mut left = Command::new("sh");
        left.args(["-c", "trap '' TERM; exec setsid sleep 60"]).stdin(probe.try_clone().unwrap());
        left.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    }
    let supervisor = parent_of(std::os::unix::process::parent_id() as i32).unwrap_or(0);
    let began = Instant::now();
    let mut left = if Path::new(CLOSING).exists() { 0 } else { rng.u64(5..setting(ACTS, 50)) };
    while left > 0 && began.elapsed().as_secs() < setting(SECONDS, 10) {
        sleep_ms(10);
        act("act");
        // While its supervisor is stopped or dead, it does not exit by itself: a guard must kill it.
        if is_running(supervisor) {
            left -= 1;
        }
    }
    act("end");
    std::process::exit(0);
}

/// Counts and violations in the log.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) grants: usize,
    pub(crate) acts: usize,
    pub(crate) ends: usize,
    pub(super) violations: Vec<String>,
}

/// Checks that no child acts after the next one has started, that tokens only grow, and that the lock was always free.
pub(super) fn check(log: &str) -> Seen {
    let mut seen = Seen::default();
    let (mut present, mut has_ended) = (0, true);
    for (number, line) in log.lines().enumerate() {
        let (what, token) = line.split_once(' ').expect("whole lines");
        let token: u64 = token.parse().expect("a token");
        let mut wrong = |why: &str| seen.violations.push(format!("line {}: {line}: {why}", number + 1));
        match what {
            "start" if token <= present => wrong("the token did not grow"),
            "start" => (present, has_ended) = (token, false),
            "overlap" => wrong("a process of an earlier term was alive"),
            _ if token != present => wrong("another child had started"),
            _ if has_ended => wrong("it had ended"),
            _ => {}
        }
        match what {
            "start" => seen.grants += 1,
            "act" => seen.acts += 1,
            "end" => (seen.ends, has_ended) = (seen.ends + 1, true),
            _ => {}
        }
    }
    seen
}

#[test]
fn the_checker_finds_each_kind_of_violation() {
    let good = "start 5\nact 5\nend 5\nstart 6\nact 6\nstart 9\nend 9\n";
    let seen = check(good);
    assert_eq!((seen.grants, seen.acts, seen.ends), (3, 2, 2));
    assert!(seen.violations.is_empty());
    for bad in [
        "start 5\nstart 5\n",
        "start 5\nend 5\nstart 4\n",
        "start 5\nstart 6\nact 5\n",
        "start 5\nstart 6\nend 5\n",
        "start 5\noverlap 5\n",
        "start 5\nend 5\nact 5\n",
    ] {
        assert_eq!(check(bad).violations.len(), 1, "{bad}");
    }
}

pub(crate) fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}
