//! The file store keeps the contract and supports leases, with racers in threads and in processes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::store::File;
use tenure_conformance::{Harness, Suite, Supported};
use tenure_store::{BoxFuture, Expect, Key, Put, Store, StoreError};
use tenure_testkit::{FileSystem, Mounted, skipped, tests_in};

/// A directory that is deleted on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(place: impl AsRef<Path>, name: &str) -> Self {
        let path = place.as_ref().join(format!("tenure-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    /// A directory on the disk of the build, or in the file system inside which the test runs.
    fn on_disk(name: &str) -> Self {
        Self::new(tests_in(env!("CARGO_TARGET_TMPDIR")), name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The store in a directory of the test. FUSE is accepted by name.
fn open(directory: impl AsRef<Path>) -> File {
    File::builder().accept_file_system("fuse").open(directory).expect("a directory of our own")
}

struct InADirectory {
    directory: Scratch,
    backup: Scratch,
    /// True if a group shares the directory.
    shared: bool,
}

impl InADirectory {
    fn new(directory: Scratch) -> Self {
        let backup = Scratch(directory.0.with_extension("backup"));
        let _ = std::fs::remove_dir_all(&backup.0);
        Self { directory, backup, shared: false }
    }

    /// A directory that a group shares; `None` if this user cannot give it to a group.
    fn shared(directory: Scratch) -> Option<Self> {
        std::fs::create_dir(&directory.0).expect("a directory of our own");
        if std::os::unix::fs::chown(&directory.0, Some(0), Some(GROUP)).is_err() {
            skipped("only root can give a directory to any group");
            return None;
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o2770);
        std::fs::set_permissions(&directory.0, mode).expect("a directory of our own");
        Some(Self { shared: true, ..Self::new(directory) })
    }

    fn store(&self) -> File {
        if self.shared {
            return File::builder().share_with_group().open(&self.directory.0).expect("it is set up");
        }
        open(&self.directory.0)
    }
}

/// A group without a name.
const GROUP: u32 = 64_120;

/// Makes `to` have exactly the files of `from`, each replaced completely, as rsync does.
fn mirror(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for old in std::fs::read_dir(to)? {
        let old = old?;
        if !from.join(old.file_name()).exists() {
            std::fs::remove_file(old.path())?;
        }
    }
    for new in std::fs::read_dir(from)? {
        let new = new?;
        let part = to.join("part.tmp");
        std::fs::copy(new.path(), &part)?;
        std::fs::rename(&part, to.join(new.file_name()))?;
    }
    Ok(())
}

impl Harness for InADirectory {
    fn name(&self) -> String {
        self.store().to_string()
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async { Arc::new(self.store()) as Arc<dyn Store> })
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        BootClock.sleep_until(BootClock.now() + wait)
    }

    fn race(&self, racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'_, ()> {
        tenure_testkit::race(racers)
    }

    /// There is nothing to stop: a process that opens the directory again has only its content.
    fn restart(&self) -> BoxFuture<'_, Supported> {
        Box::pin(async { Supported::Yes })
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        std::fs::remove_file(self.store().path_of(key)).expect("the entry is there");
        Box::pin(async { Supported::Yes })
    }

    fn snapshot(&self) -> BoxFuture<'_, Supported> {
        mirror(&self.directory.0, &self.backup.0).expect("files can be copied");
        Box::pin(async { Supported::Yes })
    }

    fn restore(&self) -> BoxFuture<'_, Supported> {
        mirror(&self.backup.0, &self.directory.0).expect("files can be copied");
        Box::pin(async { Supported::Yes })
    }
}

/// A directory has no wire to be cut. It gives hints, so it needs no listing with stamps.
const NOT_OFFERED: [(&str, &str); 5] = [
    ("unknown", "a create whose answer is lost is unknown"),
    ("unknown", "a replace whose answer is lost is unknown"),
    ("unknown", "a write that never arrived is not reported as applied or as a conflict"),
    ("list", "a listing with stamps has the same keys"),
    ("list", "a stamp changes with each write, and only then"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_directory_on_a_disk_keeps_the_contract() {
    let report = Suite::new(1)
        .only_contract()
        .racers(64)
        .rounds(10)
        .run(&InADirectory::new(Scratch::on_disk("disk")))
        .await;
    println!("{report}");
    report.assert_passed();
    let skipped: Vec<_> = report.skips().map(|finding| (finding.clause, finding.check)).collect();
    assert_eq!(skipped, NOT_OFFERED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_directory_that_a_group_shares_keeps_the_contract() {
    let Some(harness) = InADirectory::shared(Scratch::new("/tmp", "group")) else { return };
    let report = Suite::new(1).only_contract().racers(16).rounds(10).run(&harness).await;
    println!("{report}");
    report.assert_passed();
    let skipped: Vec<_> = report.skips().map(|finding| (finding.clause, finding.check)).collect();
    assert_eq!(skipped, NOT_OFFERED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_directory_in_memory_keeps_the_contract_in_many_more_races() {
    let report = Suite::new(1)
        .only_contract()
        .racers(64)
        .rounds(100)
        .run(&InADirectory::new(Scratch::new("/dev/shm", "shm")))
        .await;
    report.assert_passed();
    let skipped: Vec<_> = report.skips().map(|finding| (finding.clause, finding.check)).collect();
    assert_eq!(skipped, NOT_OFFERED);
}

/// With fewer racers: this test runs inside every file system.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_any_kind_keeps_the_contract() {
    let harness = InADirectory::new(Scratch::on_disk("any"));
    let report = Suite::new(1).only_contract().racers(8).rounds(4).run(&harness).await;
    println!("{report}");
    report.assert_passed();
    let promised = harness.store().guarantees();
    let weaker = |clause: &str| !promised.watch && ["guarantees", "watch", "ages"].contains(&clause);
    let skipped = report.skips().filter(|finding| !weaker(finding.clause));
    assert_eq!(skipped.map(|finding| (finding.clause, finding.check)).collect::<Vec<_>>(), NOT_OFFERED);
}

/// On the machine's own clock, because the speed of the disk is real.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_on_a_disk_carries_leases() {
    let suite = Suite::new(1).only_leases().ttl(Duration::from_secs(3)).contenders(6).turns(2);
    let report = suite.run(&InADirectory::new(Scratch::on_disk("leases"))).await;
    println!("{report}");
    report.assert_passed();
    assert!(
        report.skips().all(|finding| finding.clause == "answers"),
        "a directory has no wire to be cut: {report}"
    );
}

/// On the machine's own clock, because the speed of the disk is real.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_on_a_disk_carries_the_primitives() {
    let suite = Suite::new(1).only_primitives().ttl(Duration::from_secs(3));
    let report = suite.run(&InADirectory::new(Scratch::on_disk("primitives"))).await;
    println!("{report}");
    report.assert_passed();
    assert!(
        report.skips().all(|finding| finding.clause == "doubt"),
        "a directory has no wire to be cut: {report}"
    );
}

// ── processes ───────────────────────────────────────────────────────────────────────────────────────────────────────

const RACERS: usize = 64;
const DIRECTORY: &str = "TENURE_TEST_RACE_IN";
const WINS: usize = 10;

/// Each win replaces a version that no other process has replaced, and adds one. Winners report on stdout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process of other tests"]
async fn one_of_the_racing_processes() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let store = open(directory);
    let key = Key::parse("counter").unwrap();
    let mut wins = 0;
    while wins < WINS {
        let there = store.get(&key).await.expect("readers take no lock").entry;
        let (count, expect, seen) = match there {
            None => (0, Expect::Absent, "nothing".to_owned()),
            Some(entry) => {
                let count: u64 = std::str::from_utf8(&entry.value).unwrap().parse().unwrap();
                (count, Expect::Version(entry.version.clone()), entry.version.to_string())
            }
        };
        match store.put(&key, (count + 1).to_string().into(), expect).await {
            Ok(Put::Applied(applied)) => {
                wins += 1;
                println!("won {seen} {} {}", applied.version, count + 1);
            }
            Ok(Put::Conflict(_)) => {}
            // On a machine where 64 processes share two processors, the holder of a lock may wait for a second.
            Err(StoreError::Refused(refused)) => println!("refused {refused}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn of_sixty_four_racing_processes_exactly_one_replaces_each_version() {
    for scratch in [Scratch::on_disk("race"), Scratch::new("/dev/shm", "race")] {
        race(&scratch.0, RACERS);
    }
}

fn race(directory: &Path, many: usize) {
    let this = std::env::current_exe().unwrap();
    let start = || {
        Command::new(&this)
            .args(["--ignored", "--exact", "one_of_the_racing_processes", "--nocapture"])
            .env(DIRECTORY, directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let racers: Vec<_> = (0..many).map(|_| start()).collect();
    let (mut replaced, mut counts, mut refused) = (BTreeMap::new(), BTreeSet::new(), 0);
    for racer in racers {
        let output = racer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["won", old, new, count] => {
                    let twice = replaced.insert(old.to_owned(), new.to_owned());
                    assert_eq!(twice, None, "version {old} was replaced twice");
                    assert!(
                        counts.insert(count.parse::<usize>().unwrap()),
                        "count {count} was reached twice"
                    );
                }
                ["refused", ..] => refused += 1,
                _ => {}
            }
        }
    }
    assert_eq!(counts, (1..=many * WINS).collect());
    println!(
        "{}: {} wins in one chain, {refused} refused for a busy lock",
        directory.display(),
        counts.len()
    );
}

// ── inside of other file systems ────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_directory_keeps_the_contract_inside_every_file_system() {
    Mounted::each(&FileSystem::ALL, |mounted| {
        mounted.rerun(&["a_directory_of_any_kind_keeps_the_contract"], &[]);
        race(&mounted.path().join("race"), 4);
    });
}

/// Simulates a container that is started from an image with the store in it: each file is copied up at its first write.
#[test]
fn a_store_in_the_lower_layer_of_an_overlay_continues_in_the_upper_one() {
    for kind in [FileSystem::OverlayOnTmpfs, FileSystem::OverlayOnExt4, FileSystem::FuseOverlayfs] {
        let mounted = Mounted::with_lower(kind, |lower| {
            let store = open(lower.join("race"));
            let key = Key::parse("counter").unwrap();
            let put = store.put(&key, "0".into(), Expect::Absent);
            assert!(matches!(tenure_testkit::block_on(put).unwrap(), Put::Applied(_)));
        });
        let Some(mounted) = mounted else { return };
        // Writers, and readers of files that are still in the lower layer.
        race(&mounted.path().join("race"), 8);
    }
}
