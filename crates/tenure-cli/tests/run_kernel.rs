//! The kernel hides processes, refuses calls, or delays the guards of a command: the guards still kill the command in
//! time, or the command is not started.
#![expect(clippy::disallowed_methods, reason = "the tests measure how long other processes take")]

mod run_support;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::libc;
use run_support::{
    OTHER_USER, PATIENCE, Process, SOON, Started, TENURE, World, children_of, skipped, sleep_ms, until,
    watchdog_of, world_of_other_user,
};
use rustix::process::Signal;
use tenure_testkit::{own_cgroup, stat_fields};

/// "At once", on a busy machine with two cores.
const AT_ONCE: Duration = Duration::from_millis(700);

// ── hidden processes ────────────────────────────────────────────────────────────────────────────────────────────────

/// Starts a command that its own user does not find in `/proc`: an unreadable executable is not dumpable, so `hidepid`
/// hides its process.
fn start_hidden(world: &World, words: &str) -> (Started, Process) {
    fs::copy("/bin/sleep", world.path("hidden")).unwrap();
    fs::set_permissions(world.path("hidden"), fs::Permissions::from_mode(0o711)).unwrap();
    let script = format!(
        "mount --make-rprivate / && mount -t proc -o hidepid=2 proc /proc && \
         exec setpriv --reuid {OTHER_USER} --regid {OTHER_USER} --clear-groups ./tenure run x {words} -- ./hidden 100"
    );
    let mut command = world.command("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let started = world.start(command);
    let child = until("a command", PATIENCE, || {
        let watchdog = watchdog_of(started.process().number)?;
        let child = children_of(watchdog.number).into_iter().find(|&child| {
            fs::read_link(format!("/proc/{child}/exe")).is_ok_and(|program| program.ends_with("hidden"))
        })?;
        Process::of(child)
    });
    (started, child)
}

#[test]
fn a_command_that_proc_hides_is_killed_when_its_supervisor_is_killed() {
    let Some(world) = world_of_other_user("hidden-killed") else { return };
    let (started, child) = start_hidden(&world, "--ttl 2s");
    started.process().send(Signal::KILL);
    child.dies_within(AT_ONCE);
    drop(started);
    world.is_empty_soon();
}

#[test]
fn a_command_that_proc_hides_is_dead_before_the_deadline_of_a_stopped_supervisor() {
    let Some(world) = world_of_other_user("hidden-stopped") else { return };
    let (started, child) = start_hidden(&world, "--ttl 2s --kill-grace 300ms");
    let stopped = Instant::now();
    started.process().send(Signal::STOP);
    child.dies_within(PATIENCE);
    assert!(stopped.elapsed() < Duration::from_secs(2), "{:?}", stopped.elapsed());
    started.process().send(Signal::CONT);
    assert_eq!(started.end().code, 76);
    world.is_empty_soon();
}

#[test]
fn a_process_in_another_pid_namespace_is_killed_with_the_command() {
    let world = World::new("nsenter");
    // The processes of `unshare` have no mark: they do not belong to the command.
    let mut holder = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "sh", "-c", "while :; do sleep 0.1; done"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let namespace = until("a namespace", PATIENCE, || children_of(holder.id() as i32).first().copied());
    let daemon = "setsid sleep 100 > /dev/null 2>&1 & cat /proc/self/cgroup";
    let script = format!("nsenter --target {namespace} --pid sh -c '{daemon}'");
    let ran = world.ran(world.run(&["x", "--kill-grace", "300ms", "--", "sh", "-c", &script]));
    let left = world.alive();
    for number in [namespace, holder.id() as i32] {
        Process::of(number).map(|process| process.send(Signal::KILL));
    }
    holder.wait().unwrap();
    if !ran.text().contains("/tenure-") {
        return skipped("no cgroup can be made here");
    }
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(left.len(), 0, "the lease was released while they lived: {left:?}");
}

// ── refused calls ───────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn guards_without_free_descriptors_still_kill_the_command() {
    let world = World::new("descriptors");
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done";
    let started =
        world.start(world.run(&["x", "--ttl", "2s", "--kill-grace", "300ms", "--", "sh", "-c", script]));
    let child = world.told_pid("pid");
    let watchdog = started.watchdog();
    // As on a machine without free descriptors: open ones stay open.
    for process in [&started.process(), &watchdog] {
        let mut limit = Command::new("prlimit");
        limit.args(["--pid", &process.number.to_string(), "--nofile=1:1"]);
        assert!(limit.status().unwrap().success());
    }
    started.process().send(Signal::KILL);
    child.dies_within(AT_ONCE);
    watchdog.dies_within(SOON);
    drop(started);
    world.is_empty_soon();
}

#[test]
fn nothing_is_started_if_processes_cannot_be_signalled_by_descriptor() {
    let world = World::new("seccomp");
    let mut command = world.run(&["x", "--", "touch", "ran"]);
    #[expect(unsafe_code, reason = "only the child itself can give up a system call, between fork and exec")]
    // SAFETY: the closure makes two system calls, and allocates nothing.
    unsafe {
        command.pre_exec(|| refuse(libc::SYS_pidfd_send_signal as u32));
    }
    let ran = world.ran(command);
    assert_eq!(ran.code, 78, "{ran:?}");
    assert!(ran.err.contains("pidfd_send_signal"), "{}", ran.err);
    assert!(!world.exists("ran"));
    world.is_empty_soon();
}

/// Makes the kernel answer a system call of this process with EPERM from now on.
#[expect(unsafe_code, reason = "no library of this project has a filter of system calls")]
fn refuse(call: u32) -> io::Result<()> {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // Load the number of the call, and compare it: EPERM if it matches, otherwise allow.
    let mut program = [
        step(0x20, 0, 0, 0),
        step(0x15, 0, 1, call),
        step(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program lives for the call, and has the given length.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

// ── delayed guards ──────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_ttl_that_leaves_no_room_for_guards_of_low_priority_gives_78_and_shows_the_arithmetic() {
    let Some(world) = world_of_other_user("nice") else { return };
    let run = |ttl: &str| {
        let mut command = world.command("nice");
        command.args(["-n", "19"]).arg(world.path("tenure")).args(["run", "x", "--ttl", ttl, "--", "nice"]);
        world.ran({
            command.uid(OTHER_USER).gid(OTHER_USER);
            command
        })
    };
    let short = run("3s");
    assert_eq!(short.code, 78, "{short:?}");
    assert!(short.err.contains("nice 19") && short.err.contains("margin"), "{}", short.err);
    let long = run("20s");
    assert_eq!((long.code, long.text()), (0, "19\n"), "{long:?}");
}

#[test]
fn guards_raise_their_priority_if_they_may_and_the_command_keeps_its_own() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root may raise a priority");
    }
    let world = World::new("priority");
    let mut command = world.command("nice");
    command.args([
        "-n",
        "5",
        TENURE,
        "run",
        "x",
        "--ttl",
        "3s",
        "--",
        "sh",
        "-c",
        "nice > told; exec sleep 100",
    ]);
    let started = world.start(command);
    let own = rustix::process::getpriority_process(None).unwrap();
    assert_eq!(world.told("told"), (own + 5).min(19).to_string());
    for process in [started.process(), started.watchdog()] {
        let stat = stat_fields(process.number).unwrap();
        assert_eq!(stat[16], "-20", "{stat:?}");
    }
    drop(started);
    world.is_empty_soon();
}

/// A cgroup of the unified hierarchy, thawed and removed on drop.
struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` if no cgroup can be created.
    fn make(name: &str) -> Option<Self> {
        let path = own_cgroup()?.join(format!("test-{name}-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    fn freeze(&self, frozen: bool) {
        fs::write(self.0.join("cgroup.freeze"), if frozen { "1" } else { "0" }).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.freeze(false);
        let gone = || fs::remove_dir(&self.0).ok();
        let end = Instant::now() + SOON;
        while gone().is_none() && Instant::now() < end {
            sleep_ms(10);
        }
    }
}

#[test]
fn a_command_that_is_frozen_with_its_guards_continues_if_the_lease_is_still_held() {
    let Some(cgroup) = Cgroup::make("frozen") else { return skipped("no cgroup can be made here") };
    let world = World::new("frozen");
    let script = format!(
        "echo $$ > {}/cgroup.procs; exec \"$TENURE\" run x --ttl 6s -- sh -c 'echo > started; sleep 6; exit 7'",
        cgroup.0.display()
    );
    let started = world.start(world.sh(&script));
    world.told("started");
    // More than a third of the ttl: a guard that counted it as its own lateness would leave no time to renew.
    cgroup.freeze(true);
    sleep_ms(2_500);
    cgroup.freeze(false);
    let ran = started.end();
    assert_eq!((ran.code, ran.troubles().as_str()), (7, ""));
    world.is_empty_soon();
}
