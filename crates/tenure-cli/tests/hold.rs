//! `tenure hold`: a lease that is renewed in the background while a script lives.

mod run_support;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use run_support::{PATIENCE, Process, Ran, Started, TENURE, World, children_of, said, sleep_ms, until};
use rustix::process::{Pid, Signal, kill_process_group};
use tenure::record::End;
use tenure_testkit::wait_until;

/// The shells whose scripts are tested: they treat descriptors and traps differently.
const SHELLS: [&str; 2] = ["dash", "bash"];

/// The beginning of a script that holds `job` by descriptor 9.
const HELD: &str =
    r#"exec 9>>lock; token=$("$TENURE" hold job --fd 9 --ttl 1h) || exit; echo "$token" >token; "#;

/// Waits in a script without the descriptor.
const SLEEP: &str = "sleep 1000 9>&-";

/// A script, in a process group of its own, as a shell with job control starts it.
fn script(world: &World, shell: &str, text: &str) -> Command {
    let mut command = world.command(shell);
    command.args(["-c", text]).env("TENURE", TENURE).process_group(0);
    command
}

/// Does this in a new world for each shell that is installed.
fn in_each_shell(name: &str, test: impl Fn(&World, &str)) {
    for shell in SHELLS {
        if tenure_testkit::shell(&format!("command -v {shell} >/dev/null")) {
            test(&World::new(name), shell);
        } else {
            run_support::skipped(&format!("{shell} is not installed"));
        }
    }
}

/// Starts a script that holds `job` by descriptor 9, and goes on with this text.
fn holding(world: &World, shell: &str, text: &str) -> Started {
    let started = world.start(script(world, shell, &format!("{HELD}{text}")));
    world.told("token");
    assert!(world.is_held("job"));
    started
}

/// The keepers of this world.
fn keepers(world: &World) -> Vec<Process> {
    let named = |number: &i32| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|name| name.trim() == "lease-keeper")
    };
    world.alive().into_keys().filter(named).filter_map(Process::of).collect()
}

fn keeper(world: &World) -> Process {
    until("a keeper", PATIENCE, || keepers(world).pop())
}

fn is_free_soon(world: &World, name: &str) {
    wait_until("the lease is released", || !world.is_held(name));
}

fn tenure(world: &World, words: &[&str]) -> Ran {
    world.ran(world.tenure(words))
}

/// The ends of the past terms of `job`, oldest first.
fn ends(world: &World) -> Vec<End> {
    world.record("job").unwrap().history.iter().map(|past| past.end.clone()).collect()
}

// ── the life of a script ────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_killed_script_frees_the_lease_at_once_and_not_after_its_ttl() {
    in_each_shell("hold-killed", |world, shell| {
        let script = holding(world, shell, SLEEP);
        let token = world.record("job").unwrap().token;
        assert_eq!(world.told("token"), token.to_string());
        script.process().send(Signal::KILL);
        is_free_soon(world, "job");
        assert_eq!(world.record("job").unwrap().token, token, "it was released, not taken over");
        assert_eq!(ends(world), [End::Released]);
        wait_until("the keeper exits", || keepers(world).is_empty());
    });
}

#[test]
fn a_background_process_with_the_descriptor_keeps_the_lease_after_the_script_has_ended() {
    in_each_shell("hold-child", |world, shell| {
        let ran = holding(world, shell, "sleep 1000 & echo $! >child; exit 4").end();
        assert_eq!((ran.code, ran.err.as_str()), (4, ""));
        sleep_ms(500);
        assert!(world.is_held("job"), "its child has the descriptor");
        world.told_pid("child").send(Signal::KILL);
        is_free_soon(world, "job");
    });
}

#[test]
fn a_script_that_closes_the_descriptor_frees_the_lease_and_goes_on() {
    in_each_shell("hold-close", |world, shell| {
        let waits = "while [ ! -e go ]; do sleep 0.02; done";
        let mut script = holding(world, shell, &format!("{waits}; exec 9>&-; {SLEEP}"));
        fs::write(world.path("go"), "").unwrap();
        is_free_soon(world, "job");
        assert!(!script.has_ended());
        assert_eq!(fs::read(world.path("lock")).unwrap(), b"", "nothing is written to the file");
    });
}

#[test]
fn a_step_that_takes_longer_than_the_ttl_needs_no_renewals_of_the_script() {
    in_each_shell("hold-long", |world, shell| {
        let text = r#"exec 9>>lock; token=$("$TENURE" hold job --fd 9 --ttl 2s) || exit
            sleep 5; "$TENURE" run job --no-wait -- touch ran; echo $?; echo $token"#;
        let ran = world.ran(script(world, shell, text));
        let token = world.record("job").unwrap().token;
        assert_eq!((ran.code, ran.text()), (0, format!("75\n{token}\n").as_str()), "{ran:?}");
        assert!(!world.exists("ran"));
        is_free_soon(world, "job");
        assert_eq!(ends(world), [End::Released], "it was one term");
    });
}

#[test]
fn ctrl_c_and_a_hang_up_end_the_script_and_the_keeper_releases() {
    in_each_shell("hold-terminal", |world, shell| {
        for signal in [Signal::INT, Signal::HUP] {
            let _ = fs::remove_file(world.path("token"));
            let script = holding(world, shell, "sleep 1000; sleep 1000");
            let keeper = keeper(world);
            assert_ne!(
                run_support::session_of(keeper.number),
                run_support::session_of(script.process().number)
            );
            kill_process_group(Pid::from_raw(script.process().number).unwrap(), signal).unwrap();
            script.end();
            is_free_soon(world, "job");
            keeper.dies_within(PATIENCE);
        }
    });
}

#[test]
fn two_scripts_with_one_file_do_not_disturb_each_other() {
    in_each_shell("hold-two", |world, shell| {
        let text = |name: &str| {
            format!(r#"exec 9>>lock; "$TENURE" hold {name} --fd 9 --ttl 1h >{name} || exit; {SLEEP}"#)
        };
        let [a, b] = ["a", "b"].map(|name| world.start(script(world, shell, &text(name))));
        world.told("a");
        world.told("b");
        assert!(world.is_held("a") && world.is_held("b"));
        a.process().send(Signal::KILL);
        is_free_soon(world, "a");
        sleep_ms(500);
        assert!(world.is_held("b"));
        b.process().send(Signal::KILL);
        is_free_soon(world, "b");
    });
}

#[test]
fn one_descriptor_can_hold_two_leases() {
    let world = World::new("hold-both");
    let text =
        r#"exec 9>>lock; "$TENURE" hold a --fd 9 && "$TENURE" hold b --fd 9 && echo >both; exec sleep 1000"#;
    let script = world.start(script(&world, "sh", text));
    world.told("both");
    assert!(world.is_held("a") && world.is_held("b"));
    script.process().send(Signal::KILL);
    is_free_soon(&world, "a");
    is_free_soon(&world, "b");
}

#[test]
fn with_pid_the_lease_lapses_and_is_not_released_when_the_process_ends() {
    in_each_shell("hold-pid", |world, shell| {
        let text = format!(r#""$TENURE" hold job --pid $$ --ttl 2s >token; {SLEEP}"#);
        let script = world.start(script(world, shell, &text));
        world.told("token");
        let keeper = keeper(world);
        sleep_ms(3_000);
        assert_eq!(tenure(world, &["run", "job", "--no-wait", "--", "true"]).code, 75, "it was renewed");
        script.process().send(Signal::KILL);
        keeper.dies_within(PATIENCE);
        assert!(world.is_held("job"), "its children may go on");
        assert_eq!(tenure(world, &["run", "job", "--", "true"]).code, 0);
        assert_eq!(ends(world), [End::RanOut, End::Released]);
    });
}

// ── losses ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A script with a trap and a child that has the descriptor.
fn trapping(world: &World, shell: &str, options: &str, trap: &str) -> Started {
    let text = format!(
        r#"trap '{trap}' TERM USR1; exec 9>>lock
        token=$("$TENURE" hold job --fd 9 --holder me {options}) || exit
        sleep 1000 & echo $! >child; echo $token >token; wait"#
    );
    let started = world.start(script(world, shell, &text));
    world.told("token");
    started
}

/// The end of a script and of its keeper, which reports the loss after it has sent the signal.
fn ended_after_loss(world: &World, script: Started) -> Ran {
    wait_until("the keeper exits", || keepers(world).is_empty());
    script.end()
}

#[test]
fn after_a_loss_each_process_with_the_descriptor_is_signalled_and_a_trap_runs() {
    in_each_shell("hold-lost", |world, shell| {
        let script = trapping(world, shell, "--ttl 3s", "echo trapped >trapped; exit 3");
        let child = world.told_pid("child");
        let taking = ["steal", "job", "--reason", "it hangs", "--now", "--holder", "boss", "--", "true"];
        assert_eq!(tenure(world, &taking).code, 0);
        let parts = [
            "lease job of me (token",
            "is lost: boss takes it over: it hangs. TERM was sent to 2 processes with \
             descriptor 9\n",
        ];
        said(&ended_after_loss(world, script), 3, &parts);
        assert_eq!(world.told("trapped"), "trapped");
        child.dies_within(PATIENCE);
    });
}

#[test]
fn a_thief_that_asks_is_granted_the_lease_when_the_script_has_ended_and_not_before() {
    in_each_shell("hold-asked", |world, shell| {
        let script = trapping(world, shell, "--ttl 9s --json", "sleep 0.5; echo stopped >>log; exit 3");
        let thief = ["steal", "job", "--reason", "my turn", "--", "sh", "-c", "echo started >>log"];
        assert_eq!(tenure(world, &thief).code, 0);
        assert_eq!(world.lines("log"), ["stopped", "started"]);
        said(
            &script.end(),
            3,
            &[r#""event":"lost""#, r#""name":"job""#, r#""why":"revoked""#, r#""signal":"TERM""#],
        );
    });
}

#[test]
fn a_script_whose_store_does_not_answer_is_signalled_before_the_lease_is_over() {
    let world = World::new("hold-outage");
    let script = trapping(&world, "sh", "--ttl 9s --signal USR1 --json", "echo trapped >trapped; exit 3");
    let lock = world.lock_of("job");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    // The trap ends the script, and its message follows.
    assert_eq!(world.told("trapped"), "trapped");
    drop(lock);
    let ran = ended_after_loss(&world, script);
    said(&ran, 3, &["runs out in at most ", "no renewal succeeded in time", "USR1 was sent to 2 processes"]);
    let event: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((&event["event"], &event["why"]), (&"lost".into(), &"not_renewed".into()));
    assert!(event["left_ms"].as_u64() > Some(0), "{event}");
}

#[test]
fn the_process_of_pid_is_signalled_after_a_loss_and_the_lease_is_not_acknowledged() {
    let world = World::new("hold-pid-lost");
    let text = r#"trap 'echo trapped >trapped; exit 3' TERM; "$TENURE" hold job --pid $$ --ttl 3s --holder me >token
        while :; do sleep 0.05; done"#;
    let script = world.start(script(&world, "sh", text));
    world.told("token");
    let thief = tenure(&world, &["steal", "job", "--reason", "my turn", "--", "test", "-e", "trapped"]);
    assert_eq!(thief.code, 0, "the thief waits for the ttl: {thief:?}");
    let number = script.process().number;
    said(
        &ended_after_loss(&world, script),
        3,
        &["is lost: ", "my turn", &format!("TERM was sent to process {number}\n")],
    );
}

#[test]
fn a_keeper_that_is_killed_leaves_a_lease_that_lapses_and_a_script_that_goes_on() {
    let world = World::new("hold-keeper");
    let mut long = holding(&world, "sh", SLEEP);
    let keeper_of_long = keeper(&world);
    keeper_of_long.send(Signal::KILL);
    keeper_of_long.dies_within(PATIENCE);
    let held = tenure(&world, &["run", "job", "--no-wait", "--", "true"]);
    said(&held, 75, &["held by"]);
    assert!(!long.has_ended());

    let world = World::new("hold-keeper");
    let text = format!(r#"exec 9>>lock; "$TENURE" hold job --fd 9 --ttl 2s >token; {SLEEP}"#);
    let mut short = world.start(script(&world, "sh", &text));
    world.told("token");
    keeper(&world).send(Signal::KILL);
    assert_eq!(tenure(&world, &["run", "job", "--", "true"]).code, 0);
    assert_eq!(ends(&world), [End::RanOut, End::Released]);
    assert!(!short.has_ended());
}

#[test]
fn a_keeper_ignores_the_signals_that_end_a_service() {
    let world = World::new("hold-term");
    let script = holding(&world, "sh", SLEEP);
    let keeper = keeper(&world);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1] {
        assert!(keeper.send(signal));
    }
    sleep_ms(500);
    assert!(!keeper.is_dead() && world.is_held("job"));
    script.process().send(Signal::KILL);
    is_free_soon(&world, "job");
}

// ── the wait ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A handle that holds `job`.
fn other_holder(world: &World) -> String {
    let handle = tenure(world, &["acquire", "job", "--ttl", "1h", "--holder", "them"]);
    handle.text().trim().to_owned()
}

/// A waiting `tenure hold`, which is the process itself.
fn waiting(world: &World) -> Started {
    let hold = r#"exec 9>>lock; exec "$TENURE" hold job --fd 9 --json"#;
    let hold = world.start(script(world, "sh", hold));
    wait_until("it waits", || hold.err_so_far().contains(r#""event":"waiting""#));
    hold
}

#[test]
fn a_foreground_process_that_is_killed_while_it_waits_leaves_nothing_granted() {
    let world = World::new("hold-wait");
    let handle = other_holder(&world);
    for signal in [Signal::KILL, Signal::TERM, Signal::INT] {
        let code = format!("code-{}", signal.as_raw());
        // The script lives on, and has the descriptor.
        let text =
            format!(r#"exec 9>>lock; "$TENURE" hold job --fd 9 --json; echo $? >{code}; exec sleep 1000"#);
        let script = world.start(script(&world, "sh", &text));
        wait_until("it waits", || script.err_so_far().contains(r#""event":"waiting""#));
        let only_child = |parent: i32| Process::of(children_of(parent)[0]).unwrap();
        let foreground = only_child(script.process().number);
        let keeper = only_child(foreground.number);
        foreground.send(signal);
        assert_eq!(world.told(&code), (128 + signal.as_raw()).to_string());
        keeper.dies_within(PATIENCE);
        assert_eq!(script.out_so_far(), "");
    }
    let token = world.record("job").unwrap().token;
    assert_eq!(tenure(&world, &["release", &handle]).code, 0);
    sleep_ms(500);
    let record = world.record("job").unwrap();
    assert!(!record.is_held() && record.token == token, "no new term began");
}

#[test]
fn a_hold_that_waits_is_granted_the_lease_after_its_release() {
    let world = World::new("hold-turn");
    let handle = other_holder(&world);
    let hold = waiting(&world);
    assert_eq!(tenure(&world, &["release", &handle]).code, 0);
    assert_eq!(hold.end().code, 0);
    wait_until("nobody has the descriptor", || !world.is_held("job"));
}

#[test]
fn a_foreground_process_that_is_stopped_does_not_keep_the_lease_for_nothing() {
    let world = World::new("hold-stopped");
    let handle = other_holder(&world);
    let text = r#"exec 9>>lock; exec "$TENURE" hold job --fd 9 --json --ttl 2s"#;
    let hold = world.start(script(&world, "sh", text));
    wait_until("it waits", || hold.err_so_far().contains(r#""event":"waiting""#));
    hold.process().send(Signal::STOP);
    let token = world.record("job").unwrap().token;
    assert_eq!(tenure(&world, &["release", &handle]).code, 0);
    wait_until("it is granted and released", || {
        let record = world.record("job").unwrap();
        record.token > token && !record.is_held()
    });
    hold.process().send(Signal::CONT);
    said(&hold.end(), 76, &["its token could not be printed in time"]);
}

#[test]
fn a_keeper_that_is_killed_during_the_wait_is_reported() {
    let world = World::new("hold-keeper-wait");
    other_holder(&world);
    let hold = waiting(&world);
    keeper(&world).send(Signal::KILL);
    said(&hold.end(), 69, &["the keeper of lease job was killed before it held the lease"]);
}

#[test]
fn a_process_that_ends_during_the_wait_ends_the_wait() {
    let world = World::new("hold-pid-wait");
    other_holder(&world);
    let subject = world.start(script(&world, "sh", "exec sleep 1000"));
    let number = subject.process().number.to_string();
    let hold = world.start(world.tenure(&["hold", "job", "--json", "--pid", &number]));
    wait_until("it waits", || hold.err_so_far().contains(r#""event":"waiting""#));
    drop(subject);
    said(&hold.end(), 64, &[&format!("there is no process {number}")]);
}

#[test]
fn another_holder_gives_75_or_the_chosen_code() {
    let world = World::new("hold-conflict");
    other_holder(&world);
    let hold = |options: &str| {
        let text = format!(r#"exec 9>>lock; "$TENURE" hold job --fd 9 {options}"#);
        world.ran(script(&world, "sh", &text))
    };
    said(&hold("--no-wait"), 75, &["lease job on file:///", "held by them", "--wait DURATION"]);
    said(&hold("--wait 200ms"), 75, &["held by them", "wait longer"]);
    said(&hold("-w 0.2"), 75, &["held by them"]);
    said(&hold("-n -E 9"), 9, &["held by them"]);
    let ignoring = r#"trap '' CHLD; exec 9>>lock; "$TENURE" hold job --fd 9 -n"#;
    said(&world.ran(script(&world, "sh", ignoring)), 75, &["held by them"]);
    let quiet = hold("-nq");
    assert_eq!((quiet.code, quiet.err.as_str(), quiet.text()), (75, "", ""));
    world.is_empty_soon();
}

// ── the command line and its output ─────────────────────────────────────────────────────────────────────────────────

#[test]
fn json_has_lease_token_and_the_process_id_of_the_keeper() {
    let world = World::new("hold-json");
    let text =
        r#"exec 9>>lock; "$TENURE" hold job --fd 9 --json --holder me --ttl 20s >answer; exec sleep 1000"#;
    let script = world.start(script(&world, "sh", text));
    let answer: serde_json::Value = serde_json::from_str(&world.told("answer")).unwrap();
    let expected = serde_json::json!({
        "store": world.store_url(),
        "name": "job",
        "holder": "me",
        "token": world.record("job").unwrap().token.get(),
        "ttl_ms": 20_000,
        "keeper_pid": keeper(&world).number,
    });
    assert_eq!(answer, expected);
    let record = world.record("job").unwrap();
    let shown = record.holder_process().and_then(|process| process.pid());
    assert_eq!(shown, Some(script.process().number as u32), "the script, and not its keeper");
}

#[test]
fn a_command_substitution_ends_although_the_keeper_stays() {
    in_each_shell("hold-substitution", |world, shell| {
        // With 2>&1, standard error of the keeper would be the pipe that the shell reads to its end.
        let text = r#"exec 9>>lock; token=$("$TENURE" hold job --fd 9 2>&1) || exit
            echo $token; "$TENURE" status job"#;
        let ran = world.ran(script(world, shell, text));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let token = world.record("job").unwrap().token;
        assert!(ran.text().starts_with(&format!("{token}\njob: held by ")), "{ran:?}");
    });
}

/// The reader of the messages ends with them, and has the descriptor until then.
#[test]
fn a_keeper_and_the_reader_of_the_messages_do_not_wait_for_each_other() {
    let world = World::new("hold-reader");
    for messages in [
        r#"exec > >(tee -a log) 2>&1; token=$("$TENURE" hold job --fd 9 --ttl 1h) || exit"#,
        r#"messages=$("$TENURE" hold job --fd 9 --ttl 1h 2>&1 >token) || exit"#,
        r#"{ "$TENURE" hold job --fd 9 --ttl 1h; } 2>&1 | cat >token"#,
    ] {
        let ran = world.ran(script(&world, "bash", &format!("exec 9>>lock; {messages}; echo done >end")));
        assert_eq!((ran.code, world.told("end").as_str()), (0, "done"), "{messages}: {ran:?}");
        is_free_soon(&world, "job");
        fs::remove_file(world.path("end")).unwrap();
    }
}

#[test]
fn a_signal_after_the_token_is_printed_does_not_report_a_failure() {
    use std::io::BufRead;
    let world = World::new("hold-signal");
    for _ in 0..10 {
        let text = r#"exec 9>>lock; exec "$TENURE" hold job --fd 9 --ttl 1h"#;
        let mut hold = script(&world, "sh", text).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut token = String::new();
        std::io::BufReader::new(hold.stdout.take().unwrap()).read_line(&mut token).unwrap();
        Process::of(hold.id() as i32).unwrap().send(Signal::INT);
        assert_eq!(hold.wait().unwrap().code(), Some(0), "{token}");
        is_free_soon(&world, "job");
    }
}

#[test]
fn a_token_that_cannot_be_printed_is_an_error_and_the_lease_is_free_again() {
    if !Path::new("/dev/full").exists() {
        return run_support::skipped("there is no /dev/full");
    }
    let world = World::new("hold-full");
    let text = r#"exec 9>>lock; "$TENURE" hold job --fd 9 >/dev/full"#;
    said(&world.ran(script(&world, "sh", text)), 69, &["could not be written to standard output"]);
    assert!(!world.is_held("job"));
    world.is_empty_soon();
}

#[test]
fn a_descriptor_that_cannot_be_watched_is_refused_before_anything_is_granted() {
    let world = World::new("hold-wrong");
    for (words, code, part) in [
        ("--fd 9", 64, "descriptor 9 is not open: open a file before, with exec 9>>/var/lock/backup.lock"),
        ("--fd=-1", 64, "descriptor -1 is not open"),
        ("--fd 0", 64, "descriptor 0 is standard input"),
        ("--fd 1", 64, "descriptor 1 is standard output"),
        ("--fd 2", 64, "descriptor 2 is standard error"),
        ("--fd 9 9<lock", 64, "descriptor 9 is open for reading only"),
        ("--fd 9 9<.", 64, "descriptor 9 is a directory"),
        ("--fd 9 9>/dev/null", 64, "descriptor 9 is a terminal or another device"),
        ("--fd 3 3>&1 | cat", 0, "descriptor 3 is a pipe"),
        ("--pid 0", 64, "there is no process 0"),
        ("--pid 2147483647", 64, "there is no process 2147483647"),
        ("", 64, "open a file in it and pass its descriptor, as in exec 9>>/var/lock/backup.lock"),
        ("--fd 9 --pid $$", 64, "the argument '--fd <N>' cannot be used with '--pid <PID>'"),
        ("--fd 9 --signal HELP 9>>lock", 64, "there is no such signal"),
        ("--fd 9 --ttl 10ms 9>>lock", 78, "ttl"),
    ] {
        let text = format!(r#": >>lock; "$TENURE" hold job {words}"#);
        let ran = world.ran(script(&world, "sh", &text));
        said(&ran, code, &[part]);
        assert_eq!((ran.text(), ran.err.lines().count()), ("", 1), "{words}: {ran:?}");
    }
    assert!(!world.leases().exists(), "the store was not even opened");
}

#[test]
fn a_file_that_another_program_has_locked_is_refused() {
    let world = World::new("hold-locked");
    let file = fs::File::create(world.path("lock")).unwrap();
    let whole = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as i16,
        l_whence: nix::libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_OFD_SETLK(&whole)).unwrap();
    let ran = world.ran(script(&world, "sh", r#"exec 9>>lock; "$TENURE" hold job --fd 9"#));
    said(&ran, 64, &["another program has locked as a whole"]);
}

#[test]
fn a_hold_that_fails_leaves_no_lock_on_the_file() {
    let world = World::new("hold-again");
    other_holder(&world);
    let text = r#"exec 9>>lock; "$TENURE" hold job --fd 9 -nq; cat /proc/self/fdinfo/9"#;
    let ran = world.ran(script(&world, "sh", text));
    assert!(ran.text().contains("flags:") && !ran.text().contains("lock:"), "{ran:?}");
}

// ── the first choice ────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_script_can_execute_itself_under_run() {
    in_each_shell("hold-self", |world, shell| {
        let text = format!(
            "#!/usr/bin/env {shell}\n\
             [ \"${{TENURE_NAME-}}\" = job ] || exec \"$TENURE\" run job -- {shell} \"$0\" \"$@\"\n\
             echo \"$TENURE_NAME $TENURE_TOKEN $1\"\n"
        );
        fs::write(world.path("work"), text).unwrap();
        assert!(tenure_testkit::shell(&format!("chmod +x {}", world.path("work").display())));
        for way in ["./work 'a b'".to_owned(), format!("{shell} work 'a b'")] {
            let ran = world.ran(script(world, "sh", &way));
            let token = world.record("job").unwrap().token;
            assert_eq!((ran.code, ran.text()), (0, format!("job {token} a b\n").as_str()), "{way}: {ran:?}");
        }
    });
}
