//! `tenure run` on a terminal: keys, hang-up, job control, and messages.
#![expect(clippy::disallowed_methods, reason = "the tests measure how long other processes take")]

mod run_support;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use run_support::{PATIENCE, Process, SOON, TENURE, World, exit_code, parent_of, sleep_ms, until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use tenure_testkit::stat_fields;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";
const CTRL_BACKSLASH: &str = "\x1c";

/// The user's side of a terminal, and the program that was started on it.
struct Terminal {
    keyboard: Option<File>,
    screen: String,
    /// Start of the part of the screen that is still of interest.
    from: usize,
    child: Child,
}

impl Terminal {
    /// Starts a program as the leader of the terminal's session.
    fn start(mut command: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keyboard = openpt(flags).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let there: OwnedFd = ioctl_tiocgptpeer(&keyboard, flags).unwrap();
        command.stdin(there.try_clone().unwrap()).stdout(there.try_clone().unwrap()).stderr(there);
        let child = command.spawn().unwrap();
        Self { keyboard: Some(keyboard.into()), screen: String::new(), from: 0, child }
    }

    /// `tenure run` with these arguments.
    fn run(world: &World, words: &[&str]) -> Self {
        let mut command = world.command("setsid");
        command.args(["--ctty", TENURE, "run"]).args(words);
        Self::start(command)
    }

    /// A shell with job control and with the prompt that the tests wait for.
    fn shell(world: &World) -> Self {
        let mut command = world.command("setsid");
        command.args(["--ctty", "bash", "--norc", "--noprofile", "-i"]);
        command.env("TENURE", TENURE).env("PS1", "ready> ").env_remove("HISTFILE").env("TERM", "dumb");
        let mut shell = Self::start(command);
        shell.sees("ready> ");
        shell
    }

    /// Stops the job in the foreground. Keys typed before the next prompt may be lost.
    fn stops(&mut self) {
        self.types(CTRL_Z);
        self.sees("Stopped");
        self.sees("ready> ");
    }

    fn types(&mut self, keys: &str) {
        self.from = self.screen.len();
        self.keyboard.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until the text appears on the screen, after the last typed keys.
    fn sees(&mut self, text: &str) {
        let began = Instant::now();
        while !self.screen[self.from..].contains(text) {
            assert!(began.elapsed() < PATIENCE, "no {text:?} on the screen: {:?}", self.screen);
            self.look(Duration::from_millis(50));
        }
    }

    /// Reads the available output. Reading from a terminal that no process has open is an error: returns false.
    fn look(&mut self, limit: Duration) -> bool {
        let Some(keyboard) = &mut self.keyboard else { return false };
        let limit = Timespec { tv_sec: 0, tv_nsec: limit.as_nanos() as i64 };
        if poll(&mut [PollFd::new(&*keyboard, PollFlags::IN)], Some(&limit)) != Ok(1) {
            return true;
        }
        let mut bytes = [0; 4096];
        match keyboard.read(&mut bytes) {
            Ok(0) | Err(_) => false,
            Ok(length) => {
                self.screen.push_str(&String::from_utf8_lossy(&bytes[..length]));
                true
            }
        }
    }

    /// Closes the terminal.
    fn hang_up(&mut self) {
        self.keyboard = None;
    }

    /// The exit code and all output on the screen.
    fn ends(mut self) -> (i32, String) {
        let began = Instant::now();
        let status = loop {
            self.look(Duration::from_millis(5));
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end: {:?}", self.screen);
            sleep_ms(1);
        };
        for _ in 0..100 {
            if !self.look(Duration::from_millis(5)) {
                break;
            }
        }
        (exit_code(status), std::mem::take(&mut self.screen))
    }

    fn process(&self) -> Process {
        Process::of(self.child.id() as i32).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A child that counts its signals.
const COUNTING: &str = "for s in INT QUIT HUP TSTP; do trap \"echo $s >> got\" $s; done; echo $$ > pid; \
                        while ! [ -e end ]; do sleep 0.02; done; exit 21";

/// A holder of `x` without a terminal.
fn alice(world: &World) -> run_support::Started {
    let _ = std::fs::remove_file(world.path("alice"));
    let held = world.start(world.run(&[
        "x",
        "--holder",
        "alice",
        "--",
        "sh",
        "-c",
        "echo $$ > alice; exec sleep 100",
    ]));
    world.told("alice");
    held
}

// ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_program_reads_typed_keys() {
    let world = World::new("typed");
    let mut terminal =
        Terminal::run(&world, &["x", "--", "sh", "-c", "while read line; do echo \"got:$line\"; done"]);
    terminal.types("hello\n");
    terminal.sees("got:hello");
    terminal.types("again\n");
    terminal.sees("got:again");
    terminal.types(CTRL_D);
    assert_eq!(terminal.ends().0, 0);
    world.is_empty_soon();
}

#[test]
fn keys_that_send_signals_reach_the_child_once() {
    let world = World::new("keys");
    let mut terminal = Terminal::run(&world, &["x", "--", "sh", "-c", COUNTING]);
    world.told("pid");
    let mut expected = Vec::new();
    for (key, name) in [(CTRL_C, "INT"), (CTRL_C, "INT"), (CTRL_BACKSLASH, "QUIT")] {
        terminal.types(key);
        expected.push(name);
        until(name, SOON, || (world.lines("got").len() >= expected.len()).then_some(()));
        sleep_ms(250);
        assert_eq!(world.lines("got"), expected);
    }
    std::fs::write(world.path("end"), "").unwrap();
    let (code, screen) = terminal.ends();
    assert_eq!(code, 21, "{screen}");
    world.is_empty_soon();
}

#[test]
fn a_key_that_kills_the_child_gives_its_code() {
    let world = World::new("key-ends");
    for (script, code) in [
        ("trap 'exit 33' INT; echo $$ > $N; while :; do sleep 0.02; done", 33),
        ("echo $$ > $N; exec sleep 100", 130),
    ] {
        let name = format!("pid-{code}");
        let mut terminal =
            Terminal::run(&world, &["x", "--", "env", &format!("N={name}"), "sh", "-c", script]);
        world.told(&name);
        terminal.types(CTRL_C);
        let (ended, screen) = terminal.ends();
        assert_eq!(ended, code, "{screen}");
        assert!(!world.is_held("x"), "it was released");
    }
    world.is_empty_soon();
}

#[test]
fn a_signal_from_a_program_is_forwarded_on_a_terminal_too() {
    let world = World::new("sent");
    let terminal = Terminal::run(&world, &["x", "--", "sh", "-c", COUNTING]);
    world.told("pid");
    terminal.process().send(Signal::INT);
    until("INT", SOON, || (world.lines("got") == ["INT"]).then_some(()));
    std::fs::write(world.path("end"), "").unwrap();
    assert_eq!(terminal.ends().0, 21);
    world.is_empty_soon();
}

#[test]
fn a_key_ends_the_wait() {
    let world = World::new("key-waiting");
    let _held = alice(&world);
    let mut terminal = Terminal::run(&world, &["x", "--", "touch", "started"]);
    terminal.sees("standing by");
    terminal.types(CTRL_C);
    assert_eq!(terminal.ends().0, 130);
    assert!(!world.exists("started"));
}

// ── the end of the terminal ─────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn when_the_terminal_hangs_up_the_command_exits() {
    let world = World::new("hang-up");
    let mut terminal = Terminal::run(&world, &["x", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"]);
    let child = world.told_pid("pid");
    terminal.hang_up();
    child.dies_within(SOON);
    assert_eq!(terminal.ends().0, 129);
    assert!(!world.is_held("x"), "it was released");
    world.is_empty_soon();
}

#[test]
fn a_hang_up_reaches_the_child_once() {
    let world = World::new("hang-up-once");
    let mut terminal = Terminal::run(&world, &["x", "--", "sh", "-c", COUNTING]);
    world.told("pid");
    terminal.hang_up();
    until("HUP", SOON, || (!world.lines("got").is_empty()).then_some(()));
    sleep_ms(250);
    assert_eq!(world.lines("got"), ["HUP"]);
    std::fs::write(world.path("end"), "").unwrap();
    assert_eq!(terminal.ends().0, 21);
    world.is_empty_soon();
}

#[test]
fn when_the_terminal_of_a_shell_hangs_up_all_processes_exit() {
    let world = World::new("hang-up-shell");
    let mut shell = Terminal::shell(&world);
    shell.types("\"$TENURE\" run x -- sh -c 'echo $$ > pid; exec sleep 100'\n");
    let child = world.told_pid("pid");
    shell.hang_up();
    child.dies_within(SOON);
    shell.ends();
    world.is_empty_soon();
    assert!(!world.is_held("x"), "it was released");
}

#[test]
fn a_waiter_exits_when_its_terminal_hangs_up() {
    let world = World::new("hang-up-waiting");
    let _held = alice(&world);
    let mut terminal = Terminal::run(&world, &["x", "--", "touch", "started"]);
    terminal.sees("standing by");
    terminal.hang_up();
    assert_eq!(terminal.ends().0, 129);
    assert!(!world.exists("started"));
}

#[test]
fn the_watchdog_has_no_terminal() {
    let world = World::new("no-terminal");
    let terminal = Terminal::run(&world, &["x", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"]);
    let child = world.told_pid("pid");
    let terminal_of = |number: i32| stat_fields(number).unwrap()[4].clone();
    assert_ne!(terminal_of(child.number), "0", "the test is void");
    assert_eq!(terminal_of(parent_of(child.number).unwrap()), "0");
    drop(terminal);
}

// ── job control ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Stops a command by a key in a shell. Returns the shell, the supervisor and the child.
fn stopped_by_key(world: &World, ttl: &str) -> (Terminal, Process, Process) {
    let mut shell = Terminal::shell(world);
    let script =
        "echo $$ > pid; while read line; do echo \"got:$line\"; [ \"$line\" = end ] && exit 17; done";
    shell.types(&format!("\"$TENURE\" run x --ttl {ttl} -- sh -c '{script}'\n"));
    let child = world.told_pid("pid");
    let watchdog = Process::of(parent_of(child.number).unwrap()).unwrap();
    let supervisor = Process::of(parent_of(watchdog.number).unwrap()).unwrap();
    shell.types("one\n");
    shell.sees("got:one");
    shell.stops();
    for process in [&supervisor, &child] {
        until("stop", SOON, || (process.state() == Some('T')).then_some(()));
    }
    assert_ne!(watchdog.state(), Some('T'), "the watchdog must keep running");
    (shell, supervisor, child)
}

#[test]
fn a_command_that_is_stopped_and_continued_in_time_keeps_running() {
    let world = World::new("fg");
    let (mut shell, _, _) = stopped_by_key(&world, "8s");
    sleep_ms(500);
    shell.types("fg\n");
    shell.types("two\n");
    shell.sees("got:two");
    // It is renewed again, past its first ttl, and can be stopped again.
    shell.stops();
    shell.types("fg\n");
    shell.types("end\n");
    shell.sees("got:end");
    shell.types("echo code=$?\n");
    shell.sees("code=17");
    assert!(!world.is_held("x"), "it was released");
    shell.types("exit\n");
    shell.ends();
    world.is_empty_soon();
}

#[test]
fn a_command_that_is_stopped_for_too_long_is_dead_before_the_lease_runs_out_and_is_reported() {
    let world = World::new("fg-late");
    let stopped = Instant::now();
    let (mut shell, supervisor, child) = stopped_by_key(&world, "2s");
    child.dies_within(PATIENCE);
    assert!(stopped.elapsed() < Duration::from_secs(4), "{:?}", stopped.elapsed());
    // Another holder gets the lease in between.
    assert_eq!(world.ran(world.run(&["x", "--ttl", "2s", "--", "true"])).code, 0);
    assert!(!supervisor.is_dead(), "it is left to say so");
    shell.types("fg\n");
    shell.sees("was stopped");
    shell.types("echo code=$?\n");
    shell.sees("code=76");
    shell.types("exit\n");
    shell.ends();
    world.is_empty_soon();
}

#[test]
fn it_runs_in_the_background_of_a_shell() {
    let world = World::new("background");
    let mut shell = Terminal::shell(&world);
    shell.types("\"$TENURE\" run x -- sh -c 'echo $$ > pid; sleep 0.5; exit 19' & wait $!; echo code=$?\n");
    world.told("pid");
    shell.sees("code=19");
    shell.types("exit\n");
    shell.ends();
    world.is_empty_soon();
}

#[test]
fn a_pipeline_of_a_shell_is_stopped_and_continued_as_one_job() {
    let world = World::new("pipeline");
    let mut shell = Terminal::shell(&world);
    shell.types("\"$TENURE\" run x --ttl 8s -- sh -c 'echo $$ > pid; sleep 1; echo do''ne' | cat\n");
    let child = world.told_pid("pid");
    shell.stops();
    // A shell that is just starting a program waits for it in the kernel (`D`), and the program is stopped.
    until("stop", SOON, || matches!(child.state(), Some('T' | 'D')).then_some(()));
    shell.types("fg\n");
    shell.sees("done");
    shell.types("exit\n");
    shell.ends();
    world.is_empty_soon();
}

// ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_waiter_on_a_terminal_shows_the_holder_that_it_waits_for() {
    let world = World::new("told");
    let held = alice(&world);
    let mut terminal = Terminal::run(&world, &["x", "--", "echo", "mine"]);
    terminal.sees("standing by");
    terminal.sees("alice");
    held.process().send(Signal::TERM);
    terminal.sees("mine");
    let (code, screen) = terminal.ends();
    assert_eq!(code, 0, "{screen}");
    held.end();
    world.is_empty_soon();
}

#[test]
fn quiet_prints_only_errors() {
    let world = World::new("quiet");
    let held = alice(&world);
    let terminal = Terminal::run(&world, &["x", "--quiet", "--", "echo", "mine"]);
    sleep_ms(300);
    held.process().send(Signal::TERM);
    let (code, screen) = terminal.ends();
    assert_eq!((code, screen.as_str()), (0, "mine\r\n"));
    held.end();
    let held = alice(&world);
    let (code, screen) = Terminal::run(&world, &["x", "--quiet", "--no-wait", "--", "true"]).ends();
    assert_eq!((code, screen.as_str()), (75, ""), "the exit code says it");
    drop(held);
    let (code, screen) = Terminal::run(&world, &["y", "--quiet", "--", "no-such-program"]).ends();
    assert_eq!(code, 127);
    assert!(screen.contains("no-such-program") && screen.trim_end().lines().count() == 1, "{screen}");
}

#[test]
fn json_on_a_terminal_is_json() {
    let world = World::new("json-terminal");
    let (code, screen) = Terminal::run(&world, &["x", "--json", "--", "true"]).ends();
    assert_eq!(code, 0, "{screen}");
    for line in screen.lines() {
        let event: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        assert!(event["event"].is_string(), "{line}");
    }
    assert!(!screen.is_empty());
    world.is_empty_soon();
}
