//! The child under a slot, and the check of its log.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::run_support::{is_running, parent_of, sleep_ms};

pub(super) const LOG: &str = "TENURE_TEST_SLOT_LOG";

/// The child under a slot.
#[test]
#[ignore = "a process of other tests"]
#[expect(clippy::zombie_processes, reason = "what is left behind is for the command to end")]
fn child() {
    let Some(log) = std::env::var_os(LOG) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (slot, token) = (number("TENURE_SLOT"), number("TENURE_TOKEN"));
    assert_eq!(std::env::var("TENURE_NAME").unwrap(), super::GROUP);
    let act = |what: &str| {
        let mut log = OpenOptions::new().append(true).open(&log).unwrap();
        log.write_all(format!("{what} {slot} {token}\n").as_bytes()).unwrap();
    };
    act("start");
    let probe = OpenOptions::new().create(true).append(true).open(format!("probe-{slot}")).unwrap();
    if probe.try_lock().is_err() {
        act("overlap");
    }
    let mut rng = fastrand::Rng::with_seed(std::process::id().into());
    if rng.u8(..4) == 0 {
        // It is left behind, holds the lock too, and ignores TERM.
        let mut left = Command::new("sh");
        left.args(["-c", "trap '' TERM; exec setsid sleep 60"]).stdin(probe.try_clone().unwrap());
        left.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    }
    let supervisor = parent_of(std::os::unix::process::parent_id() as i32).unwrap_or(0);
    let (began, mut left) = (Instant::now(), rng.u64(10..80));
    while left > 0 && began.elapsed().as_secs() < 10 {
        sleep_ms(20);
        act("act");
        // While its supervisor is dead, it does not exit by itself: a guard must kill it.
        if is_running(supervisor) {
            left -= 1;
        }
    }
    act("end");
    std::process::exit(0);
}

/// Counts and violations in the log.
#[derive(Debug, Default)]
pub(super) struct SeenSlots {
    pub(super) grants: usize,
    pub(super) acts: usize,
    pub(super) ends: usize,
    pub(super) at_once: usize,
    pub(super) slots: BTreeMap<u64, usize>,
    pub(super) violations: Vec<String>,
}

fn lines(log: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    log.lines().map(|line| {
        let mut words = line.split(' ');
        let what = words.next().expect("a word");
        let mut number = || words.next().expect("whole lines").parse().expect("a number");
        (what, number(), number())
    })
}

/// The token of the latest child of each slot.
pub(super) fn latest_tokens(log: &str) -> BTreeMap<u16, u64> {
    lines(log).filter(|(what, ..)| *what == "start").map(|(_, slot, token)| (slot as u16, token)).collect()
}

/// Checks that indexes are below the size, that a slot's child does not act after its next one has started, that the
/// tokens of a slot only grow, and that its lock was always free.
pub(super) fn check(log: &str, slots: u16) -> SeenSlots {
    let mut seen = SeenSlots::default();
    let mut present = BTreeMap::<u64, (u64, bool)>::new();
    for (number, (what, slot, token)) in lines(log).enumerate() {
        let mut wrong = |why: &str| {
            seen.violations.push(format!("line {}: {what} {slot} {token}: {why}", number + 1));
        };
        let latest = present.entry(slot).or_insert((0, true));
        match what {
            _ if slot >= u64::from(slots) => wrong("the group has no such slot"),
            "start" if token <= latest.0 => wrong("the token did not grow"),
            "start" => *latest = (token, false),
            "overlap" => wrong("a process of an earlier term was alive"),
            _ if token != latest.0 => wrong("another child had started"),
            _ if latest.1 => wrong("it had ended"),
            _ => {}
        }
        match what {
            "start" => {
                seen.grants += 1;
                *seen.slots.entry(slot).or_default() += 1;
            }
            "act" => seen.acts += 1,
            "end" => {
                seen.ends += 1;
                present.insert(slot, (token, true));
            }
            _ => {}
        }
        seen.at_once = seen.at_once.max(present.values().filter(|(_, ended)| !ended).count());
    }
    seen
}

#[test]
fn the_checker_finds_each_kind_of_violation() {
    let good = "start 0 5\nstart 1 5\nact 0 5\nend 0 5\nstart 0 6\nact 1 5\n";
    let seen = check(good, 2);
    assert_eq!((seen.grants, seen.acts, seen.ends, seen.at_once), (3, 2, 1, 2));
    assert!(seen.violations.is_empty());
    assert_eq!(latest_tokens(good), BTreeMap::from([(0, 6), (1, 5)]));
    for bad in [
        "start 2 5\n",
        "start 0 5\nstart 0 5\n",
        "start 0 5\nstart 0 6\nact 0 5\n",
        "start 0 5\noverlap 0 5\n",
        "start 0 5\nend 0 5\nact 0 5\n",
    ] {
        assert_eq!(check(bad, 2).violations.len(), 1, "{bad}");
    }
}
