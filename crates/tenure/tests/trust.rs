//! A store that has passed the safety check is not checked again. After a breach, neither this process nor the next one
//! that connects trusts it.

mod support;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tenure::fence::FenceError;
use tenure::record::{self, Nonce};
use tenure::store::Memory;
use tenure::store::memory::GetFault;
use tenure::{Coordinator, Error, ErrorKind, Lease, Lost, Request, Token, Verdicts};
use tenure_store::{
    Applied, BoxFuture, BoxStream, Expect, Guarantees, Identity, Key, Prefix, Put, Reach, Reading, Reason,
    Store, StoreClock, StoreError, Write,
};
use tenure_testkit::key;

use support::eventually;

/// A networked store at a place, which can start to break its guarantees.
#[derive(Clone, Debug)]
struct Remote {
    memory: Memory,
    place: &'static str,
    lies: Arc<Lies>,
}

#[derive(Debug, Default)]
struct Lies {
    /// Applies every write without its condition.
    ignores_conditions: AtomicBool,
    /// Gives a replace the version that it replaced.
    keeps_version: AtomicBool,
    /// Reports that it does not support conditional writes.
    is_unable: AtomicBool,
}

impl Remote {
    fn new() -> Self {
        Self::with_clock(StoreClock::Floors)
    }

    fn with_clock(clock: StoreClock) -> Self {
        let memory = Memory::builder().reach(Reach::Network).store_clock(clock).build();
        Self { memory, place: "remote:here", lies: Arc::default() }
    }

    /// Reads and writes since the last call.
    fn calls(&self, before: &mut (u64, u64)) -> (u64, u64) {
        let calls = self.memory.calls();
        let now = (calls.gets, calls.puts);
        let (gets, puts) = std::mem::replace(before, now);
        (now.0 - gets, now.1 - puts)
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place)
    }
}

impl Store for Remote {
    fn guarantees(&self) -> Guarantees {
        self.memory.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        self.memory.get(key)
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            if self.lies.is_unable.load(Ordering::SeqCst) {
                return Err(StoreError::refused(Reason::Unsupported, "no conditional writes here"));
            }
            if self.lies.ignores_conditions.load(Ordering::SeqCst) {
                let version = self.memory.overwrite(key, write.value);
                return Ok(Put::Applied(Applied::new(version)));
            }
            let expect = write.expect.clone();
            let put = self.memory.write(key, write).await?;
            match (put, expect) {
                (Put::Applied(Applied { time, .. }), Expect::Version(version))
                    if self.lies.keeps_version.load(Ordering::SeqCst) =>
                {
                    Ok(Put::Applied(Applied::new(version).with_time(time)))
                }
                (put, _) => Ok(put),
            }
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.memory.list(prefix)
    }

    fn identity(&self) -> Identity {
        self.memory.identity().with_place(self.place)
    }
}

/// A directory for verdicts; deleted when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-trust-{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn verdicts(&self) -> Verdicts {
        Verdicts::in_directory(&self.0)
    }

    async fn connect(&self, store: &Remote) -> Result<Coordinator, Error> {
        Coordinator::builder().verdicts(self.verdicts()).connect(store.clone()).await
    }

    /// True if a process that connects now relies on an earlier verdict. Creates the scratch key if it does not exist.
    async fn is_trusted(&self, store: &Remote) -> bool {
        let mut calls = (0, 0);
        store.calls(&mut calls);
        // A process with its own copy, so that its findings do not reach others.
        let copy = Self::new();
        let shell = format!("cp -r {} {}", self.0.display(), copy.0.display());
        assert!(std::process::Command::new("sh").args(["-c", &shell]).status().unwrap().success());
        copy.connect(store).await.unwrap();
        store.calls(&mut calls) == (0, 0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Without a witness, because all contenders are in this process.
fn request(coordinator: &Coordinator, name: &str) -> Request {
    coordinator.lease(name).unwrap().ttl(Duration::from_secs(30)).without_witness().manual()
}

async fn hold(coordinator: &Coordinator, name: &str) -> Lease {
    request(coordinator, name).acquire().await.unwrap()
}

/// Asserts that the coordinator grants nothing more, and that the error says why.
async fn assert_refuses(coordinator: &Coordinator, what: &str) {
    let error = request(coordinator, "another").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let sentence = error.to_string();
    for word in ["lease another on remote:here", "broke a promise", what, "(key k)", "connect again"] {
        assert!(sentence.contains(word), "{word:?} in {sentence}");
    }
}

#[tokio::test]
async fn a_store_is_checked_once_and_again_on_request() {
    let (directory, store) = (Directory::new(), Remote::new());
    let mut calls = (0, 0);
    directory.connect(&store).await.unwrap();
    assert_eq!(store.calls(&mut calls), (4, 3), "for the first time: the scratch key is made");
    directory.connect(&store).await.unwrap();
    assert_eq!(store.calls(&mut calls), (0, 0), "it was found sound");
    Coordinator::builder().verdicts(directory.verdicts()).check_again().connect(store.clone()).await.unwrap();
    assert_eq!(store.calls(&mut calls), (3, 2), "to be checked again");
    Coordinator::connect(store.clone()).await.unwrap();
    assert_eq!(store.calls(&mut calls), (3, 2), "without a remembered verdict");
    let elsewhere = Remote { place: "remote:elsewhere", ..store.clone() };
    directory.connect(&elsewhere).await.unwrap();
    assert_eq!(store.calls(&mut calls), (3, 2), "another place");
    directory.verdicts().forget(store.place).unwrap();
    directory.connect(&elsewhere).await.unwrap();
    assert_eq!(store.calls(&mut calls), (0, 0), "that was not forgotten");
    directory.connect(&store).await.unwrap();
    assert_eq!(store.calls(&mut calls), (3, 2), "and this was");
}

#[tokio::test]
async fn a_refused_store_is_checked_each_time_and_an_earlier_verdict_is_forgotten() {
    let (directory, store) = (Directory::new(), Remote::new());
    directory.connect(&store).await.unwrap();
    store.lies.ignores_conditions.store(true, Ordering::SeqCst);
    directory.connect(&store).await.expect("it was found sound a moment ago");
    let again = Coordinator::builder().verdicts(directory.verdicts()).check_again();
    assert_eq!(again.connect(store.clone()).await.unwrap_err().kind(), ErrorKind::Unsupported);
    for _ in 0..2 {
        assert_eq!(directory.connect(&store).await.unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

#[tokio::test]
async fn a_damaged_verdict_costs_a_check() {
    let (directory, store) = (Directory::new(), Remote::new());
    directory.connect(&store).await.unwrap();
    for entry in std::fs::read_dir(&directory.0).unwrap() {
        let path = entry.unwrap().path();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text = text.replace("remote:here", "remote:hero");
        std::fs::write(&path, text).unwrap();
    }
    assert!(!directory.is_trusted(&store).await);
    directory.connect(&store).await.unwrap();
    assert!(directory.is_trusted(&store).await);
}

#[tokio::test]
async fn a_write_without_a_new_version_ends_the_trust_in_this_and_every_other_process() {
    let (directory, store) = (Directory::new(), Remote::new());
    let coordinator = directory.connect(&store).await.unwrap();
    let other = hold(&coordinator, "other").await;
    let lease = hold(&coordinator, "k").await;
    assert!(directory.is_trusted(&store).await);
    // At the same time, a contender waits for a lease that another process holds.
    let elsewhere = Coordinator::connect(store.clone()).await.unwrap();
    let _held = hold(&elsewhere, "wanted").await;
    let waiting = request(&coordinator, "wanted").acquire();
    let breaking = async {
        eventually("a read of the wanted key", || store.memory.calls().gets > 5).await;
        store.lies.keeps_version.store(true, Ordering::SeqCst);
        lease.renew().await
    };
    let (waited, _) = futures_util::future::join(waiting, breaking).await;
    let error = waited.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("lease wanted on remote:here"), "{error}");
    store.lies.keeps_version.store(false, Ordering::SeqCst);
    assert_refuses(&coordinator, "which is not new").await;
    assert!(other.check().is_ok(), "nothing was seen against that one");
    assert!(!directory.is_trusted(&store).await);
    let anew = directory.connect(&store).await.unwrap();
    let _granted = hold(&anew, "another").await;
}

#[tokio::test]
async fn two_holders_with_one_token_end_the_trust() {
    let (directory, store) = (Directory::new(), Remote::new());
    let coordinator = directory.connect(&store).await.unwrap();
    hold(&coordinator, "k").await.release().await.unwrap();
    let lease = hold(&coordinator, "k").await;
    // So that the store's time is past the token when the keeper sees the term: no restored record could give the same
    // token again.
    support::real_pause(Duration::from_millis(3)).await;
    lease.renew().await.unwrap();
    // A store that checks the condition and writes in two separate steps applies both of two racing grants.
    let mut ours = record::decode(&store.memory.contents(&key("k")).unwrap()).unwrap();
    (ours.term, ours.nonce) = (Nonce::from_bits(7), Nonce::from_bits(7));
    store.memory.overwrite(&key("k"), record::encode(&ours));
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_refuses(&coordinator, "two holders have token").await;
    assert!(!directory.is_trusted(&store).await);
}

/// The next token comes from the record alone, and the record from before the grant is back.
#[tokio::test]
async fn a_restored_backup_does_not_convict_a_store_that_gives_the_same_token_again() {
    let ahead = |store: &Remote| {
        let mut record = record::decode(&store.memory.contents(&key("k")).unwrap()).unwrap();
        record.token = Token::new(record.token.get() + 3_600_000_000).unwrap();
        store.memory.overwrite(&key("k"), record::encode(&record));
    };
    for clock in [StoreClock::Nothing, StoreClock::Floors] {
        let (directory, store) = (Directory::new(), Remote::with_clock(clock));
        let before = directory.connect(&store).await.unwrap();
        hold(&before, "k").await.release().await.unwrap();
        if clock == StoreClock::Floors {
            ahead(&store);
        }
        let coordinator = directory.connect(&store).await.unwrap();
        let backup = store.memory.snapshot();
        let lease = hold(&coordinator, "k").await;
        lease.renew().await.unwrap();
        store.memory.restore(&backup);
        // A process that has observed none of this.
        let elsewhere = Coordinator::connect(store.clone()).await.unwrap();
        let next = hold(&elsewhere, "k").await;
        assert_eq!(next.token(), lease.token(), "{clock:?}: as the test has it");
        assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
        let _granted = hold(&coordinator, "another").await;
        assert!(!has_sound(&directory), "{clock:?}: others check the store");
        next.release().await.unwrap();
        let again = hold(&coordinator, "k").await;
        assert!(again.token() > lease.token(), "{clock:?}");
    }
}

/// As on a store whose clock has whole seconds, if a record is deleted and created anew within one second.
#[tokio::test]
async fn a_deleted_record_with_the_same_token_again_makes_others_check_and_work_continues() {
    let (directory, store) = (Directory::new(), Remote::new());
    let coordinator = directory.connect(&store).await.unwrap();
    let lease = hold(&coordinator, "k").await;
    let mut ours = record::decode(&store.memory.contents(&key("k")).unwrap()).unwrap();
    (ours.term, ours.nonce) = (Nonce::from_bits(7), Nonce::from_bits(7));
    store.memory.overwrite(&key("k"), record::encode(&ours));
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost);
    let _granted = hold(&coordinator, "another").await;
    assert!(!has_sound(&directory));
}

#[tokio::test]
async fn a_deleted_or_restored_record_makes_others_check_and_work_continues() {
    let (directory, store) = (Directory::new(), Remote::new());
    let coordinator = directory.connect(&store).await.unwrap();
    let lease = hold(&coordinator, "k").await;
    let early = store.memory.snapshot();
    lease.renew().await.unwrap();
    assert!(directory.is_trusted(&store).await);
    store.memory.restore(&early);
    assert_eq!(lease.renew().await.unwrap_err().kind(), ErrorKind::Lost, "an earlier record is back");
    eventually("the verdict is gone", || !has_sound(&directory)).await;

    directory.connect(&store).await.unwrap();
    assert!(directory.is_trusted(&store).await);
    let lease = hold(&coordinator, "l").await;
    store.memory.delete(&key("l"));
    assert!(lease.renew().await.is_err());
    assert_eq!(lease.lost().await, Lost::Deleted);
    eventually("the verdict is gone", || !has_sound(&directory)).await;
    let _granted = hold(&coordinator, "l").await;
}

/// True if the file contains a verdict that the store is sound.
fn has_sound(directory: &Directory) -> bool {
    let mut files = std::fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().path());
    files.any(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("\"sound\":true")))
}

#[tokio::test]
async fn the_verdict_is_deleted_before_the_next_grant() {
    let (directory, store) = (Directory::new(), Remote::new());
    let coordinator = directory.connect(&store).await.unwrap();
    let lease = hold(&coordinator, "k").await;
    lease.release().await.unwrap();
    store.memory.delete(&key("k"));
    // Its memory of the key is out of date: it reads, sees that the token went back, and continues.
    let _granted = hold(&coordinator, "k").await;
    assert!(!has_sound(&directory));
}

#[tokio::test]
async fn a_store_that_stops_supporting_conditions_is_checked_by_the_next_process() {
    let (directory, store) = (Directory::new(), Remote::new());
    let coordinator = directory.connect(&store).await.unwrap();
    store.lies.is_unable.store(true, Ordering::SeqCst);
    let error = request(&coordinator, "k").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    eventually("the verdict is gone", || !has_sound(&directory)).await;
    assert_eq!(directory.connect(&store).await.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn an_observer_that_sees_a_token_go_back_makes_others_check() {
    let (directory, store) = (Directory::new(), Remote::with_clock(StoreClock::Nothing));
    let coordinator = directory.connect(&store).await.unwrap();
    hold(&coordinator, "k").await.release().await.unwrap();
    let middle = store.memory.snapshot();
    hold(&coordinator, "k").await.release().await.unwrap();
    let looking = directory.connect(&store).await.unwrap();
    looking.observe("k").await.unwrap();
    store.memory.restore(&middle);
    assert!(directory.is_trusted(&store).await);
    assert_eq!(looking.observe("k").await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(!has_sound(&directory));
}

#[tokio::test]
async fn an_inconclusive_check_is_neither_remembered_nor_forgotten() {
    let (directory, store) = (Directory::new(), Remote::new());
    directory.connect(&store).await.unwrap();
    let again = || Coordinator::builder().verdicts(directory.verdicts()).check_again().connect(store.clone());
    store.memory.faults().every_get(Some(GetFault::Refuse(Reason::Denied)));
    assert_eq!(again().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(has_sound(&directory));
}

#[tokio::test]
async fn the_verdict_about_a_store_that_no_longer_exists_is_not_that_of_its_successor() {
    let (directory, store) = (Directory::new(), Remote::new());
    let coordinator = directory.connect(&store).await.unwrap();
    store.memory.faults().every_get(Some(GetFault::Refuse(Reason::Missing)));
    let error = request(&coordinator, "k").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(
        error.to_string().contains("the store does not exist, create it or correct its settings"),
        "{error}"
    );
    assert!(!has_sound(&directory));

    store.memory.faults().every_get(None);
    directory.connect(&store).await.unwrap();
    assert!(has_sound(&directory));
    let again = Coordinator::builder().verdicts(directory.verdicts()).check_again();
    store.memory.faults().every_get(Some(GetFault::Refuse(Reason::Missing)));
    assert_eq!(again.connect(store.clone()).await.unwrap_err().kind(), ErrorKind::Misconfigured);
    assert!(!has_sound(&directory));
}

#[tokio::test]
async fn a_breach_seen_by_a_fenced_value_ends_the_grants_of_leases_and_the_other_way_round() {
    for by_value in [true, false] {
        let (directory, store) = (Directory::new(), Remote::new());
        let coordinator = directory.connect(&store).await.unwrap();
        let (value, token) = (coordinator.fenced("report").unwrap(), "billing=7".parse().unwrap());
        value.write(&token, "one").await.unwrap();
        let lease = hold(&coordinator, "k").await;
        store.lies.keeps_version.store(true, Ordering::SeqCst);
        if by_value {
            let error = value.write(&token, "two").await.unwrap_err();
            assert!(
                matches!(error, FenceError::Unknown { .. }),
                "it landed, and its fence cannot be relied on: {error}"
            );
        } else {
            lease.renew().await.unwrap_err();
        }
        store.lies.keeps_version.store(false, Ordering::SeqCst);
        let refused = request(&coordinator, "another").acquire().await.unwrap_err();
        assert!(refused.to_string().contains("which is not new"), "{refused}");
        let error = tenure::Error::from(value.write(&token, "three").await.unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("the store broke a promise"), "{error}");
        assert!(value.read().await.unwrap().is_some(), "reads continue");
    }
}

#[tokio::test]
async fn a_breach_seen_by_a_plain_key_ends_the_grants_of_leases_and_the_other_way_round() {
    for by_key in [true, false] {
        let (directory, store) = (Directory::new(), Remote::new());
        let coordinator = directory.connect(&store).await.unwrap();
        let keys = coordinator.keys();
        let (plain, leased) = if by_key { ("k", "lease") } else { ("plain", "k") };
        keys.create_if_absent(plain, "one", None).await.unwrap();
        let lease = hold(&coordinator, leased).await;
        store.lies.keeps_version.store(true, Ordering::SeqCst);
        let refused = if by_key {
            keys.renew(plain).await.unwrap_err().kind()
        } else {
            lease.renew().await.unwrap_err().kind()
        };
        store.lies.keeps_version.store(false, Ordering::SeqCst);
        assert!([ErrorKind::Unsupported, ErrorKind::Lost].contains(&refused), "{refused:?}");
        assert_refuses(&coordinator, "which is not new").await;
        let error = keys.create_if_absent("another", "one", None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("key another on remote:here is not changed"), "{error}");
        assert!(keys.get(plain).await.unwrap().is_some(), "reads continue");
        assert!(!directory.is_trusted(&store).await);
    }
}
