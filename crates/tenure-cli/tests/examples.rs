//! The scripts in `examples/` do what they claim.

mod run_support;

use std::path::Path;
use std::process::Command;

use run_support::{PATIENCE, World, sleep_ms, until};
use rustix::process::Signal;

/// `examples/nightly.sh`, with the command under test.
fn nightly(world: &World, ttl: &str, step: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nightly.sh");
    let bin = Path::new(run_support::TENURE).parent().unwrap();
    let mut command = world.command(script);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bin.display()));
    command.env("TTL", ttl).env("STEP", step).env("TMPDIR", world.path("."));
    command
}

fn is_free(world: &World) -> bool {
    world.record("nightly").is_some_and(|record| !record.is_held())
}

#[test]
fn the_nightly_script_works_in_steps_and_releases_its_lease() {
    let world = World::new("nightly");
    let ran = world.ran(nightly(&world, "60s", "0.1"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let token = world.record("nightly").unwrap().token;
    let steps = ["dump", "compress", "upload"].map(|step| format!("{step} with token {token}\n"));
    assert_eq!(ran.text(), steps.concat());
    assert!(is_free(&world));
}

#[test]
fn two_nightly_scripts_take_turns() {
    let world = World::new("nightly");
    let both = [world.start(nightly(&world, "60s", "0.1")), world.start(nightly(&world, "60s", "0.1"))];
    let tokens = both.map(|script| {
        let ran = script.end();
        assert_eq!(ran.code, 0, "{ran:?}");
        let token = ran.text().lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
        assert!(ran.text().lines().all(|line| line.ends_with(&token)));
        token
    });
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn a_nightly_script_that_is_killed_is_followed_by_the_next_one_after_one_ttl() {
    let world = World::new("nightly");
    let killed = world.start(nightly(&world, "2s", "30"));
    until("lease of the script", PATIENCE, || world.is_held("nightly").then_some(()));
    killed.process().send(Signal::KILL);
    let first = world.record("nightly").unwrap().token;
    let next = world.ran(nightly(&world, "60s", "0.1"));
    assert_eq!(next.code, 0, "{next:?}");
    assert!(world.record("nightly").unwrap().token > first);
}

#[test]
fn a_nightly_script_that_loses_its_lease_stops_before_its_next_step() {
    let world = World::new("nightly");
    let script = world.start(nightly(&world, "1s", "3"));
    until("lease of the script", PATIENCE, || world.is_held("nightly").then_some(()));
    sleep_ms(1_000);
    let ran = script.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert_eq!(ran.text().lines().count(), 1, "{ran:?}");
    assert!(ran.err.contains("stop acting"), "{ran:?}");
}
