//! Shared by the tests of the command: a temporary directory, and processes that are always found and killed at the
//! end.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]
#![expect(clippy::disallowed_methods, reason = "other processes are given time")]

#[path = "../support/log_lines.rs"]
pub(crate) mod log_lines;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File as Disk, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use log_lines::without_log_lines;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tenure::record::{Record, decode};
use tenure::store::File;
use tenure_store::{Key, Store};
pub(crate) use tenure_testkit::{
    block_on, children_of, exit_code, is_running, key, parent_of, session_of, skipped, sleep_ms,
};
use tenure_testkit::{command_line, process_numbers, state_of, wait_for};

/// Longest time for an immediate effect, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// Longest time for any effect.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A directory, and a mark that identifies every process that was started in it.
pub(crate) struct World {
    directory: PathBuf,
    mark: String,
    next: AtomicUsize,
}

impl World {
    /// A world on the disk of the build.
    pub(crate) fn new(name: &str) -> Self {
        Self::under(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    pub(crate) fn under(parent: &Path, name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("tenure-{name}-{}-{number}", std::process::id());
        let directory = parent.join(&mark);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        Self { directory, mark, next: AtomicUsize::new(0) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The directory of the leases.
    pub(crate) fn leases(&self) -> PathBuf {
        self.path("leases")
    }

    /// A program in the directory, with the mark.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = if signals_are_ignored() {
            // The tests assume default signals, which they do not have under `nohup`, for example.
            let mut command = Command::new("env");
            command.arg("--default-signal").arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(&self.directory).env(MARK, &self.mark).env("TENURE_STORE", self.store_url());
        // For a networked store, the witnesses are in this directory too, and not in that of the user.
        command.env("XDG_STATE_HOME", self.path("state")).env("XDG_RUNTIME_DIR", &self.directory);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn store_url(&self) -> String {
        format!("file://{}", self.leases().display())
    }

    /// `tenure` with these arguments.
    pub(crate) fn tenure(&self, words: &[&str]) -> Command {
        let mut command = self.command(TENURE);
        command.args(words);
        command
    }

    /// `tenure run` with these arguments.
    pub(crate) fn run(&self, words: &[&str]) -> Command {
        let mut command = self.tenure(&["run"]);
        command.args(words);
        command
    }

    /// A shell script.
    pub(crate) fn sh(&self, script: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", script]).env("TENURE", TENURE);
        command
    }

    /// Starts the command with its output in files.
    pub(crate) fn start(&self, mut command: Command) -> Started {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (out, err) = (self.path(&format!("out-{number}")), self.path(&format!("err-{number}")));
        command.stdout(Disk::create(&out).unwrap()).stderr(Disk::create(&err).unwrap());
        Started { child: command.spawn().unwrap(), out, err, mark: self.mark.clone(), began: Instant::now() }
    }

    /// Runs the command until it exits.
    pub(crate) fn ran(&self, command: Command) -> Ran {
        self.start(command).end()
    }

    /// The store of the leases, through the library.
    pub(crate) fn store(&self) -> File {
        File::open(self.leases()).unwrap()
    }

    /// The record of a key, if there is one.
    pub(crate) fn record(&self, name: &str) -> Option<Record> {
        let store = self.store();
        let reading = block_on(async { store.get(&key(name)).await }).unwrap();
        Some(decode(&reading.entry?.value).unwrap())
    }

    pub(crate) fn is_held(&self, name: &str) -> bool {
        self.record(name).is_some_and(|record| record.is_held())
    }

    /// The file that writers of a key lock for a moment. The key must exist.
    pub(crate) fn lock_of(&self, name: &str) -> Disk {
        let record = self.store().path_of(&key(name));
        let stem = record.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut found = fs::read_dir(self.leases()).unwrap().map(|entry| entry.unwrap().path());
        let lock = found.find(|path| {
            let other = path.file_name().unwrap().to_str().unwrap();
            *path != record && other.starts_with(&stem) && other.contains("lock")
        });
        Disk::open(lock.expect("a lock file beside the record")).unwrap()
    }

    /// The content of a file that a child writes; waits for at least one complete line.
    pub(crate) fn told(&self, name: &str) -> String {
        let path = self.path(name);
        let told = || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
        until(&format!("something in {name}"), PATIENCE, told).trim_end().to_owned()
    }

    /// The process whose pid a child writes to this file.
    pub(crate) fn told_pid(&self, name: &str) -> Process {
        Process::of(self.told(name).parse().unwrap()).expect("it lives")
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The lines of a file; none if there is no such file.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// All live processes of this world, with their command lines.
    pub(crate) fn alive(&self) -> BTreeMap<i32, String> {
        marked(&self.mark)
    }

    /// Asserts that no process of this world is left after a moment.
    pub(crate) fn is_empty_soon(&self) {
        let gone = wait_for(SOON, Duration::from_millis(5), || self.alive().is_empty().then_some(()));
        assert!(gone.is_some(), "processes are left behind: {:?}", self.alive());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        end_all(&self.mark);
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Uid of an unprivileged user.
pub(crate) const OTHER_USER: u32 = 65534;

/// A world of an unprivileged user, with `tenure`, and with a setuid program that runs others as root.
pub(crate) fn world_of_other_user(name: &str) -> Option<World> {
    if !rustix::process::geteuid().is_root() {
        skipped("only root can set up a process that its parent may not signal");
        return None;
    }
    let setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].into_iter().find(|path| Path::new(path).exists());
    let Some(setpriv) = setpriv else {
        skipped("no setpriv here: install util-linux");
        return None;
    };
    // The directory of the build may not be accessible to other users.
    let world = World::under(&std::env::temp_dir(), name);
    chown(world.path(""), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    fs::copy(TENURE, world.path("tenure")).unwrap();
    fs::copy(setpriv, world.path("root")).unwrap();
    fs::set_permissions(world.path("root"), fs::Permissions::from_mode(0o4755)).unwrap();
    let mut id = Command::new(world.path("root"));
    id.args(["--reuid", "0", "--regid", "0", "--clear-groups", "id", "-u"]).uid(OTHER_USER).gid(OTHER_USER);
    let becomes_root = id.output().is_ok_and(|output| output.stdout == b"0\n");
    if !becomes_root {
        skipped("no program can make its user root here: the temporary directory is mounted nosuid");
        return None;
    }
    Some(world)
}

impl World {
    /// True if the record is held, in a store of the unprivileged user.
    pub(crate) fn other_user_holds(&self, name: &str) -> bool {
        let store = tenure::store::File::builder().accept_foreign_owner().open(self.leases()).unwrap();
        let reading = block_on(async { store.get(&key(name)).await }).unwrap();
        decode(&reading.entry.unwrap().value).unwrap().is_held()
    }
}

/// Runs `tenure run x` as the unprivileged user, with a short ttl and a short grace.
pub(crate) fn run_as_other_user(world: &World, words: &[&str]) -> Started {
    let mut command = world.command(world.path("tenure"));
    command
        .args(["run", "x", "--ttl", "2s", "--kill-grace", "200ms"])
        .args(words)
        .uid(OTHER_USER)
        .gid(OTHER_USER);
    world.start(command)
}

/// Kills every process with this mark. Repeats, because they start each other.
pub(crate) fn end_all(mark: &str) {
    for _ in 0..500 {
        let alive = marked(mark);
        if alive.is_empty() {
            return;
        }
        for number in alive.into_keys() {
            if let Some(process) = Process::of(number)
                && has_mark(number, mark)
            {
                process.send(Signal::KILL);
            }
        }
        sleep_ms(10);
    }
    eprintln!("could not end {:?}", marked(mark));
}

fn marked(mark: &str) -> BTreeMap<i32, String> {
    let describe = |number: i32| {
        let state = state_of(number).unwrap_or('?');
        (number, format!("{} [{state}]", command_line(number).join(" ")))
    };
    process_numbers().filter(|&number| has_mark(number, mark)).map(describe).collect()
}

/// True if the process has the mark. A zombie has no environment, and thus no mark.
fn has_mark(number: i32, mark: &str) -> bool {
    let wanted = format!("{MARK}={mark}");
    fs::read(format!("/proc/{number}/environ"))
        .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes()))
}

/// A running command, with its output in files.
pub(crate) struct Started {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    mark: String,
    began: Instant,
}

/// A command that has exited.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Exit code as in a shell.
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

impl Ran {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// Standard error without the lines that every successful run writes to a log.
    pub(crate) fn troubles(&self) -> String {
        without_log_lines(&self.err)
    }
}

/// Asserts that it exited with this code, and printed each of these on standard error.
#[track_caller]
pub(crate) fn said(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, code, "{ran:?}");
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is not in {:?}", ran.err);
    }
}

impl Started {
    pub(crate) fn process(&self) -> Process {
        Process::of(self.child.id() as i32).expect("it is not reaped yet")
    }

    /// The watchdog, once it exists.
    pub(crate) fn watchdog(&self) -> Process {
        until("a watchdog", PATIENCE, || watchdog_of(self.process().number))
    }

    pub(crate) fn err_so_far(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    pub(crate) fn out_so_far(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it exits; fails if it takes too long.
    pub(crate) fn end(self) -> Ran {
        self.end_within(PATIENCE)
    }

    pub(crate) fn end_within(mut self, limit: Duration) -> Ran {
        let ended = wait_for(limit, Duration::from_millis(2), || self.child.try_wait().unwrap());
        let status = ended.unwrap_or_else(|| {
            let alive = marked(&self.mark);
            panic!("it does not end within {limit:?}: {alive:?}; it said {:?}", self.err_so_far())
        });
        Ran {
            code: exit_code(status),
            out: fs::read(&self.out).unwrap(),
            err: self.err_so_far(),
            took: self.began.elapsed(),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One process, identified by a descriptor, so that a reused pid is no problem.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) number: i32,
    descriptor: std::os::fd::OwnedFd,
}

impl Process {
    /// `None` if there is no process with this pid.
    pub(crate) fn of(number: i32) -> Option<Self> {
        let descriptor = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
        Some(Self { number, descriptor })
    }

    /// Sends a signal; false if it could not be sent.
    pub(crate) fn send(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.descriptor, signal).is_ok()
    }

    /// True once it has exited. A zombie counts as dead.
    pub(crate) fn is_dead(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], Some(&now)) == Ok(1)
    }

    /// Waits for its death, and returns the time that it took.
    pub(crate) fn dies_within(&self, limit: Duration) -> Duration {
        let began = Instant::now();
        while !self.is_dead() {
            assert!(began.elapsed() < limit, "process {} still lives after {limit:?}", self.number);
            sleep_ms(1);
        }
        began.elapsed()
    }

    pub(crate) fn state(&self) -> Option<char> {
        state_of(self.number)
    }
}

/// The watchdog of a supervisor, once it has its name.
pub(crate) fn watchdog_of(supervisor: i32) -> Option<Process> {
    let named = |number: &i32| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|name| name.trim() == "lease-watchdog")
    };
    children_of(supervisor).into_iter().find(named).and_then(Process::of)
}

/// Waits for a result; fails if it takes too long.
pub(crate) fn until<T>(what: &str, limit: Duration, come: impl FnMut() -> Option<T>) -> T {
    let came = wait_for(limit, Duration::from_millis(2), come);
    came.unwrap_or_else(|| panic!("no {what} within {limit:?}"))
}

/// True if this process ignores a signal that the tests send.
fn signals_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    let sent =
        [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2, Signal::CHILD];
    sent.iter().any(|signal| ignored >> (signal.as_raw() - 1) & 1 == 1)
}

/// A file for appending: each line stays complete, even with several writers.
pub(crate) fn appending(path: &Path) -> Disk {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).unwrap()
}

/// The command under test.
pub(crate) const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// Variable in the environment of every process that a test starts.
pub(crate) const MARK: &str = "TENURE_TEST_MARK";
