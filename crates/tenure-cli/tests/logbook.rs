//! The logbook of this machine: a command that does not wait takes over the lease of a dead holder after one ttl,
//! although the store cannot age its version.
//!
//! The holder is in another time namespace, so that its clock is not comparable with this one. Its witness is removed,
//! so that its death cannot be observed.
#![expect(clippy::disallowed_methods, reason = "the tests measure how long other processes take")]

mod run_support;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use run_support::{PATIENCE, TENURE, World, skipped, sleep_ms, until};

const TTL: Duration = Duration::from_secs(3);

/// A world in which a holder of `x`, on another clock, died without a trace; `None` without time namespaces.
fn dead_holder(name: &str) -> Option<World> {
    let namespace = ["--user", "--map-root-user", "--time", "--boottime", "86400", "--fork", "--"];
    let can = Command::new("unshare").args(namespace).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        skipped("no time namespaces here");
        return None;
    }
    let world = World::new(name);
    let mut command = world.command("unshare");
    command.args(namespace).args([TENURE, "run", "x", "--ttl", "3s", "--holder", "dead", "--"]);
    let started = world.start({
        command.args(["sleep", "100"]);
        command
    });
    // Not while it executes another program: for a moment it has no environment, and the mark is in the environment.
    let is_sleep = |what: &String| what.starts_with("sleep");
    until("a holder", PATIENCE, || world.alive().values().any(is_sleep).then_some(()));
    for (number, _) in world.alive() {
        if let Some(process) = run_support::Process::of(number) {
            process.send(rustix::process::Signal::KILL);
        }
    }
    drop(started);
    world.is_empty_soon();
    for entry in fs::read_dir(world.leases()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "witness") {
            fs::remove_file(path).unwrap();
        }
    }
    assert!(world.is_held("x"), "it was killed, and released nothing");
    Some(world)
}

fn tries(world: &World) -> run_support::Ran {
    world.ran(world.run(&["x", "--ttl", "3s", "--no-wait", "--", "true"]))
}

#[test]
fn a_cron_job_that_never_waits_gets_the_lease_of_a_killed_holder_after_one_ttl() {
    let Some(world) = dead_holder("cron") else { return };
    let began = Instant::now();
    let mut held = 0;
    loop {
        let ran = tries(&world);
        match ran.code {
            0 => break,
            75 => held += 1,
            _ => panic!("{ran:?}"),
        }
        assert!(ran.err.starts_with("tenure: lease x on file://"), "{ran:?}");
        assert!(began.elapsed() < PATIENCE, "it is held for ever");
        sleep_ms(1_000);
    }
    assert!(began.elapsed() >= TTL, "{:?}", began.elapsed());
    assert!(held >= 1);
    assert!(world.path("state/tenure-logbook").is_dir());
    world.is_empty_soon();
}

#[test]
fn without_the_logbook_every_try_is_the_first() {
    let Some(world) = dead_holder("forgets") else { return };
    let end = Instant::now() + TTL + Duration::from_secs(2);
    while Instant::now() < end {
        assert_eq!(tries(&world).code, 75);
        fs::remove_dir_all(world.path("state/tenure-logbook")).unwrap();
        sleep_ms(300);
    }
}

#[test]
fn a_second_reading_can_confirm_what_the_first_could_not() {
    let Some(world) = dead_holder("looks") else { return };
    let looks = |words: &[&str]| world.ran(world.tenure(words));
    let judged = |ran: &run_support::Ran| {
        let seen: serde_json::Value = serde_json::from_str(ran.text()).unwrap();
        let lease = if seen["leases"].is_array() { seen["leases"][0].clone() } else { seen };
        (lease["state"].as_str().unwrap().to_owned(), lease["judged"].as_bool())
    };
    let first = looks(&["status", "x", "--json"]);
    assert_eq!((first.code, judged(&first), first.err.as_str()), (0, ("held".into(), Some(false)), ""));
    let second = looks(&["ls", "--json"]);
    // On a very busy machine it may have run out by now.
    let known = [("held".into(), Some(true)), ("run-out".into(), None)];
    assert!(second.code == 0 && known.contains(&judged(&second)), "{second:?}");
    sleep_ms(TTL.as_millis() as u64 + 100);
    let third = looks(&["ls", "--json"]);
    assert_eq!(judged(&third).0, "run-out");
    assert_eq!(looks(&["status", "x"]).code, 1);
    assert_eq!(tries(&world).code, 0, "earlier readings count for a contender");
}

#[test]
fn an_unusable_state_directory_is_reported_once_and_the_command_continues() {
    let Some(world) = dead_holder("unusable") else { return };
    let (state, elsewhere) = (world.path("state"), world.path("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    fs::create_dir(&state).unwrap();
    let logbook = state.join("tenure-logbook");
    symlink(&elsewhere, &logbook).unwrap();
    let sentence = format!(
        "sightings are not stored in {}: it is a symbolic link, and Tenure does not follow links. Remove it",
        logbook.display()
    );
    let ran = tries(&world);
    let lines: Vec<_> = ran.err.lines().collect();
    assert_eq!((ran.code, lines.len(), lines[0]), (75, 2, format!("tenure: {sentence}").as_str()), "{ran:?}");
    assert!(lines[1].contains("is held by dead"), "{ran:?}");
    let ran = world.ran(world.tenure(&["status", "x"]));
    assert_eq!((ran.code, ran.err), (0, format!("tenure: {sentence}\n")));
    assert!(ran.out.starts_with(b"x: held by dead"));
    let ran = world.ran(world.tenure(&["ls", "--json"]));
    let warning: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, &warning["warning"]["message"]), (0, &sentence.into()));
    let quiet = world.ran(world.run(&["x", "--ttl", "3s", "--no-wait", "--quiet", "--", "true"]));
    assert_eq!((quiet.code, quiet.err.as_str()), (75, ""));
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0, "nothing was written there");
}

/// Runs in a separate mount namespace, where the state directory is a small disk.
fn on_a_disk(world: &World, disk: &str) -> run_support::Ran {
    let script = format!(
        "mount -t tmpfs -o size=4k tenure \"$XDG_STATE_HOME\" && {disk} && exec \"$TENURE\" run x --ttl 3s --no-wait \
         -- true"
    );
    let mut command = world.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c", &script]).env("TENURE", TENURE);
    world.ran(command)
}

#[test]
fn a_read_only_or_full_state_directory_is_reported_with_the_next_step() {
    let Some(world) = dead_holder("disks") else { return };
    fs::create_dir(world.path("state")).unwrap();
    for (disk, step) in [
        ("mount -o remount,ro,bind \"$XDG_STATE_HOME\"", "Mount it writable, or use another directory"),
        ("! head -c 8192 /dev/zero > \"$XDG_STATE_HOME/all\" 2> /dev/null", "Free some space there"),
    ] {
        let ran = on_a_disk(&world, disk);
        let lines: Vec<_> = ran.err.lines().collect();
        assert_eq!((ran.code, lines.len()), (75, 2), "{ran:?}");
        let begin = "tenure: sightings are not stored in ";
        assert!(lines[0].starts_with(begin) && lines[0].ends_with(step), "{ran:?}");
    }
}

#[test]
fn a_user_without_a_home_has_no_logbook_and_sees_no_warning() {
    let Some(world) = dead_holder("homeless") else { return };
    let mut command = world.run(&["x", "--ttl", "3s", "--no-wait", "--", "true"]);
    command.env_remove("XDG_STATE_HOME").env("HOME", "/nonexistent");
    let ran = world.ran(command);
    assert_eq!((ran.code, ran.err.lines().count()), (75, 1), "{ran:?}");
    assert!(ran.err.contains("is held by dead"), "{ran:?}");
}
