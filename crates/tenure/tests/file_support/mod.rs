//! Shared by the tests of the file store: directories that delete themselves, and processes that a test watches and
//! kills.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure::clock::{BootClock, Clock, Instant};
use tenure::store::File;
use tenure_store::{Administration, Expect, Key, Put, Removal, Store, StoreError, Version};
pub(crate) use tenure_testkit::{block_on, key, shell, skipped, sleep_ms, tests_in};
use tenure_testkit::{state_of, wait_until};

/// A path for a directory; deleted when dropped.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// On the disk of the build, or in the file system in which the test runs.
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-{name}-{}-{number}", std::process::id());
        let path = tests_in(env!("CARGO_TARGET_TMPDIR")).join(name);
        for left in [Some(path.clone()), machine_witnesses()].into_iter().flatten() {
            let _ = std::fs::remove_dir_all(left);
        }
        Self(path)
    }

    pub(crate) fn store(&self) -> File {
        open(&self.0)
    }

    /// The names in the directory with this ending.
    pub(crate) fn names(&self, ending: &str) -> Vec<String> {
        let names = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(ending)).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The machine's directory for witnesses, if the test runs in a mounted file system and has its own.
pub(crate) fn machine_witnesses() -> Option<PathBuf> {
    tests_in("")
        .is_dir()
        .then(|| std::env::var_os("XDG_RUNTIME_DIR"))
        .flatten()
        .map(|path| Path::new(&path).join("tenure"))
}

/// The store in a directory of the test. FUSE is accepted by name.
pub(crate) fn open(directory: impl AsRef<Path>) -> File {
    File::builder().accept_file_system("fuse").open(directory).expect("a directory of the test")
}

/// Writes, and asserts that the store applied the write.
pub(crate) async fn write(store: &File, key: &Key, value: &str, expect: Expect) -> Version {
    match store.put(key, value.to_owned().into(), expect).await.unwrap() {
        Put::Applied(applied) => applied.version,
        Put::Conflict(_) => panic!("{key} is not what was expected"),
    }
}

/// The value and the version of a key.
pub(crate) async fn look(store: &File, key: &Key) -> Option<(String, Version)> {
    let entry = store.get(key).await.unwrap().entry?;
    Some((String::from_utf8(entry.value.to_vec()).unwrap(), entry.version))
}

pub(crate) fn kill(id: u32) {
    let id = rustix::process::Pid::from_raw(id as i32).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}

// ── a process that executes orders ──────────────────────────────────────────────────────────────────────────────────

/// In seconds. A puppet that does not answer must not block the test for ever.
const PATIENCE: i64 = 30;

pub(crate) const DIRECTORY: &str = "TENURE_TEST_PUPPET_IN";

/// If it is set, the puppet shares the store with the group of the directory.
pub(crate) const SHARED: &str = "TENURE_TEST_PUPPET_SHARES";

/// Another process with the store open, which executes orders from its stdin. See [`be_a_puppet`].
pub(crate) struct Puppet {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The worker thread that waits for the disk.
    pub(crate) worker: String,
}

impl Puppet {
    pub(crate) fn start(directory: &Path) -> Self {
        Self::start_with(Command::new(std::env::current_exe().unwrap()), directory)
    }

    /// `command` runs this test binary.
    pub(crate) fn start_with(command: Command, directory: &Path) -> Self {
        Self::try_start_with(command, directory).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    /// The same; the error is that of a store that cannot be opened.
    pub(crate) fn try_start_with(mut command: Command, directory: &Path) -> Result<Self, String> {
        let mut child = command
            .args(["--ignored", "--exact", "puppet", "--nocapture"])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut puppet = Self { child, orders, answers, worker: String::new() };
        let said = puppet.answer().expect("it starts");
        puppet.worker = said.strip_prefix("ready ").ok_or(said.clone())?.to_owned();
        Ok(puppet)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends an order, without waiting for the answer.
    pub(crate) fn order(&mut self, order: &str) {
        let _ = writeln!(self.orders, "{order}");
    }

    /// Sends an order, and returns the answer.
    pub(crate) fn ask(&mut self, order: &str) -> String {
        self.order(order);
        self.answer().expect("it lives")
    }

    /// Kills the process with SIGKILL, and returns the time on the boot-time clock.
    pub(crate) fn kill(&self) -> Instant {
        kill(self.id());
        BootClock::new().now()
    }

    /// Orders a write, without waiting for the answer. `-` expects that there is no entry.
    pub(crate) fn order_put(&mut self, key: &str, value: &str, expect: &str) {
        let _ = writeln!(self.orders, "put {key} {value} {expect}");
    }

    pub(crate) fn put(&mut self, key: &str, value: &str, expect: &str) -> Option<String> {
        self.order_put(key, value, expect);
        self.answer()
    }

    pub(crate) fn get(&mut self, key: &str) -> Option<String> {
        let _ = writeln!(self.orders, "get {key}");
        self.answer()
    }

    /// The next answer; `None` if the process has died.
    pub(crate) fn answer(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.has_something_to_say(), "no answer from a puppet in {PATIENCE} s");
            match self.answers.read_line(&mut line) {
                Ok(0) | Err(_) => return None,
                // The test harness prints as well, and not always on a line of its own.
                Ok(_) => {
                    if let Some(at) = line.find("> ") {
                        return Some(line[at + 2..].trim_end().to_owned());
                    }
                }
            }
        }
    }

    fn has_something_to_say(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let patience = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
        let mut stdout = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
        !self.answers.buffer().is_empty() || poll(&mut stdout, Some(&patience)).is_ok_and(|ready| ready == 1)
    }

    /// Waits until a signal has stopped the process.
    pub(crate) fn until_stopped(&self) {
        wait_until("it stops", || matches!(state_of(self.id() as i32), Some('T' | 't')));
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(shell(&format!("kill -{signal} {}", self.id())));
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of a test named `puppet`: does nothing, unless this process is a puppet.
pub(crate) fn be_a_puppet() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let builder = File::builder();
    let builder = if std::env::var_os(SHARED).is_some() { builder.share_with_group() } else { builder };
    let store = match builder.open(directory) {
        Ok(store) => store,
        Err(error) => return println!("> {error}"),
    };
    block_on(async {
        // Starts the worker thread that waits for the disk.
        let _ = store.get(&key("unused")).await;
        println!("> ready {}", worker());
        for order in std::io::stdin().lines() {
            let order = order.unwrap();
            let words: Vec<&str> = order.split(' ').collect();
            println!("> {}", obey(&store, &words).await);
        }
    });
}

async fn obey(store: &File, words: &[&str]) -> String {
    match *words {
        ["put", name, value, expect] => {
            let expect = if expect == "-" { Expect::Absent } else { Expect::Version(Version::new(expect)) };
            match store.put(&key(name), value.to_owned().into(), expect).await {
                Ok(Put::Applied(applied)) => format!("applied {}", applied.version),
                Ok(Put::Conflict(_)) => "conflict".to_owned(),
                Err(StoreError::Refused(refused)) => format!("refused {refused}"),
                Err(error) => format!("unknown {error}"),
            }
        }
        ["remove", name, version] => match store.remove(&key(name), &Version::new(version)).await {
            Ok(Removal::Removed) => "removed".to_owned(),
            Ok(Removal::Conflict(_)) => "conflict".to_owned(),
            Err(StoreError::Refused(refused)) => format!("refused {refused}"),
            Err(error) => format!("unknown {error}"),
        },
        ["get", name] => match store.get(&key(name)).await {
            Ok(reading) => {
                let time = reading.time.unwrap().as_micros();
                let entry = reading.entry.map_or("nothing".to_owned(), |entry| {
                    let value = String::from_utf8(entry.value.to_vec()).unwrap();
                    format!("{value} {} age {:?}", entry.version, entry.age)
                });
                format!("{time} {entry}")
            }
            Err(error) => format!("failed {error}"),
        },
        _ => panic!("{words:?}"),
    }
}

fn worker() -> String {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap());
    let named = |thread: &std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim() == "tenure-disk")
    };
    let worker = threads.into_iter().find(named).unwrap();
    // It sleeps when it waits for work. An earlier job would go to another thread.
    let sleeps = || {
        let stat = std::fs::read_to_string(worker.path().join("stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('S')
    };
    while !sleeps() {
        sleep_ms(1);
    }
    worker.file_name().into_string().unwrap()
}

// ── strace, which watches it ────────────────────────────────────────────────────────────────────────────────────────

/// `strace`, attached to the thread of a puppet that waits for the disk.
pub(crate) struct Strace {
    child: Child,
    log: PathBuf,
}

impl Strace {
    /// True if strace is installed and permitted. Prints a note if not.
    pub(crate) fn is_there() -> bool {
        let there = shell("strace -o /dev/null true");
        if !there {
            skipped("no strace here, or it may not trace: install it, or allow ptrace");
        }
        there
    }

    /// `inject` changes the calls of the puppet, in strace's syntax.
    pub(crate) fn attach(puppet: &Puppet, inject: &[String]) -> Self {
        Self::attach_to(puppet, &["-p", &puppet.worker], inject)
    }

    /// Attaches to all threads of the puppet, including future ones.
    pub(crate) fn attach_to_all(puppet: &Puppet, inject: &[String]) -> Self {
        Self::attach_to(puppet, &["-f", "-p", &puppet.id().to_string()], inject)
    }

    fn attach_to(puppet: &Puppet, whom: &[&str], inject: &[String]) -> Self {
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("strace-{}", puppet.worker));
        let mut command = Command::new("strace");
        command.args(whom).args(["-y", "-s", "0", "-o"]).arg(&log);
        for inject in inject {
            command.args(["-e", &format!("inject={inject}")]);
        }
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("attached"), "{line}");
        // The remaining output is not read: it is a few lines at most.
        std::mem::forget(said);
        Self { child, log }
    }

    /// Detaches, and returns the log.
    pub(crate) fn detach(mut self) -> String {
        assert!(shell(&format!("kill -INT {}", self.child.id())));
        self.child.wait().unwrap();
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

/// One system call of a log: its name, its number among the calls of this name, and its line.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) number: usize,
    pub(crate) line: String,
}

/// The calls of a log that concern files, in order. The thread also makes calls to sleep and to wake others.
pub(crate) fn calls(log: &str) -> Vec<Call> {
    let mut seen = std::collections::HashMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        let number = seen.entry(name.to_owned()).or_insert(0);
        *number += 1;
        if FILE_CALLS.contains(&name) && !line.contains("anon_inode:") {
            calls.push(Call { name: name.to_owned(), number: *number, line: line.to_owned() });
        }
    }
    calls
}

const FILE_CALLS: &[&str] = &[
    "openat",
    "newfstatat",
    "fstat",
    "stat",
    "lstat",
    "statx",
    "read",
    "write",
    "pread64",
    "pwrite64",
    "flock",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "close",
    "fchown",
    "getdents64",
    "getrandom",
];
