//! An operator removes an entry: only the version that the operator saw, atomically, and the time of the directory
//! stays.

mod file_support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tenure::clock::{Clock, ManualClock, WallTime};
use tenure::store::File;
use tenure::{Coordinator, Forgotten};
use tenure_store::{Administration, Expect, Key, Put, Reason, Removal, Store, StoreError, Version};

use file_support::{Call, Puppet, Scratch, Strace, be_a_puppet, block_on, calls, key, look, write};

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    be_a_puppet();
}

#[test]
fn only_the_observed_version_is_removed_and_the_lock_stays() {
    let scratch = Scratch::new("remove");
    let (store, k) = (scratch.store(), key("jobs/k"));
    block_on(async {
        let first = write(&store, &k, "first", Expect::Absent).await;
        let second = write(&store, &k, "second", Expect::Version(first.clone())).await;
        for other in [&first, &store.identity().impossible_version, &Version::new("")] {
            assert!(matches!(store.remove(&k, other).await, Ok(Removal::Conflict(_))), "{other}");
        }
        assert_eq!(look(&store, &k).await, Some(("second".to_owned(), second.clone())));
        assert!(matches!(store.remove(&k, &second).await, Ok(Removal::Removed)));
        assert_eq!(look(&scratch.store(), &k).await, None);
        assert!(matches!(store.remove(&k, &second).await, Ok(Removal::Conflict(_))), "it is gone already");
        let late = store.put(&k, "late".into(), Expect::Version(second)).await;
        assert!(matches!(late, Ok(Put::Conflict(_))), "no writer replaces a deleted entry");
        assert_eq!((scratch.names(".entry").len(), scratch.names(".lock").len()), (0, 1));
        write(&store, &k, "again", Expect::Absent).await;
    });
}

#[test]
fn a_sweep_leaves_neither_entry_nor_lock_and_removes_nothing_that_a_lease_needs() {
    let scratch = Scratch::new("sweep");
    let (store, swept, kept) = (scratch.store(), Key::from_stored(".tenure/probe/1/a").unwrap(), key("k"));
    block_on(async {
        for key in [&swept, &kept, &Key::scratch()] {
            write(&store, key, "first", Expect::Absent).await;
        }
        for key in [&kept, &Key::scratch()] {
            assert!(
                matches!(store.scratch().unwrap().sweep(key).await, Err(StoreError::Refused(_))),
                "{key}"
            );
            assert!(look(&store, key).await.is_some(), "{key}");
        }
        store.scratch().unwrap().sweep(&swept).await.unwrap();
        store.scratch().unwrap().sweep(&swept).await.expect("it is gone already, which is no error");
        assert_eq!(look(&scratch.store(), &swept).await, None);
        assert_eq!((scratch.names(".entry").len(), scratch.names(".lock").len()), (2, 2));
        write(&store, &swept, "again", Expect::Absent).await;
    });
}

#[test]
fn tokens_grow_even_if_the_record_is_deleted_and_the_clock_set_back() {
    let (scratch, clock) = (Scratch::new("forget"), ManualClock::new());
    clock.set_wall(WallTime::from_millis(1_794_720_600_000));
    let mut latest = None;
    for round in 0..4 {
        // Each store is another process, or the same process after a reboot.
        let store = File::builder().clock(Arc::new(clock.clone())).open(&scratch.0).unwrap();
        block_on(async {
            let connecting = Coordinator::builder().clock(Arc::new(clock.clone())).connect(store);
            let coordinator = connecting.await.unwrap();
            let lease = coordinator.lease("k").unwrap().manual().acquire().await.unwrap();
            assert!(Some(lease.token()) > latest, "round {round}: {} after {latest:?}", lease.token());
            latest = Some(lease.token());
            lease.release().await.unwrap();
            let forgotten = coordinator.forget("k", Duration::ZERO).await.unwrap();
            assert!(
                matches!(forgotten, Forgotten::Removed { token, .. } if Some(token) == latest),
                "{forgotten:?}"
            );
        });
        assert_eq!(scratch.names(".entry"), Vec::<String>::new());
        clock.set_wall(WallTime::from_millis(clock.wall().as_millis() - 3_600_000));
    }
}

#[test]
fn a_store_opened_for_reads_removes_nothing() {
    let scratch = Scratch::new("read-only");
    let version = block_on(write(&scratch.store(), &key("k"), "value", Expect::Absent));
    let store = File::builder().open_to_read(&scratch.0).unwrap().unwrap();
    block_on(async {
        let Err(StoreError::Refused(refused)) = store.remove(&key("k"), &version).await else { panic!() };
        assert_eq!(refused.reason, Reason::Invalid, "{refused}");
        assert!(look(&store, &key("k")).await.is_some());
    });
}

#[test]
fn a_removal_does_not_wait_without_limit_for_a_stopped_writer() {
    let scratch = Scratch::new("stopped");
    let store = scratch.store();
    block_on(async {
        let version = write(&store, &key("k"), "value", Expect::Absent).await;
        let lock = std::fs::File::open(scratch.0.join("k.lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let Err(StoreError::Refused(refused)) = store.remove(&key("k"), &version).await else { panic!() };
        let who = format!("process {} (", std::process::id());
        assert!(refused.to_string().contains(&who), "{refused}");
        drop(lock);
        assert!(matches!(store.remove(&key("k"), &version).await, Ok(Removal::Removed)));
    });
}

/// A removal has no temporary file that could be unlinked to make it harmless, so its lock is not replaced.
#[test]
fn during_a_removal_no_lock_is_replaced_and_the_message_names_the_stopped_process() {
    let scratch = Scratch::new("gate");
    let store = scratch.store();
    block_on(async {
        let version = write(&store, &key("k"), "value", Expect::Absent).await;
        let lock = scratch.0.join("k.lock");
        let stopped = Sleeper::with_the_lock(&lock);
        let gate = std::fs::File::open(&scratch.0).unwrap();
        flock(&gate, FlockOperation::LockExclusive).unwrap();
        let put = store.put(&key("k"), "next".into(), Expect::Version(version.clone())).await;
        let Err(StoreError::Refused(refused)) = put else { panic!("{put:?}") };
        println!("{refused}");
        let pid = stopped.0.id();
        for words in [format!("process {pid} ("), format!("is stopped: continue it (kill -CONT {pid})")] {
            assert!(refused.to_string().contains(&words), "{refused}");
        }
        drop(gate);
        write(&store, &key("k"), "next", Expect::Version(version)).await;
    });
}

/// A stopped process that owns a lock.
struct Sleeper(std::process::Child);

impl Sleeper {
    fn with_the_lock(lock: &std::path::Path) -> Self {
        let mut command = std::process::Command::new("flock");
        let child = command.arg("--no-fork").arg(lock).args(["sleep", "60"]).spawn().unwrap();
        let sleeper = Self(child);
        let file = std::fs::File::open(lock).unwrap();
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            flock(&file, FlockOperation::Unlock).unwrap();
            file_support::sleep_ms(5);
        }
        assert!(file_support::shell(&format!("kill -STOP {}", sleeper.0.id())));
        sleeper
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Without the mark, no trace of the token would remain.
#[test]
fn nothing_is_removed_while_the_mark_cannot_be_raised() {
    let scratch = Scratch::new("mark");
    let store = scratch.store();
    block_on(async {
        let version = write(&store, &key("k"), "value", Expect::Absent).await;
        let mark = std::fs::File::open(scratch.0.join("tenure.mark")).unwrap();
        flock(&mark, FlockOperation::LockExclusive).unwrap();
        let Err(StoreError::Refused(refused)) = store.remove(&key("k"), &version).await else { panic!() };
        assert!(refused.to_string().contains("tenure.mark"), "{refused}");
        assert!(look(&store, &key("k")).await.is_some());
    });
}

// ── crashes and failures during a removal ───────────────────────────────────────────────────────────────────────────

fn directory() -> (Scratch, String) {
    let scratch = Scratch::new("remove-crash");
    let version = block_on(write(&scratch.store(), &key("k"), "old", Expect::Absent)).to_string();
    (scratch, version)
}

fn order(puppet: &mut Puppet, version: &str) -> Option<String> {
    puppet.order(&format!("remove k {version}"));
    puppet.answer()
}

fn calls_of_a_removal() -> Vec<Call> {
    let (scratch, version) = directory();
    let mut puppet = Puppet::start(&scratch.0);
    let strace = Strace::attach(&puppet, &[]);
    assert_eq!(order(&mut puppet, &version).as_deref(), Some("removed"));
    let calls = calls(&strace.detach());
    let at = |name: &str| calls.iter().position(|call| call.name.starts_with(name)).expect("it is called");
    assert!(at("fdatasync") < at("unlink") && at("unlink") < at("fsync"), "{calls:?}");
    calls
}

/// True if the entry is deleted; asserts that the old entry or none is there. Then another writer continues.
fn is_gone_and_goes_on(scratch: &Scratch, when: &str) -> bool {
    let store = scratch.store();
    block_on(async {
        let there = look(&store, &key("k")).await;
        assert!(there.as_ref().is_none_or(|(value, _)| value == "old"), "{when}: {there:?}");
        let gone = there.is_none();
        let expect = there.map_or(Expect::Absent, |(_, version)| Expect::Version(version));
        write(&store, &key("k"), "next", expect).await;
        gone
    })
}

#[test]
fn a_removal_killed_at_any_call_leaves_the_complete_entry_or_none() {
    if !Strace::is_there() {
        return;
    }
    let mut gone = Vec::new();
    for Call { name, number, .. } in calls_of_a_removal() {
        let (scratch, version) = directory();
        let mut puppet = Puppet::start(&scratch.0);
        let strace = Strace::attach(&puppet, &[format!("{name}:signal=KILL:when={number}")]);
        let removed = order(&mut puppet, &version).as_deref() == Some("removed");
        let when = format!("killed before {name} number {number}");
        assert!(puppet.answer().is_none(), "{when}: it lives");
        drop((puppet, strace));
        let is_gone = is_gone_and_goes_on(&scratch, &when);
        assert!(is_gone || !removed, "{when}: said removed, and is there");
        gone.push(is_gone);
    }
    assert!(gone.is_sorted(), "once it is gone it is gone: {gone:?}");
}

#[test]
fn a_removal_whose_call_fails_reports_the_truth() {
    if !Strace::is_there() {
        return;
    }
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for Call { name, number, .. } in calls_of_a_removal().iter().filter(|call| call.name != "close") {
        for errno in ["EIO", "EMFILE", "EINTR"] {
            let (scratch, version) = directory();
            let mut puppet = Puppet::start(&scratch.0);
            let strace = Strace::attach(&puppet, &[format!("{name}:error={errno}:when={number}")]);
            let when = format!("{name} number {number} failed with {errno}");
            let answer = order(&mut puppet, &version).unwrap_or_else(|| panic!("{when}: it died"));
            let log = strace.detach();
            assert!(log.contains("(INJECTED)"), "{when}: it did not: {log}");
            drop(puppet);
            let gone = is_gone_and_goes_on(&scratch, &when);
            let answer = answer.split(' ').next().unwrap();
            match answer {
                "removed" => assert!(gone, "{when}: said removed, and is there"),
                "refused" => assert!(!gone, "{when}: said that it had no effect, and is gone"),
                "unknown" => {}
                other => panic!("{when}: {other}"),
            }
            *said.entry(format!("{answer}, {}", if gone { "gone" } else { "there" })).or_default() += 1;
        }
    }
    println!("what was said, and what was so: {said:?}");
}

/// As for the rename of a write: the test makes the call that strace fails.
#[test]
fn an_unlink_that_the_disk_makes_and_then_fails_is_unknown_and_never_refused() {
    if !Strace::is_there() {
        return;
    }
    let calls = calls_of_a_removal();
    let Call { name, number, .. } =
        calls.iter().find(|call| call.name.starts_with("unlink") && call.line.contains("k.entry")).unwrap();
    let (scratch, version) = directory();
    let mut puppet = Puppet::start(&scratch.0);
    let strace = Strace::attach(&puppet, &[format!("{name}:error=EIO:signal=STOP:when={number}")]);
    puppet.order(&format!("remove k {version}"));
    puppet.until_stopped();
    std::fs::remove_file(scratch.0.join("k.entry")).unwrap();
    let log = strace.detach();
    let failed: Vec<_> = log.lines().filter(|line| line.contains("(INJECTED)")).collect();
    assert!(failed.len() == 1 && failed[0].contains("k.entry") && failed[0].contains("EIO"), "{log}");
    puppet.signal("CONT");
    let answer = puppet.answer().unwrap();
    assert!(answer.starts_with("unknown"), "the entry is gone, and the answer is: {answer}");
}
