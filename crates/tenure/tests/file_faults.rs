//! A full disk, a deleted directory, an entry that is not a file: a clear error, and no data is lost.

mod file_support;

use std::path::PathBuf;

use tenure::store::File;
use tenure_store::{Expect, Key, Put, Reason, Store, StoreError, Version};

use file_support::{Puppet, Scratch, Strace, be_a_puppet, block_on, key, look, shell, write};

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    be_a_puppet();
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>, reason: Reason, words: &[&str]) {
    let error = answer.expect_err("it should have been refused");
    println!("{error}");
    let StoreError::Refused(refused) = &error else { panic!("not certain: {error}") };
    assert_eq!(refused.reason, reason, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is missing: {error}");
    }
}

/// A small file system in memory; unmounted when dropped.
struct Mount(Scratch);

impl Mount {
    fn new(options: &str) -> Option<Self> {
        let scratch = Scratch::new("mount");
        std::fs::create_dir(&scratch.0).unwrap();
        let mounted = shell(&format!("mount -t tmpfs -o {options} tmpfs {}", scratch.0.display()));
        if !mounted {
            file_support::skipped("no file system can be mounted here");
        }
        mounted.then_some(Self(scratch))
    }

    fn directory(&self) -> PathBuf {
        self.0.0.join("store")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        shell(&format!("umount -l {}", self.0.0.display()));
    }
}

#[test]
fn on_a_full_disk_writes_are_refused_without_effect_and_continue_when_there_is_room() {
    let Some(mount) = Mount::new("size=512k") else { return };
    let store = File::open(mount.directory()).unwrap();
    block_on(async {
        let small = write(&store, &key("k"), "small", Expect::Absent).await;
        let large = "x".repeat(600 * 1024);
        for _ in 0..3 {
            let answer = store.put(&key("k"), large.clone().into(), Expect::Version(small.clone())).await;
            refused(answer, Reason::Unreachable, &["Free some space", mount.directory().to_str().unwrap()]);
        }
        assert_eq!(look(&store, &key("k")).await, Some(("small".to_owned(), small.clone())));
        // The failed attempts left nothing that blocks the next write.
        write(&store, &key("k"), "next", Expect::Version(small)).await;
    });
}

/// A disk also runs out of inodes, and then not even a lock file can be created.
#[test]
fn on_a_disk_without_inodes_existing_entries_can_be_read() {
    let Some(mount) = Mount::new("size=4m,nr_inodes=12") else { return };
    let store = File::open(mount.directory()).unwrap();
    block_on(async {
        let mut written = Vec::new();
        for number in 0..12 {
            let name = key(&format!("k{number}"));
            match store.put(&name, "value".into(), Expect::Absent).await {
                Ok(Put::Applied(_)) => written.push(name),
                answer => refused(answer, Reason::Unreachable, &["Free some space"]),
            }
        }
        assert!((2..12).contains(&written.len()), "{written:?}");
        for name in written {
            assert_eq!(look(&store, &name).await.unwrap().0, "value");
        }
    });
}

#[test]
fn a_store_on_a_read_only_disk_is_refused_at_opening_and_intact_when_it_is_writable_again() {
    let Some(mount) = Mount::new("size=4m") else { return };
    let store = File::open(mount.directory()).unwrap();
    block_on(async {
        let version = write(&store, &key("k"), "value", Expect::Absent).await;
        let path = mount.0.0.display();
        drop(store);
        // A process that another test starts has a copy of every open file here until it executes its own program.
        let remounted = (0..PATIENCE).any(|_| {
            let remounted = shell(&format!("mount -o remount,ro {path}"));
            if !remounted {
                file_support::sleep_ms(10);
            }
            remounted
        });
        assert!(remounted, "a process has a file open for writing there");
        refused_opening(&mount);
        // A reader needs no write access.
        let store = File::builder().open_to_read(mount.directory()).unwrap().unwrap();
        assert_eq!(look(&store, &key("k")).await, Some(("value".to_owned(), version.clone())));
        drop(store);
        assert!(shell(&format!("mount -o remount,rw {path}")));
        let store = File::open(mount.directory()).unwrap();
        assert_eq!(look(&store, &key("k")).await, Some(("value".to_owned(), version)));
    });
}

/// Number of attempts, 10 ms apart.
const PATIENCE: usize = 1_000;

fn refused_opening(mount: &Mount) {
    let error = File::open(mount.directory()).expect_err("nothing could be written");
    println!("{error}");
    assert!(error.to_string().contains("Mount it writable"), "{error}");
}

/// The test sets the limit for another process, because descriptors are per process.
#[test]
fn without_a_free_descriptor_a_call_is_refused_and_says_what_to_raise() {
    let scratch = Scratch::new("descriptors");
    block_on(write(&scratch.store(), &key("k"), "value", Expect::Absent));
    let mut puppet = Puppet::start(&scratch.0);
    let pid = rustix::process::Pid::from_raw(i32::try_from(puppet.id()).unwrap());
    let limit = |count| {
        let limit = rustix::process::Rlimit { current: Some(count), maximum: Some(1024) };
        rustix::process::prlimit(pid, rustix::process::Resource::Nofile, limit).unwrap();
    };
    limit(3);
    let answer = puppet.put("k", "new", "-").unwrap();
    assert!(answer.starts_with("refused") && answer.contains("ulimit -n"), "{answer}");
    let answer = puppet.get("k").unwrap();
    assert!(answer.starts_with("failed") && answer.contains("ulimit -n"), "{answer}");
    limit(1024);
    assert!(puppet.get("k").unwrap().contains(" value "), "it goes on when there are some again");
}

/// If many waiting contenders wake at once, all but one of them have lost before they write.
#[test]
fn a_writer_that_has_already_lost_gets_its_conflict_without_waiting_for_the_disk() {
    if !Strace::is_there() {
        return;
    }
    let scratch = Scratch::new("lost");
    let mut puppet = Puppet::start(&scratch.0);
    let first = puppet.put("k", "one", "-").unwrap().strip_prefix("applied ").unwrap().to_owned();
    let second = puppet.put("k", "two", &first).unwrap().strip_prefix("applied ").unwrap().to_owned();
    let strace = Strace::attach_to_all(&puppet, &[]);
    for expect in ["-", &first] {
        assert_eq!(puppet.put("k", "late", expect).unwrap(), "conflict");
    }
    let quiet = strace.detach();
    let strace = Strace::attach_to_all(&puppet, &[]);
    assert!(puppet.put("k", "three", &second).unwrap().starts_with("applied"));
    let loud = strace.detach();
    let syncs = |log: &str| log.lines().filter(|line| line.contains("fsync(")).count();
    assert_eq!((syncs(&quiet), syncs(&loud)), (0, 2), "{quiet}");
    assert!(!quiet.contains(".tmp"), "{quiet}");
}

#[test]
fn a_directory_that_was_deleted_or_moved_is_noticed_at_once() {
    for command in ["rm -r PATH", "mv PATH PATH.away && mkdir -m 700 PATH"] {
        let scratch = Scratch::new("gone");
        let store = scratch.store();
        block_on(async {
            let version = write(&store, &key("k"), "value", Expect::Absent).await;
            let path = scratch.0.to_str().unwrap();
            assert!(shell(&command.replace("PATH", path)));
            let words = ["no longer the directory", "restart"];
            refused(store.get(&key("k")).await, Reason::Gone, &words);
            refused(store.get(&key("missing")).await, Reason::Gone, &words);
            refused(store.put(&key("k"), "new".into(), Expect::Version(version)).await, Reason::Gone, &words);
            refused(store.put(&key("other"), "new".into(), Expect::Absent).await, Reason::Gone, &words);
            shell(&format!("rm -rf {path}.away"));
        });
    }
}

#[test]
fn an_invalid_entry_is_neither_trusted_nor_overwritten() {
    let scratch = Scratch::new("damaged");
    let store = scratch.store();
    block_on(async {
        let version = write(&store, &key("k"), "value", Expect::Absent).await;
        let path = store.path_of(&key("k"));
        let good = std::fs::read(&path).unwrap();
        let other = Scratch::new("other");
        write(&other.store(), &key("other"), "value", Expect::Absent).await;
        let another = std::fs::read(other.store().path_of(&key("other"))).unwrap();
        let cases: [(&[u8], &str); 6] = [
            (b"", "empty"),
            (b"{\"hello\": 1}", "does not begin"),
            (&good[..good.len() - 2], "cut off"),
            (&[&good[..], b"\n"].concat(), "behind its end"),
            (&another, "another key"),
            (&vec![b'x'; 2 << 20], "more than any entry"),
        ];
        for (bytes, why) in cases {
            std::fs::write(&path, bytes).unwrap();
            let error = store.get(&key("k")).await.unwrap_err();
            let StoreError::Refused(refusal) = &error else { panic!("{error}") };
            assert!(refusal.reason == Reason::Damaged, "a program can tell: {error}");
            for expect in [Expect::Absent, Expect::Version(version.clone())] {
                let answer = store.put(&key("k"), "new".into(), expect).await;
                refused(answer, Reason::Damaged, &[why, path.to_str().unwrap(), "move it away"]);
            }
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "it was overwritten");
        }
        std::fs::remove_file(&path).unwrap();
        write(&store, &key("k"), "anew", Expect::Absent).await;
    });
}

#[test]
fn an_entry_that_is_not_a_file_blocks_no_caller_and_is_not_followed() {
    let scratch = Scratch::new("strange");
    let store = scratch.store();
    let secret = Scratch::new("secret");
    std::fs::write(&secret.0, "secret").unwrap();
    let make: [(&str, String); 3] = [
        ("fifo", format!("mkfifo {}", store.path_of(&key("fifo")).display())),
        ("directory", format!("mkdir {}", store.path_of(&key("directory")).display())),
        ("link", format!("ln -s {} {}", secret.0.display(), store.path_of(&key("link")).display())),
    ];
    block_on(async {
        for (name, command) in make {
            assert!(shell(&command));
            refused(store.get(&key(name)).await.map(|_| ()), Reason::Damaged, &[name]);
            let answer = store.put(&key(name), "new".into(), Expect::Absent).await;
            refused(answer, Reason::Damaged, &[name]);
        }
        assert!(shell(&format!("ln -s {} {}/locked.lock", secret.0.display(), scratch.0.display())));
        refused(
            store.put(&key("locked"), "new".into(), Expect::Absent).await,
            Reason::Damaged,
            &["locked.lock"],
        );
    });
    assert_eq!(std::fs::read_to_string(&secret.0).unwrap(), "secret");
    std::fs::remove_file(&secret.0).unwrap();
}

/// Operators should not delete lock files: two writers can then meet, as the docs say. Everything else still holds. No
/// call hangs or guesses, and the entry is one that was applied. Once the lock files stay, exactly one writer wins
/// again.
#[test]
fn lock_files_that_keep_disappearing_block_no_writer_and_once_they_stay_one_writer_wins_again() {
    let scratch = Scratch::new("locks");
    let stores = [scratch.store(), scratch.store(), scratch.store(), scratch.store()];
    let name = key("k");
    block_on(async {
        let mut version = write(&stores[0], &name, "0", Expect::Absent).await;
        for round in 1..100 {
            let deleting = async {
                for _ in 0..20 {
                    let _ = std::fs::remove_file(scratch.0.join("k.lock"));
                    tokio::task::yield_now().await;
                }
            };
            let contended = contend(&stores, &name, format!("deleted {round}"), version);
            let (applied, ()) = futures_util::future::join(contended, deleting).await;
            let (_, there) = look(&stores[0], &name).await.unwrap();
            assert!(applied.contains(&there), "round {round}: {there} is none of {applied:?}");

            let applied = contend(&stores, &name, format!("left alone {round}"), there).await;
            assert_eq!(applied.len(), 1, "round {round}");
            version = applied.into_iter().next().unwrap();
        }
    });
}

/// All stores replace the same version at once. Returns the versions that were applied; an unknown outcome fails the
/// test.
async fn contend(stores: &[File], key: &Key, value: String, expect: Version) -> Vec<Version> {
    let writes =
        stores.iter().map(|store| store.put(key, value.clone().into(), Expect::Version(expect.clone())));
    let answers = futures_util::future::join_all(writes).await;
    let applied = answers.into_iter().filter_map(|answer| match answer.unwrap() {
        Put::Applied(applied) => Some(applied.version),
        Put::Conflict(_) => None,
    });
    applied.collect()
}

#[test]
fn remains_of_dead_writers_are_deleted_and_files_of_live_ones_are_not() {
    let scratch = Scratch::new("orphans");
    scratch.store();
    let old = |name: &str| {
        let path = scratch.0.join(name);
        std::fs::write(&path, "half").unwrap();
        assert!(shell(&format!("touch -d '2 minutes ago' {}", path.display())));
        std::fs::File::open(path).unwrap()
    };
    drop(old("00000000000000000000000000000001.tmp"));
    let alive = old("00000000000000000000000000000002.tmp");
    alive.lock().unwrap();
    std::fs::write(scratch.0.join("00000000000000000000000000000003.tmp"), "young").unwrap();
    let store = scratch.store();
    block_on(write(&store, &key("k"), "value", Expect::Absent));
    for _ in 0..200 {
        if scratch.names(".tmp").len() == 2 {
            break;
        }
        file_support::sleep_ms(10);
    }
    let mut left = scratch.names("2.tmp");
    left.extend(scratch.names("3.tmp"));
    assert_eq!((left.len(), scratch.names(".tmp").len()), (2, 2));
}

#[test]
fn a_lease_on_a_damaged_file_is_corrupt_and_the_file_stays() {
    let scratch = Scratch::new("corrupt");
    let store = scratch.store();
    let path = store.path_of(&key("k"));
    block_on(async {
        let coordinator = tenure::Coordinator::connect(store).await.unwrap();
        coordinator.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
        std::fs::write(&path, "cut").unwrap();
        let fresh = tenure::Coordinator::connect(scratch.store()).await.unwrap();
        let denied = fresh.lease("k").unwrap().acquire().await.unwrap_err();
        assert_eq!(denied.kind(), tenure::ErrorKind::Corrupt, "{denied}");
        assert_eq!(fresh.record("k").await.unwrap_err().kind(), tenure::ErrorKind::Corrupt);
    });
    assert_eq!(std::fs::read(&path).unwrap(), b"cut");
}
