//! `tenure steal`: taking over a lease deliberately.

mod run_support;

use run_support::{World, said};
use rustix::process::Signal;
use tenure::record::End;

/// A holder that works under the lease until TERM, and logs that it was stopped.
const WORK: &str = "echo $$ > pid; trap 'echo stopped >> log; exit 0' TERM; while :; do sleep 0.05; done";

/// A `tenure run` whose child works.
fn working(world: &World, ttl: &str) -> run_support::Started {
    let run = world.start(world.run(&["job", "--ttl", ttl, "--holder", "old", "--", "sh", "-c", WORK]));
    world.told("pid");
    run
}

#[test]
fn a_run_that_is_stolen_from_stops_its_child_and_names_thief_and_reason_before_the_thief_starts() {
    let world = World::new("steal");
    let old = working(&world, "3s");
    let steal = ["steal", "job", "--reason", "node a is drained", "--holder", "boss"];
    let mut thief = world.tenure(&steal);
    thief.args(["--", "sh", "-c", "echo started >> log; echo $TENURE_TOKEN"]);
    let thief = world.ran(thief);
    said(&thief, 0, &["lease job on file:///", "held by old", "asking it to release"]);
    said(&old.end(), 76, &["lease job of old", "file:///", "boss takes it over: node a is drained"]);
    assert_eq!(world.lines("log"), ["stopped", "started"]);
    let record = world.record("job").unwrap();
    assert_eq!(record.token.to_string(), thief.text().trim());
    let past: Vec<_> = record.history.iter().map(|past| past.end.clone()).collect();
    let stolen = End::Revoked { by: "boss".into(), because: "node a is drained".into() };
    assert_eq!(past, [stolen, End::Released]);
    world.is_empty_soon();
}

#[test]
fn a_free_lease_is_simply_granted_and_a_handle_printed() {
    let world = World::new("steal");
    let handle = world.ran(world.tenure(&["steal", "job", "--reason", "just so"]));
    said(&handle, 0, &[]);
    assert_eq!(handle.err, "");
    let mut release = world.tenure(&["release"]);
    release.arg(handle.text().trim());
    said(&world.ran(release), 0, &[]);
    assert!(!world.is_held("job"));
}

#[test]
fn steal_does_not_wait_for_a_holder_that_is_dead_on_this_machine() {
    let world = World::new("steal");
    let old = working(&world, "1h");
    let child = world.told_pid("pid");
    old.process().send(Signal::KILL);
    child.dies_within(run_support::PATIENCE);
    let thief = world.ran(world.tenure(&["steal", "job", "--reason", "it is dead", "--wait", "20s"]));
    said(&thief, 0, &[]);
}

#[test]
fn steal_waits_for_a_silent_holder_until_its_lease_runs_out() {
    let world = World::new("steal");
    let old = world.ran(world.tenure(&["acquire", "job", "--ttl", "1500ms", "--holder", "old"]));
    said(&old, 0, &[]);
    let early = world.ran(world.tenure(&["steal", "job", "--reason", "hurry", "--wait", "100ms"]));
    said(&early, 75, &["held by old", "asked to release and has not yet", "--now"]);
    let thief = world.ran(world.tenure(&["steal", "job", "--reason", "hurry", "--json"]));
    said(&thief, 0, &["\"event\":\"revoking\""]);
    assert!(thief.text().contains("\"handle\":\"tenure1_"));
    let mut late = world.tenure(&["renew"]);
    late.arg(old.text().trim());
    said(&world.ran(late), 76, &["stop acting"]);
}

#[test]
fn a_script_with_a_handle_sees_the_reason_and_yields_by_releasing() {
    let world = World::new("steal");
    let old = world.ran(world.tenure(&["acquire", "job", "--ttl", "1h", "--holder", "old"]));
    let thief = world.start(world.tenure(&["steal", "job", "--reason", "my turn", "--holder", "boss"]));
    run_support::until("revocation", run_support::PATIENCE, || {
        world.record("job").filter(|record| matches!(record.state, tenure::record::State::Revoked(_)))
    });
    let with = |verb: &str| {
        let mut command = world.tenure(&[verb]);
        command.arg(old.text().trim());
        world.ran(command)
    };
    said(&with("renew"), 76, &["lease job of old", "boss takes it over: my turn"]);
    said(&with("release"), 0, &[]);
    said(&thief.end(), 0, &[]);
    said(&with("release"), 76, &["boss takes it over: my turn"]);
}

#[test]
fn stealing_at_once_warns_and_the_former_holder_stops_at_its_next_renewal() {
    let world = World::new("steal");
    let old = working(&world, "3s");
    let mut thief =
        world.tenure(&["steal", "job", "--reason", "it hangs", "--now", "--quiet", "--holder", "boss"]);
    thief.args(["--ttl", "3s", "--", "sh", "-c", "echo started >> log; sleep 3"]);
    let thief = world.start(thief);
    let old = old.end();
    said(&old, 76, &["boss takes it over: it hangs. Run it again when that holder is done"]);
    let thief = thief.end();
    said(&thief, 0, &["held by old", "not waiting for it", "both may act at once", "checks the token"]);
    let record = world.record("job").unwrap();
    assert_eq!(record.history[0].end, End::Revoked { by: "boss".into(), because: "it hangs".into() });
}

#[test]
fn a_lease_that_another_holder_has_already_is_not_reported_as_released() {
    let world = World::new("steal");
    let mut old = world.run(&["job", "--ttl", "3s", "--holder", "old", "--json", "--"]);
    old.args(["sh", "-c", WORK]);
    let old = world.start(old);
    world.told("pid");
    let taking = ["steal", "job", "--reason", "it hangs", "--now", "--holder", "boss", "--", "true"];
    assert_eq!(world.ran(world.tenure(&taking)).code, 0);
    let old = old.end();
    said(&old, 76, &[r#"{"event":"stopping""#, r#""why":"lost""#, "boss takes it over: it hangs"]);
    assert!(!old.err.contains("released"), "{old:?}");
}

#[test]
fn a_thief_that_has_released_since_is_still_named() {
    let world = World::new("steal");
    let file = world.path("lease");
    let acquired = ["acquire", "job", "--holder", "old", "--file", file.to_str().unwrap()];
    assert_eq!(world.ran(world.tenure(&acquired)).code, 0);
    let taking = ["steal", "job", "--reason", "it hangs", "--now", "--holder", "boss", "--", "true"];
    assert_eq!(world.ran(world.tenure(&taking)).code, 0);
    assert_eq!(world.ran(world.run(&["job", "--holder", "third", "--", "true"])).code, 0);
    let renewed = world.ran(world.tenure(&["renew", "--file", file.to_str().unwrap()]));
    said(&renewed, 76, &["lease job of old", "boss takes it over: it hangs"]);
}

#[test]
fn two_thieves_at_once_get_the_lease_one_after_the_other() {
    let world = World::new("steal");
    let old = working(&world, "3s");
    let thieves: Vec<_> = ["one", "two"]
        .map(|name| {
            let mut thief = world.tenure(&["steal", "job", "--reason", "mine", "--holder", name, "--quiet"]);
            thief.args(["--", "sh", "-c", "echo in >> log; sleep 0.2; echo out >> log"]);
            world.start(thief)
        })
        .into();
    for thief in thieves {
        said(&thief.end(), 0, &[]);
    }
    said(&old.end(), 76, &["takes it over: mine"]);
    assert_eq!(world.lines("log"), ["stopped", "in", "out", "in", "out"]);
}

#[test]
fn a_theft_without_a_reason_is_refused_and_nothing_is_touched() {
    let world = World::new("steal");
    let held = world.ran(world.tenure(&["acquire", "job"]));
    said(&held, 0, &[]);
    let before = world.record("job");
    for words in [
        &["steal", "job"][..],
        &["steal", "job", "--now"],
        &["steal", "job", "--reason", ""],
        &["steal", "job", "--reason", " "],
        &["steal", "job", "--reason", "two\nlines"],
        &["steal", "job", "--reason", &"x".repeat(201)],
    ] {
        let ran = world.ran(world.tenure(words));
        said(&ran, 64, &["--reason"]);
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
    assert_eq!(world.record("job"), before);
    for wrong in [
        &["steal", "job", "--reason", "x", "--kill-grace", "1s"][..],
        &["steal", "job", "--reason", "x", "--file", "f", "--", "true"],
        &["steal", "../job", "--reason", "x"],
    ] {
        said(&world.ran(world.tenure(wrong)), 64, &[]);
    }
    assert_eq!(world.record("job"), before);
}
