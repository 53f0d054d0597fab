//! A hundred supervisors contend for one lease, and the holder is killed, stopped and stolen from all the time.
//!
//! `TENURE_TEST_FAULTS=2000` runs longer.
#![expect(clippy::disallowed_methods, reason = "the tests give other processes time")]

mod run_crowd;
mod run_support;

use std::fs;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use run_crowd::{Place, Plan, contend, setting};
use run_support::{PATIENCE, World, skipped};
use tenure_testkit::quota;

/// One crowd at a time: two would only compete for the cores.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_hundred_supervisors_never_overlap_whatever_happens_to_the_holder() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let world = World::new("hundred");
    let faults = setting("TENURE_TEST_FAULTS", quota(20, 60));
    let outcome = contend(&Plan {
        world: &world,
        place: &Place::file(&world),
        lease: "one",
        verb: "run",
        supervisors: 100,
        // Short, so that a dead holder costs little time. Long enough for three hundred processes on two cores.
        ttl: Duration::from_millis(2000),
        acts: 50,
        faults,
        span: Duration::ZERO,
        seed: setting("TENURE_TEST_SEED", 4),
    });
    outcome.assert_as_after_faults(faults / 2);
}

#[test]
fn a_counter_under_a_lease_loses_no_increment() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let world = World::new("counter");
    let (count, at_once) = (setting("TENURE_TEST_COUNT", quota(250, 1000)), 50);
    if !world.sh("command -v xargs && command -v seq").stdout(Stdio::null()).status().unwrap().success() {
        return skipped("no xargs or seq here");
    }
    fs::write(world.path("c"), "0\n").unwrap();
    let began = Instant::now();
    let script = format!(
        "seq {count} | xargs -P {at_once} -I{{}} \"$TENURE\" run counter -- sh -c 'n=$(cat c); echo $((n+1)) > c'"
    );
    let ran = world.start(world.sh(&script)).end_within(PATIENCE * 10);
    eprintln!("{count} increments, {at_once} at a time, in {:.1?}", began.elapsed());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(world.told("c"), count.to_string());
    world.is_empty_soon();
}
