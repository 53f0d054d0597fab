//! The examples do what their comments say.
#![expect(clippy::disallowed_methods, reason = "other processes are given time")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Maximum time for an immediate action, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory of leases; deleted when dropped.
struct Leases(PathBuf);

impl Leases {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-examples-{}-{number}", std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running example; killed when dropped.
struct Running {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Running {
    /// `None` if the example was not built.
    fn start(name: &str, leases: &Leases) -> Option<Self> {
        Self::start_with(name, leases, None)
    }

    /// The same, with an argument after the directory of the leases.
    fn start_with(name: &str, leases: &Leases, argument: Option<&OsStr>) -> Option<Self> {
        // Next to the directory of this test, target/debug/deps.
        let this = std::env::current_exe().unwrap();
        let path = this.parent()?.parent()?.join("examples").join(name);
        if !path.exists() {
            let why = format!("{} was not built: cargo build -p tenure --examples", path.display());
            tenure_testkit::skipped(&why);
            return None;
        }
        let mut command = Command::new(path);
        command.arg(&leases.0).args(argument);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, says })
    }

    /// The next line of its output; empty after it has exited.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn give(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn token(&mut self) -> u64 {
        self.token_after("working, with token ")
    }

    /// The token at the end of the next line, which begins like this.
    fn token_after(&mut self, begin: &str) -> u64 {
        let line = self.line();
        let token = line.strip_prefix(begin).unwrap_or_else(|| panic!("it says {line:?}"));
        token.parse().unwrap()
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn of_two_cron_jobs_at_once_one_works_and_the_other_exits() {
    let leases = Leases::new();
    let Some(mut one) = Running::start("cron_job", &leases) else { return };
    let mut other = Running::start("cron_job", &leases).unwrap();
    let (first, second) = (one.line(), other.line());
    let (working, left, mut polite) =
        if first.starts_with("backing up") { (first, second, other) } else { (second, first, one) };
    assert!(working.starts_with("backing up, with token "), "{working}");
    assert!(left.starts_with("skipped: lease backup on file://"), "{left}");
    assert_eq!(polite.end().code(), Some(0));
    assert_eq!(polite.line(), "");
}

#[test]
fn a_killed_singleton_worker_is_replaced_and_a_stopped_one_releases() {
    let leases = Leases::new();
    let Some(mut first) = Running::start("singleton_worker", &leases) else { return };
    assert_eq!(first.line(), "standing by");
    let token = first.token();
    let mut second = Running::start("singleton_worker", &leases).unwrap();
    assert_eq!(second.line(), "standing by");

    first.send(Signal::KILL);
    assert_eq!(first.end().signal(), Some(Signal::KILL.as_raw()));
    let next = second.token();
    assert!(next > token, "{next} is not greater than {token}");

    let mut third = Running::start("singleton_worker", &leases).unwrap();
    assert_eq!(third.line(), "standing by");
    second.send(Signal::TERM);
    assert_eq!(second.line(), "stopping");
    assert_eq!(second.end().code(), Some(0));
    assert!(third.token() > next);

    // Also while it stands by.
    let mut fourth = Running::start("singleton_worker", &leases).unwrap();
    assert_eq!(fourth.line(), "standing by");
    fourth.send(Signal::INT);
    assert_eq!(fourth.line(), "stopping");
    assert_eq!(fourth.end().code(), Some(0));
}

#[test]
fn a_singleton_worker_that_lost_its_lease_stands_by_and_works_again() {
    let leases = Leases::new();
    let Some(mut worker) = Running::start("singleton_worker", &leases) else { return };
    assert_eq!(worker.line(), "standing by");
    let token = worker.token();
    std::fs::remove_file(leases.0.join("worker.entry")).unwrap();
    let lost = worker.line();
    assert!(lost.contains("lease worker") && lost.contains("deleted"), "{lost}");
    assert_eq!(worker.line(), "standing by");
    assert!(worker.token() > token);
}

#[test]
fn of_two_blocking_jobs_the_second_works_when_the_first_is_done() {
    let leases = Leases::new();
    let Some(mut first) = Running::start("blocking_job", &leases) else { return };
    assert_eq!(first.line(), "standing by");
    let token = first.token();
    let mut second = Running::start("blocking_job", &leases).unwrap();
    assert_eq!(second.line(), "standing by");
    first.give("one");
    assert_eq!(first.line(), format!("one, with token {token}"));

    drop(first.child.stdin.take());
    assert_eq!(first.end().code(), Some(0));
    let next = second.token();
    assert!(next > token, "{next} is not greater than {token}");
    second.give("two");
    assert_eq!(second.line(), format!("two, with token {next}"));
    std::fs::remove_file(leases.0.join("job.entry")).unwrap();
    let began = Instant::now();
    while second.child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "it goes on without its record");
        let _ = writeln!(second.child.stdin.as_mut().unwrap(), "three");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(second.end().code(), Some(1));
}

#[test]
fn one_dispatcher_empties_the_outbox_and_when_it_is_killed_another_continues() {
    let (leases, outbox) = (Leases::new(), Leases::new());
    let start = || Running::start_with("outbox_dispatcher", &leases, Some(outbox.0.as_os_str()));
    let Some(mut first) = start() else { return };
    assert_eq!(first.line(), "standing by");
    let token = first.token_after("dispatching, with token ");
    let mut second = start().unwrap();
    assert_eq!(second.line(), "standing by");
    let put = |name: &str| std::fs::write(outbox.0.join(name), "").unwrap();
    put("one");
    assert_eq!(first.line(), format!("sent one, with token {token}"));
    // A dispatcher that is killed before it has moved the message sends it again.
    let began = Instant::now();
    while !outbox.0.join("sent/one").exists() {
        assert!(began.elapsed() < PATIENCE, "the message stays in the outbox");
        std::thread::sleep(Duration::from_millis(1));
    }

    first.send(Signal::KILL);
    first.end();
    put("two");
    let next = second.token_after("dispatching, with token ");
    assert!(next > token, "{next} is not greater than {token}");
    assert_eq!(second.line(), format!("sent two, with token {next}"));
    second.send(Signal::TERM);
    assert_eq!(second.end().code(), Some(0));
    let sent = std::fs::read_dir(outbox.0.join("sent")).unwrap().count();
    assert_eq!(sent, 2);
}

#[test]
fn in_a_rolling_deploy_the_new_version_leads_as_soon_as_the_old_one_has_drained() {
    let leases = Leases::new();
    let start = |version: &str| Running::start_with("rolling_deploy", &leases, Some(OsStr::new(version)));
    let Some(mut old) = start("v1") else { return };
    assert_eq!(old.line(), "v1 stands by");
    let token = old.token_after("v1 leads, with token ");
    let mut new = start("v2").unwrap();
    assert_eq!(new.line(), "v2 stands by");

    old.send(Signal::TERM);
    assert_eq!(old.line(), "v1 stops");
    let next = new.token_after("v2 leads, with token ");
    assert!(next > token, "{next} is not greater than {token}");
    assert_eq!(old.end().code(), Some(0));

    // A version that only stands by stops at once, too.
    let mut third = start("v3").unwrap();
    assert_eq!(third.line(), "v3 stands by");
    third.send(Signal::INT);
    assert_eq!(third.line(), "v3 stops");
    assert_eq!(third.end().code(), Some(0));
}

/// The answer of an endpoint.
fn request(address: &str) -> String {
    let mut stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: leader\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn only_the_leader_serves_the_endpoint_and_a_follower_redirects_to_it() {
    let leases = Leases::new();
    let Some(mut first) = Running::start("leader_endpoint", &leases) else { return };
    let address_of = |node: &mut Running| node.line().strip_prefix("listening at ").unwrap().to_owned();
    let leader = address_of(&mut first);
    let token = first.token_after("leading, with token ");
    let mut second = Running::start("leader_endpoint", &leases).unwrap();
    let follower = address_of(&mut second);
    let served = request(&leader);
    assert!(served.starts_with("HTTP/1.1 200 OK\r\n"), "{served}");
    assert!(served.ends_with(&format!("written with token {token}\n")), "{served}");
    // Until it has read the record for the first time, it knows of no leader.
    let began = Instant::now();
    let redirected = loop {
        let answer = request(&follower);
        if !answer.starts_with("HTTP/1.1 503 ") || began.elapsed() > PATIENCE {
            break answer;
        }
    };
    assert!(redirected.starts_with("HTTP/1.1 307 "), "{redirected}");
    assert!(redirected.contains(&format!("Location: {leader}/\r\n")), "{redirected}");

    first.send(Signal::KILL);
    first.end();
    let next = second.token_after("leading, with token ");
    assert!(next > token, "{next} is not greater than {token}");
    assert!(request(&follower).ends_with(&format!("written with token {next}\n")));
}

#[test]
fn three_of_four_indexers_work_and_the_fourth_takes_over_the_slot_of_a_killed_one() {
    let leases = Leases::new();
    let Some(first) = Running::start("three_indexers", &leases) else { return };
    let mut indexers = vec![first];
    let mut parts = Vec::new();
    for number in 0..3 {
        if number > 0 {
            indexers.push(Running::start("three_indexers", &leases).unwrap());
        }
        let indexer = indexers.last_mut().unwrap();
        assert_eq!(indexer.line(), "standing by");
        parts.push(indexer.line());
    }
    let part = |line: &str| line.split(", with token").next().unwrap().to_owned();
    let mut sorted: Vec<_> = parts.iter().map(|line| part(line)).collect();
    sorted.sort();
    assert_eq!(sorted, ["indexing part 0 of 3", "indexing part 1 of 3", "indexing part 2 of 3"]);
    let mut fourth = Running::start("three_indexers", &leases).unwrap();
    assert_eq!(fourth.line(), "standing by");
    std::thread::sleep(Duration::from_millis(300));
    indexers[1].send(Signal::KILL);
    assert_eq!(part(&fourth.line()), part(&parts[1]), "at once, by the witness");
    fourth.send(Signal::TERM);
    assert_eq!(fourth.line(), "stopping");
    assert_eq!(fourth.end().code(), Some(0));
}

#[test]
fn a_paused_writer_writes_twice_without_a_fence_and_is_refused_with_one() {
    let Some(mut example) = Running::start("fencing", &Leases::new()) else { return };
    let mut lines = Vec::new();
    while let Some(line) = Some(example.line()).filter(|line| !line.is_empty()) {
        lines.push(line);
    }
    assert_eq!(example.end().code(), Some(0), "{lines:?}");
    let begin = [
        "  A has checked its lease, and is paused before it writes payment 3",
        "  B took over while A was paused",
        "  B wrote payment 3",
    ];
    let stops = "  A stops: its check reports Lost";
    assert_eq!(lines[0], "without a fence:");
    assert_eq!(lines[1..4], begin);
    assert_eq!(
        lines[4..7],
        ["  A wrote payment 3, too late", stops, "  the ledger has [\"payment 3\", \"payment 3\"]"]
    );
    assert_eq!(lines[7], "with a fence:");
    assert_eq!(lines[8..11], begin);
    assert!(
        lines[11].starts_with("  the ledger refused token ") && lines[11].contains("of lease settlement"),
        "{lines:?}"
    );
    assert_eq!(lines[12..], [stops, "  the ledger has [\"payment 3\"]"]);
}

#[test]
fn a_fenced_endpoint_refuses_the_late_writer_also_after_its_restart() {
    let leases = Leases::new();
    // The second run finds the mark and the record of the first one.
    for _ in 0..2 {
        let Some(mut example) = Running::start("fenced_endpoint", &leases) else { return };
        for line in [
            "A writes: 200 OK",
            "B writes: 200 OK",
            "A writes late: 409 Conflict",
            "A writes after a restart of the server: 409 Conflict",
            "B writes again: 200 OK",
            "",
        ] {
            assert_eq!(example.line(), line);
        }
        assert_eq!(example.end().code(), Some(0));
    }
}
