//! The contract of `tenure run` with scripts: exit codes, streams, arguments, environment, signals and descriptors.
#![expect(clippy::disallowed_methods, reason = "the tests measure how long other processes take")]

mod run_support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use run_support::{
    PATIENCE, Ran, SOON, Started, TENURE, World, block_on, key, session_of, skipped, sleep_ms, until,
};
use rustix::process::Signal;
use tenure_store::{Expect, Put, Store};

/// A holder of `x` that lives as long as the world.
fn holder_of_x(world: &World) -> Started {
    let held = world.start(world.run(&["x", "--holder", "alice", "--", "sleep", "100"]));
    until("held", SOON * 5, || world.is_held("x").then_some(()));
    held
}

// ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_short_options_are_those_of_flock() {
    let world = World::new("flock");
    let _held = holder_of_x(&world);
    for options in [&["-n"][..], &["-n", "-E", "3"], &["-w", "1.5"], &["-w", "0"], &["-w1.2", "-E3"]] {
        let ran = world.ran(world.run(&[&["x"], options, &["--", "true"]].concat()));
        let code = if options.iter().any(|option| option.starts_with("-E")) { 3 } else { 75 };
        assert_eq!(ran.code, code, "{options:?}: {}", ran.err);
        assert!(ran.err.contains("is held by alice"), "{}", ran.err);
    }
    for options in [&["-w", "2s"][..], &["-w", "-1"], &["-w", "1", "-n"], &["-w", "1", "--wait", "1s"]] {
        let ran = world.ran(world.run(&[&["x"], options, &["--", "true"]].concat()));
        assert_eq!(ran.code, 64, "{options:?}: {}", ran.err);
    }
}

#[test]
fn a_run_inside_the_run_that_holds_the_lease_is_refused_at_once() {
    let world = World::new("nested");
    let inner = |options: &str| format!("{TENURE} run {options} x -- echo inner");
    let ran = world.ran(world.run(&["x", "--", "sh", "-c", &inner("")]));
    assert_eq!((ran.code, &*ran.out), (64, &b""[..]), "{}", ran.err);
    assert!(ran.err.contains("so it would wait for itself"), "{}", ran.err);
    // Without a wait, too: it would never succeed. Another lease is another lease.
    assert_eq!(world.ran(world.run(&["x", "--", "sh", "-c", &inner("--no-wait")])).code, 64);
    let ran = world.ran(world.run(&["y", "--", "sh", "-c", &inner("")]));
    assert_eq!((ran.code, &*ran.out), (0, &b"inner\n"[..]), "{}", ran.err);
    // Variables of a run that has ended do not matter.
    let mut later = world.run(&["x", "--", "echo", "later"]);
    later.env("TENURE_NAME", "x").env("TENURE_TOKEN", "7");
    assert_eq!(world.ran(later).code, 0);
}

// ── exit codes ──────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_exit_code_is_the_childs_own() {
    let world = World::new("code");
    for code in [0, 1, 7, 64, 75, 76, 126, 127, 255] {
        let ran = world.ran(world.run(&["x", "--", "sh", "-c", &format!("exit {code}")]));
        assert_eq!((ran.code, ran.troubles().as_str()), (code, ""));
        assert!(!world.is_held("x"), "it was released");
    }
    world.is_empty_soon();
}

#[test]
fn a_child_that_was_killed_by_a_signal_gives_128_and_its_number() {
    let world = World::new("signalled");
    for (name, code) in [("TERM", 143), ("KILL", 137), ("USR1", 138), ("PIPE", 141), ("HUP", 129)] {
        let ran = world.ran(world.run(&["x", "--", "sh", "-c", &format!("kill -{name} $$")]));
        assert_eq!((ran.code, ran.troubles().as_str()), (code, ""), "{name}");
        assert!(!world.is_held("x"), "it was released");
    }
    world.is_empty_soon();
}

#[test]
fn a_missing_program_gives_127_and_one_that_cannot_be_started_126() {
    let world = World::new("exec");
    fs::write(world.path("plain"), "no program").unwrap();
    fs::write(world.path("broken"), "#!/no/such/shell\n").unwrap();
    fs::set_permissions(world.path("broken"), fs::Permissions::from_mode(0o755)).unwrap();
    for (program, code) in [("./missing", 127), ("no-such-program", 127), ("./plain", 126), ("/", 126)] {
        let ran = world.ran(world.run(&["x", "--", program]));
        assert_eq!(ran.code, code, "{program}: {}", ran.err);
        assert_one_sentence(&ran);
        assert!(ran.err.contains(program), "{}", ran.err);
        let advice = [("./missing", "Check the path"), ("no-such-program", "It is not on PATH")];
        for (_, advice) in advice.iter().filter(|(of, _)| *of == program) {
            assert!(ran.err.contains(advice), "{}", ran.err);
        }
        assert!(!world.is_held("x"), "it was released");
    }
    // Shells exit with 126 or 127 here; both are correct.
    let ran = world.ran(world.run(&["x", "--", "./broken"]));
    assert!([126, 127].contains(&ran.code), "{ran:?}");
    world.is_empty_soon();
}

#[test]
fn an_invalid_command_line_gives_64() {
    let world = World::new("usage");
    let calls: [&[&str]; 9] = [
        &["run", "x"],
        &["run", "x", "--"],
        &["run", "--", "true"],
        &["run", "x", "--no-such-option", "--", "true"],
        &["run", "x", "--ttl", "fast", "--", "true"],
        &["run", "x", "--wait", "1s", "--no-wait", "--", "true"],
        &["run", "/x//", "--", "true"],
        &["no-such-command"],
        &["--store", "memory:", "run", "x", "--", "true"],
    ];
    for call in calls {
        let ran = world.ran(world.tenure(call));
        assert_eq!(ran.code, 64, "{call:?}: {}", ran.err);
        assert!(!ran.err.is_empty() && ran.out.is_empty(), "{call:?}");
    }
    let help = world.ran(world.tenure(&["run", "--help"]));
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    world.is_empty_soon();
}

#[test]
fn a_foreign_record_gives_65_and_stays_unchanged() {
    let world = World::new("foreign");
    let store = world.store();
    let put = block_on(async { store.put(&key("x"), "not a record".into(), Expect::Absent).await });
    assert!(matches!(put, Ok(Put::Applied(_))));
    let ran = world.ran(world.run(&["x", "--", "touch", "started"]));
    assert_eq!(ran.code, 65, "{ran:?}");
    assert_one_sentence(&ran);
    let there = block_on(async { store.get(&key("x")).await }).unwrap().entry.unwrap().value;
    assert_eq!(&*there, b"not a record");
    assert!(!world.exists("started"));
    world.is_empty_soon();
}

#[test]
fn an_unavailable_store_gives_69_and_one_that_promises_too_little_77() {
    let world = World::new("store");
    assert_eq!(world.ran(world.run(&["x", "--", "true"])).code, 0);
    let lock = world.lock_of("x");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let ran = world.ran(world.run(&["x", "--no-wait", "--ttl", "1s", "--", "touch", "started"]));
    assert_eq!(ran.code, 69, "{ran:?}");
    assert_one_sentence(&ran);
    let mut command = world.run(&["x", "--", "touch", "started"]);
    command.env("TENURE_STORE", "file:///proc/leases");
    let ran = world.ran(command);
    assert_eq!(ran.code, 77, "{ran:?}");
    assert_one_sentence(&ran);
    assert!(!world.exists("started"));
    world.is_empty_soon();
}

#[test]
fn unsafe_timing_gives_78_and_shows_the_arithmetic() {
    let world = World::new("unsafe");
    let calls: [&[&str]; 4] = [
        &["x", "--ttl", "100ms", "--", "touch", "started"],
        &["x", "--ttl", "0s", "--", "touch", "started"],
        &["x", "--ttl", "48h", "--", "touch", "started"],
        &["x", "--ttl", "15s", "--kill-grace", "14s", "--", "touch", "started"],
    ];
    for call in calls {
        let ran = world.ran(world.run(call));
        assert_eq!(ran.code, 78, "{call:?}: {}", ran.err);
        assert_one_sentence(&ran);
    }
    assert!(!world.exists("started"));
    world.is_empty_soon();
}

#[test]
fn a_held_lease_gives_75_or_the_requested_code_and_names_the_holder() {
    let world = World::new("held");
    let held = holder_of_x(&world);
    let token = world.record("x").unwrap().token.to_string();
    for (more, code) in [(&[][..], 75), (&["--conflict-exit-code", "9"][..], 9)] {
        let words = [&["x", "--no-wait"], more, &["--", "touch", "started"]].concat();
        let ran = world.ran(world.run(&words));
        assert_eq!(ran.code, code, "{ran:?}");
        assert_one_sentence(&ran);
        assert!(ran.err.contains("alice") && ran.err.contains(&token), "{}", ran.err);
        assert!(ran.took < SOON, "{:?}", ran.took);
    }
    assert!(!world.exists("started"));
    drop(held);
    drop(world);
}

// ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_wait_ends_after_its_time_limit() {
    let world = World::new("wait");
    let _held = holder_of_x(&world);
    let ran = world.ran(world.run(&["x", "--wait", "500ms", "--", "touch", "started"]));
    assert_eq!(ran.code, 75, "{ran:?}");
    assert!(ran.took >= Duration::from_millis(500) && ran.took < SOON, "{:?}", ran.took);
    let ran = world.ran(world.run(&["x", "--wait", "0s", "--", "touch", "started"]));
    assert_eq!(ran.code, 75, "{ran:?}");
    assert!(!world.exists("started"));
}

#[test]
fn a_waiter_starts_as_soon_as_the_lease_is_released() {
    let world = World::new("handover");
    let held = world.start(world.run(&["x", "--", "sh", "-c", "read line < go; date +%s%N > let-go"]));
    assert!(world.sh("mkfifo go").status().unwrap().success());
    until("held", SOON * 5, || world.is_held("x").then_some(()));
    let first = world.record("x").unwrap().token;
    for words in [&["x", "--wait", "20s"][..], &["x"][..]] {
        let words = [words, &["--", "sh", "-c", "date +%s%N > begun; echo $TENURE_TOKEN > token"]].concat();
        let waiter = world.start(world.run(&words));
        sleep_ms(300);
        assert!(!world.exists("begun"));
        if !world.exists("let-go") {
            fs::write(world.path("go"), "\n").unwrap();
        }
        assert_eq!(waiter.end().code, 0);
        let second: u64 = world.told("token").parse().unwrap();
        assert!(second > first.get());
        let (let_go, begun): (u64, u64) =
            (world.told("let-go").parse().unwrap(), world.told("begun").parse().unwrap());
        assert!(begun > let_go);
        if words.contains(&"--wait") {
            let late = Duration::from_nanos(begun - let_go);
            assert!(late < SOON, "{late:?} after the release");
        }
        fs::remove_file(world.path("begun")).unwrap();
        // The second round waits for a new holder.
        fs::remove_file(world.path("let-go")).unwrap();
        if !words.contains(&"--wait") {
            break;
        }
        let again = world.start(world.run(&["x", "--", "sh", "-c", "read line < go; date +%s%N > let-go"]));
        until("held", SOON * 5, || world.is_held("x").then_some(()));
        std::mem::forget(again);
    }
    assert_eq!(held.end().code, 0);
    world.is_empty_soon();
}

#[test]
fn a_waiter_waits_for_a_busy_store_as_for_a_holder() {
    let world = World::new("busy");
    assert_eq!(world.ran(world.run(&["x", "--", "true"])).code, 0);
    let lock = world.lock_of("x");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut waiter = world.start(world.run(&["x", "--ttl", "1s", "--", "touch", "started"]));
    let cause = format!(
        "tenure: still waiting for lease x on {}: no answer within the request timeout",
        world.store_url()
    );
    until("the cause", PATIENCE, || waiter.err_so_far().contains(&cause).then_some(()));
    assert!(!waiter.has_ended() && !world.exists("started"), "{}", waiter.err_so_far());
    drop(lock);
    assert_eq!(waiter.end().code, 0);
    assert!(world.exists("started"));
    world.is_empty_soon();
}

#[test]
fn a_failed_renewal_is_reported_with_its_cause_and_the_next_success_is_too() {
    let world = World::new("risk");
    let holder = [
        "x",
        "--ttl",
        "15s",
        "--kill-grace",
        "1s",
        "--verbose",
        "--",
        "sh",
        "-c",
        "echo > in; read line < end",
    ];
    assert!(tenure_testkit::shell(&format!("mkfifo {}", world.path("end").display())));
    let holder = world.start(world.run(&holder));
    world.told("in");
    let says = |part: &str| until(part, PATIENCE, || holder.err_so_far().contains(part).then_some(()));
    says("tenure: lease x is renewed, and held for ");
    let lock = world.lock_of("x");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    says("tenure: renewal of lease x failed: ");
    says(". The command is stopped in ");
    drop(lock);
    says("tenure: lease x is renewed again, and held for ");
    fs::write(world.path("end"), "\n").unwrap();
    assert_eq!(holder.end().code, 0);
    world.is_empty_soon();
}

#[test]
fn a_signal_ends_the_wait_and_nothing_is_started() {
    let world = World::new("give-up");
    let mut held = holder_of_x(&world);
    for (signal, code) in [
        (Signal::TERM, 143),
        (Signal::INT, 130),
        (Signal::HUP, 129),
        (Signal::QUIT, 131),
        (Signal::USR1, 138),
        (Signal::USR2, 140),
    ] {
        let waiter = world.start(world.run(&["x", "--", "touch", "started"]));
        let watchdog = waiter.watchdog();
        sleep_ms(150);
        let sent = Instant::now();
        assert!(waiter.process().send(signal));
        let ran = waiter.end();
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(sent.elapsed() < SOON, "{signal:?} took {:?}", sent.elapsed());
        assert!(watchdog.is_dead());
    }
    assert!(!world.exists("started"));
    assert!(!held.has_ended() && world.is_held("x"), "the holder is not disturbed");
}

#[test]
fn irrelevant_signals_do_not_end_the_wait() {
    let world = World::new("wait-on");
    let _held = holder_of_x(&world);
    let mut waiter = world.start(world.run(&["x", "--", "touch", "started"]));
    waiter.watchdog();
    sleep_ms(150);
    for signal in [Signal::CONT, Signal::WINCH, Signal::CHILD] {
        assert!(waiter.process().send(signal));
    }
    sleep_ms(200);
    assert!(!waiter.has_ended());
    waiter.process().send(Signal::KILL);
}

#[test]
fn a_waiter_that_is_killed_leaves_nothing_behind() {
    let world = World::new("killed-waiter");
    let held = holder_of_x(&world);
    let waiter = world.start(world.run(&["x", "--", "touch", "started"]));
    let watchdog = waiter.watchdog();
    waiter.process().send(Signal::KILL);
    watchdog.dies_within(SOON);
    drop(waiter);
    held.process().send(Signal::TERM);
    assert_eq!(held.end().code, 143);
    world.is_empty_soon();
    assert!(!world.exists("started"));
}

// ── streams, arguments, environment ─────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_streams_are_the_childs_own_byte_for_byte() {
    let world = World::new("streams");
    let bytes: Vec<u8> = (0..1 << 20).map(|n: u32| (n ^ (n >> 8) ^ (n >> 13)) as u8).collect();
    fs::write(world.path("bytes"), &bytes).unwrap();
    let mut command = world.run(&["x", "--quiet", "--", "sh", "-c", "tee /dev/stderr"]);
    command.stdin(fs::File::open(world.path("bytes")).unwrap());
    command.stdout(fs::File::create(world.path("out")).unwrap());
    command.stderr(fs::File::create(world.path("err")).unwrap());
    assert!(command.status().unwrap().success());
    for name in ["out", "err"] {
        assert!(fs::read(world.path(name)).unwrap() == bytes, "{name} is not what went in");
    }
    world.is_empty_soon();
}

#[test]
fn the_arguments_arrive_byte_for_byte() {
    let world = World::new("arguments");
    let arguments: [&[u8]; 11] = [
        b"",
        b"two\nlines",
        b"\xff\xfe not utf-8 \x80",
        b"--",
        b"--ttl",
        b"-x",
        b"$HOME `id` \"quoted\" 'too' \\",
        b" ",
        b"\t\r\x1b[0m",
        "ü€𝄞".as_bytes(),
        b"",
    ];
    let mut command = world.run(&["x", "--", "sh", "-c", "cat /proc/$$/cmdline", "name"]);
    command.args(arguments.map(OsStr::from_bytes));
    let ran = world.ran(command);
    assert_eq!(ran.code, 0, "{ran:?}");
    let start = b"sh\0-c\0cat /proc/$$/cmdline\0name\0";
    let expected = arguments.iter().fold(start.to_vec(), |line, argument| [&line, *argument, b"\0"].concat());
    assert_eq!(ran.out, expected);
    world.is_empty_soon();
}

#[test]
fn the_environment_is_the_callers_plus_the_variables_for_fencing() {
    let world = World::new("environment");
    let odd = OsStr::from_bytes(b"\xff=\n odd");
    let mut plain = world.command("env");
    plain.arg("-0").env("ODD", odd).env("TENURE_TOKEN", "of another holder");
    let mut under = world.run(&["jobs/nightly", "--holder", "bob the builder", "--", "env", "-0"]);
    under.env("ODD", odd).env("TENURE_TOKEN", "of another holder");
    let (plain, under) = (world.ran(plain), world.ran(under));
    assert_eq!(under.code, 0, "{under:?}");
    let variables = |ran: &Ran| -> BTreeMap<Vec<u8>, Vec<u8>> {
        let entries = ran.out.split(|&byte| byte == 0).filter(|entry| !entry.is_empty());
        let pairs = entries.map(|entry| {
            let at = entry.iter().position(|&byte| byte == b'=').unwrap();
            (entry[..at].to_vec(), entry[at + 1..].to_vec())
        });
        pairs.collect()
    };
    let mut expected = variables(&plain);
    let record = world.record("jobs/nightly").unwrap();
    for (name, value) in [
        ("TENURE_NAME", "jobs/nightly".to_owned()),
        ("TENURE_TOKEN", record.token.to_string()),
        ("TENURE_HOLDER", "bob the builder".to_owned()),
        ("TENURE_STORE", world.store_url()),
    ] {
        expected.insert(name.into(), value.into());
    }
    assert_eq!(variables(&under), expected);
    world.is_empty_soon();
}

#[test]
fn the_child_has_the_callers_directory_group_and_session() {
    let world = World::new("place");
    let script = "readlink /proc/self/cwd; cut -d' ' -f5,6 /proc/$$/stat; umask";
    let plain = world.ran(world.sh(script));
    let under =
        world.ran(world.sh(&format!("\"$TENURE\" run x -- sh -c \"{}\"", script.replace("$$", "\\$\\$"))));
    assert_eq!(under.code, 0, "{under:?}");
    assert_eq!(under.text(), plain.text());
    world.is_empty_soon();
}

// ── signals while running ───────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn each_signal_is_forwarded_once() {
    let world = World::new("passed-on");
    let script = "for s in TERM HUP INT QUIT USR1 USR2 WINCH; do trap \"echo $s >> got\" $s; done; echo ready > ready; \
                  while ! [ -e end ]; do sleep 0.02; done";
    let started = world.start(world.run(&["x", "--", "sh", "-c", script]));
    world.told("ready");
    let signals = [
        ("TERM", Signal::TERM),
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("WINCH", Signal::WINCH),
    ];
    for (name, signal) in signals {
        assert!(started.process().send(signal));
        until(name, SOON, || world.lines("got").iter().any(|line| line == name).then_some(()));
    }
    sleep_ms(200);
    let names: Vec<_> = signals.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(world.lines("got"), names, "each once, in order");
    fs::write(world.path("end"), "").unwrap();
    let ran = started.end();
    assert_eq!((ran.code, ran.troubles().as_str()), (0, ""));
    world.is_empty_soon();
}

#[test]
fn a_child_that_exits_because_of_a_forwarded_signal_gives_its_own_code() {
    let world = World::new("own-code");
    let started = world.start(world.run(&["x", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"]));
    world.told("pid");
    assert!(started.process().send(Signal::TERM));
    let ran = started.end();
    assert_eq!((ran.code, ran.troubles().as_str()), (143, ""));
    assert!(!world.is_held("x"), "it was released");

    let script = "trap 'exit 42' INT; echo $$ > pid2; while :; do sleep 0.02; done";
    let started = world.start(world.run(&["x", "--", "sh", "-c", script]));
    world.told("pid2");
    assert!(started.process().send(Signal::INT));
    let ran = started.end();
    assert_eq!((ran.code, ran.troubles().as_str()), (42, ""));
    world.is_empty_soon();
}

/// The signal sets of a program at its start.
fn signal_sets(ran: &Ran) -> Vec<String> {
    assert_eq!(ran.code, 0, "{ran:?}");
    let sets = ["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"];
    let wanted = |line: &&str| sets.iter().any(|set| line.starts_with(set));
    ran.text().lines().filter(wanted).map(str::to_owned).collect()
}

#[test]
fn the_child_inherits_the_signal_settings_of_the_caller() {
    let world = World::new("signal-sets");
    // Not PIPE: every Rust program changes it at its start, and CMD gets the default again.
    for ignored in ["", "HUP", "HUP INT QUIT", "USR1 TERM"] {
        let trap = if ignored.is_empty() { String::new() } else { format!("trap '' {ignored}; ") };
        let plain = world.ran(world.sh(&format!("{trap}exec cat /proc/self/status")));
        let under = world.ran(world.sh(&format!("{trap}exec \"$TENURE\" run x -- cat /proc/self/status")));
        assert_eq!(signal_sets(&under), signal_sets(&plain), "ignoring {ignored:?}");
    }
    world.is_empty_soon();
}

#[test]
fn a_caller_that_ignores_sigchld_gets_the_childs_code_at_once() {
    let world = World::new("ignored-chld");
    // A shell cannot be made to ignore it.
    let ignoring = "exec env --ignore-signal=CHLD";
    let ran = world.ran(world.sh(&format!("{ignoring} \"$TENURE\" run x -- sh -c 'sleep 100 & exit 3'")));
    assert_eq!((ran.code, ran.troubles().as_str()), (3, ""));
    assert!(ran.took < Duration::from_millis(900), "{:?}: the end was not noticed", ran.took);
    let plain = world.ran(world.sh(&format!("{ignoring} cat /proc/self/status")));
    let under = world.ran(world.sh(&format!("{ignoring} \"$TENURE\" run x -- cat /proc/self/status")));
    assert_eq!(signal_sets(&under), signal_sets(&plain));
    world.is_empty_soon();
}

#[test]
fn a_signal_that_the_caller_ignores_ends_neither_a_waiter_nor_a_child() {
    let world = World::new("nohup");
    let run =
        "nohup \"$TENURE\" run x -- sh -c 'echo $$ > pid; while ! [ -e end ]; do sleep 0.02; done; exit 5'";
    let mut holder = world.start(world.sh(&format!("exec {run}")));
    world.told("pid");
    let mut waiter = world.start(world.sh("trap '' HUP; exec \"$TENURE\" run x -- sh -c 'exit 6'"));
    let watchdog = waiter.watchdog();
    sleep_ms(150);
    for started in [&holder, &waiter] {
        assert!(started.process().send(Signal::HUP));
    }
    assert!(watchdog.send(Signal::HUP));
    sleep_ms(300);
    assert!(!holder.has_ended() && !waiter.has_ended() && !watchdog.is_dead());
    fs::write(world.path("end"), "").unwrap();
    assert_eq!(holder.end().code, 5);
    assert_eq!(waiter.end().code, 6);
    world.is_empty_soon();
}

#[test]
fn a_closed_pipe_ends_the_child_as_it_would_without_tenure() {
    let world = World::new("pipe");
    let ran = world.ran(world.sh("{ \"$TENURE\" run x -- yes; echo $? > code; } | head -n 1"));
    assert_eq!(ran.text(), "y\n");
    assert_eq!(world.told("code"), "141");
    world.is_empty_soon();
}

// ── descriptors ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// The open descriptors that the child listed, with their targets.
fn descriptors(ran: &Ran) -> BTreeMap<i32, String> {
    assert_eq!(ran.code, 0, "{ran:?}");
    let pairs = ran.text().lines().filter_map(|line| {
        let (number, what) = line.split_once(' ')?;
        // Descriptors in `/proc` belong to the listing itself.
        (!what.starts_with("/proc/")).then_some((number.parse().ok()?, what.to_owned()))
    });
    pairs.collect()
}

#[test]
fn the_child_inherits_the_callers_descriptors_and_only_the_witness_in_addition() {
    let world = World::new("descriptors");
    fs::write(world.path("given"), "given\n").unwrap();
    let list = "exec find /proc/self/fd -type l -printf \"%f %l\\n\"";
    let opened = "exec 5<given 9>>given";
    let plain = world.ran(world.sh(&format!("{opened}; exec sh -c '{list}'")));
    let under = world.ran(world.sh(&format!("{opened}; exec \"$TENURE\" run x -- sh -c '{list}'")));
    let (plain, under) = (descriptors(&plain), descriptors(&under));
    assert!(plain[&5].ends_with("/given") && plain[&9].ends_with("/given"));
    for (number, what) in &plain {
        if *number > 2 {
            assert_eq!(under.get(number), Some(what), "{under:?}");
        }
    }
    let ours: Vec<_> = under.iter().filter(|(number, _)| !plain.contains_key(number)).collect();
    assert!(ours.len() <= 1, "{ours:?}");
    for (number, what) in ours {
        assert!(*number > 100 && what.starts_with(world.leases().to_str().unwrap()), "{number} {what}");
    }
    world.is_empty_soon();
}

#[test]
fn the_watchdog_keeps_no_descriptor_of_the_caller_open() {
    let world = World::new("watchdog");
    fs::write(world.path("given"), "").unwrap();
    let started = world.start(
        world.sh("exec 5<given; exec \"$TENURE\" run x -- sh -c 'echo $$ > pid; exec sleep 100' | cat"),
    );
    let child = world.told_pid("pid");
    let watchdog = run_support::parent_of(child.number).unwrap();
    let link = |name: &str| fs::read_link(format!("/proc/{watchdog}/{name}")).unwrap();
    assert_eq!(link("cwd").to_str(), Some("/"));
    assert_eq!(session_of(watchdog), Some(watchdog), "a session of its own");
    for entry in fs::read_dir(format!("/proc/{watchdog}/fd")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let what = link(&format!("fd/{name}")).to_str().unwrap().to_owned();
        let is_ours = what == "/dev/null"
            || what.starts_with("socket:")
            || what.starts_with("anon_inode:")
            || what.starts_with("/sys/fs/cgroup/")
            || what.starts_with(world.leases().to_str().unwrap());
        assert!(is_ours, "{name} {what}");
    }
    drop(started);
}

#[test]
fn a_reader_sees_the_end_of_the_pipe_as_soon_as_supervisor_and_tree_are_dead() {
    let world = World::new("pipe-end");
    let (mut reader, writer) = pipe();
    let mut command =
        world.run(&["x", "--", "sh", "-c", "echo $$ > pid; trap '' TERM; while :; do sleep 0.05; done"]);
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut supervisor = command.spawn().unwrap();
    drop(command);
    let child = world.told_pid("pid");
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    child.dies_within(SOON);
    let dead = Instant::now();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(dead.elapsed() < Duration::from_millis(500), "{:?} after the tree was dead", dead.elapsed());
    world.is_empty_soon();
}

/// A pipe that no other child of this process inherits.
fn pipe() -> (fs::File, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    (OwnedFd::from(reader).into(), writer.into())
}

#[test]
fn orphans_are_reaped_while_the_child_runs() {
    let world = World::new("orphans");
    // Each of them loses its parent at once, and exits a moment later.
    let script = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 &); done; echo $$ > pid; exec sleep 100";
    let started = world.start(world.run(&["x", "--", "sh", "-c", script]));
    let child = world.told_pid("pid");
    let watchdog = run_support::parent_of(child.number).unwrap();
    until("reaping of the orphans", SOON, || {
        (run_support::children_of(watchdog) == [child.number]).then_some(())
    });
    started.process().send(Signal::TERM);
    assert_eq!(started.end().code, 143);
    world.is_empty_soon();
}

#[test]
fn it_runs_with_closed_streams() {
    let world = World::new("closed");
    let status =
        world.sh("exec \"$TENURE\" run x -- sh -c 'echo $TENURE_TOKEN > token' <&- >&- 2>&-").status();
    assert!(status.unwrap().success());
    assert_eq!(world.told("token"), world.record("x").unwrap().token.to_string());
    world.is_empty_soon();
}

// ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_machine_without_room_for_more_processes_gives_69_and_a_sentence() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can be a user of whom nothing else runs");
    }
    // This uid is used only here, so that the kernel counts no other processes.
    const USER: u32 = 54_329;
    let world = World::under(&std::env::temp_dir(), "no-room");
    chown(world.path(""), Some(USER), Some(USER)).unwrap();
    fs::copy(TENURE, world.path("tenure")).unwrap();
    let limited = |limit: u64| {
        let mut command = world.command("prlimit");
        command.arg(format!("--nproc={limit}")).arg(world.path("tenure")).args([
            "run",
            "x",
            "--no-wait",
            "--",
            "true",
        ]);
        command.uid(USER).gid(USER);
        let ran = world.ran(command);
        if ran.code != 0 {
            assert_eq!(ran.code, 69, "{ran:?}");
            assert_one_sentence(&ran);
        }
        (ran.code, ran.err)
    };
    let runs: Vec<_> = (1..12).map(limited).collect();
    let has = |code: i32| runs.iter().any(|(ended, _)| *ended == code);
    assert!(has(0) && has(69), "{runs:?}");
}

#[test]
fn a_log_has_one_line_for_each_event_and_none_if_it_is_quiet() {
    let world = World::new("log");
    let held = holder_of_x(&world);
    let waiter = world.start(world.run(&["x", "--wait", "1m", "--", "true"]));
    let standing_by = "tenure: standing by for at most 1m: lease x on ";
    until("the reason for the wait", PATIENCE, || waiter.err_so_far().starts_with(standing_by).then_some(()));
    held.process().send(Signal::TERM);
    let ran = waiter.end();
    let lines: Vec<_> = ran.err.lines().collect();
    assert_eq!((ran.code, lines.len()), (0, 3), "{ran:?}");
    assert!(lines[0].contains(" is held by ") && lines[0].contains(" left"), "{ran:?}");
    assert!(lines[1].starts_with("tenure: lease x is granted, with token "), "{ran:?}");
    assert_eq!(lines[2], "tenure: lease x is released");
    let quiet = world.ran(world.run(&["x", "--quiet", "--", "true"]));
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""));
}

#[test]
fn json_events_are_one_object_per_line() {
    let world = World::new("json");
    let _held = holder_of_x(&world);
    let waiting = world.ran(world.run(&["x", "--wait", "200ms", "--json", "--", "true"]));
    assert_eq!(waiting.code, 75);
    let granted = world.ran(world.run(&["y", "--json", "--", "true"]));
    assert_eq!(granted.code, 0);
    for (ran, expected) in [(&waiting, "waiting"), (&granted, "granted")] {
        let name = if expected == "waiting" { "x" } else { "y" };
        let events: Vec<serde_json::Value> = ran
            .err
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
            .collect();
        assert_eq!(events[0]["event"], expected, "{}", ran.err);
        for event in events.iter().filter(|event| event["event"].is_string()) {
            assert_eq!(event["name"], name, "{event}");
            assert!(event["token"].is_u64() && event["holder"].is_string(), "{event}");
            assert!(event["store"].as_str().unwrap().starts_with("file://"), "{event}");
            assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
        }
        let conflict = events.iter().find(|event| event["event"] == "conflict");
        assert_eq!(conflict.is_some(), expected == "waiting", "{}", ran.err);
        assert!(
            conflict.is_none_or(|event| event["left_ms"].as_u64().is_some_and(|left| left > 0)),
            "{}",
            ran.err
        );
    }
}

#[test]
fn the_lease_is_renewed_for_as_long_as_the_child_runs() {
    let world = World::new("renewed");
    let ran = world.ran(world.run(&["x", "--ttl", "1s", "--", "sleep", "3"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.took >= Duration::from_secs(3));
    world.is_empty_soon();
}

/// Asserts that an error is one sentence on one line.
fn assert_one_sentence(ran: &Ran) {
    let troubles = ran.troubles();
    assert!(troubles.starts_with("tenure: ") && troubles.trim_end().lines().count() == 1, "{:?}", ran.err);
}

#[test]
fn the_command_is_the_one_that_was_built() {
    assert!(Command::new(TENURE).arg("--version").stdout(Stdio::null()).status().unwrap().success());
}
