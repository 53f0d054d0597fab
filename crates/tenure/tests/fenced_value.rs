//! Fenced values on the stores of this crate.

mod file_support;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use file_support::{Scratch, open};
use tenure::clock::WallTime;
use tenure::fence::{FenceError, FencedValue, FencingToken};
use tenure::store::Memory;
use tenure::store::memory::{GetFault, PutFault};
use tenure::{Coordinator, ErrorKind, Key, Prefix, Reason};
use tenure_core::record::{self, Nonce, Record};
use tenure_fence::suite::{self, Plan, Resource, Shown, Writer};
use tenure_store::{
    BoxStream, Expect, Guarantees, Identity, Put, Reading, Store, StoreError, StoreFuture, Write,
};
use tenure_testkit::key;
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_smaller_token_is_refused_and_an_equal_one_is_the_same_holder_writing_again() {
    let (_, value) = in_memory();
    value.write(&token(7), "first").await.unwrap();
    value.write(&token(7), "again").await.unwrap();
    value.write(&token(9), "newer").await.unwrap();
    for refused in [value.write(&token(8), "late").await, value.seal(&token(7)).await] {
        let error = refused.unwrap_err();
        assert!(matches!(&error, FenceError::Stale { highest, .. } if highest.get() == 9), "{error}");
        for part in ["fenced value report on memory:", "billing", "9"] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
    let other = value.write(&"payroll=900".parse().unwrap(), "other").await.unwrap_err();
    assert!(matches!(other, FenceError::OtherLease { .. }), "{other}");
    assert_eq!(value.read().await.unwrap().unwrap(), (token(9), Bytes::from("newer")));
}

#[tokio::test]
async fn a_handle_that_has_seen_nothing_is_refused_by_the_store_too() {
    let (memory, value) = in_memory();
    value.write(&token(9), "newer").await.unwrap();
    let stale = on(&memory);
    assert!(stale.write(&token(8), "late").await.unwrap_err().is_stale());
    assert!(on(&memory).seal(&token(8)).await.unwrap_err().is_stale());
    // A warm handle: its condition fails, and the token is checked again.
    let holder = on(&memory);
    holder.write(&token(9), "warm").await.unwrap();
    value.seal(&token(10)).await.unwrap();
    assert!(holder.write(&token(9), "late").await.unwrap_err().is_stale());
    assert_eq!(value.read().await.unwrap().unwrap().1, "warm");
}

#[tokio::test]
async fn a_cold_write_is_two_calls_a_warm_one_is_one_and_a_known_stale_token_is_none() {
    let (memory, value) = in_memory();
    let calls = async |act: &str, number: u64| {
        let before = memory.calls();
        let _ = match act {
            "write" => value.write(&token(number), "x").await,
            _ => value.seal(&token(number)).await,
        };
        let used = memory.calls() - before;
        (used.gets, used.puts)
    };
    assert_eq!(calls("write", 7).await, (1, 1), "cold");
    assert_eq!(calls("write", 7).await, (0, 1), "warm");
    assert_eq!(calls("write", 8).await, (0, 1), "warm, a newer token");
    assert_eq!(calls("write", 7).await, (0, 0), "the handle knows that it is stale");
    assert_eq!(calls("seal", 9).await, (1, 1), "a seal keeps the content");
    assert_eq!(calls("seal", 9).await, (1, 0), "sealed already");
    assert_eq!(calls("write", 9).await, (0, 1), "warm after a seal");
    on(&memory).write(&token(9), "another process").await.unwrap();
    assert_eq!(calls("write", 9).await, (1, 2), "a conflict is read, and the token is checked again");
}

#[tokio::test]
async fn a_seal_keeps_the_content_and_one_without_content_is_a_mark_alone() {
    let (memory, value) = in_memory();
    value.seal(&token(7)).await.unwrap();
    assert_eq!(value.read().await.unwrap(), None);
    assert_eq!(value.mark().await.unwrap(), Some(token(7)));
    assert!(on(&memory).write(&token(6), "late").await.unwrap_err().is_stale());
    value.write(&token(7), "content").await.unwrap();
    value.seal(&token(8)).await.unwrap();
    assert_eq!(value.read().await.unwrap().unwrap(), (token(7), Bytes::from("content")));
    assert_eq!(value.mark().await.unwrap(), Some(token(8)));
    value.write(&token(8), "").await.unwrap();
    assert_eq!(value.read().await.unwrap().unwrap(), (token(8), Bytes::new()), "empty content is content");
}

#[tokio::test]
async fn the_content_follows_the_first_line() {
    let (memory, value) = in_memory();
    value.write(&token(7), "a,b\n1,2\n").await.unwrap();
    let stored = memory.contents(value.key()).unwrap();
    let (line, content) = std::str::from_utf8(&stored).unwrap().split_once('\n').unwrap();
    assert!(
        line.starts_with(r#"{"format":"tenure-fenced-value","version":1,"lease":"billing","token":7,"#),
        "{line}"
    );
    assert_eq!(content, "a,b\n1,2\n");
}

#[tokio::test]
async fn the_value_of_a_coordinator_is_hidden_and_apart_from_leases_and_keys_of_its_name() {
    let memory = Memory::new();
    let tenure = Coordinator::connect(memory.clone()).await.unwrap();
    let lease = tenure.lease("report").unwrap().acquire().await.unwrap();
    let value = tenure.fenced("report").unwrap();
    lease.fenced(&value).seal().await.unwrap();
    lease.fenced(&value).write("content".into()).await.unwrap();
    assert_eq!(value.read().await.unwrap().unwrap(), (lease.fencing_token().clone(), Bytes::from("content")));
    let shown: Vec<_> =
        tenure.observe_all(&Prefix::all()).await.unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(shown, [key("report")]);
    let swept = memory.scratch().unwrap().sweep(value.key()).await.unwrap_err();
    assert!(swept.to_string().contains("not removed"), "{swept}");
    for refused in ["", "../x", ".tenure/fenced/x", &"x".repeat(186)] {
        assert_eq!(tenure.fenced(refused).unwrap_err().kind(), ErrorKind::Invalid, "{refused}");
    }
    // The same value without a coordinator.
    assert_eq!(on(&memory).mark().await.unwrap(), Some(lease.fencing_token().clone()));
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_value_outlives_its_coordinator() {
    let (memory, _) = in_memory();
    let tenure = Coordinator::connect(memory.clone()).await.unwrap();
    let value = tenure.fenced("report").unwrap();
    tenure.shutdown().await.unwrap();
    drop(tenure);
    value.write(&token(7), "content").await.expect("the handle keeps the keeper running");
    assert!(memory.contents(value.key()).is_some());
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_by_its_nonce() {
    for fault in [
        PutFault::LoseAnswer,
        PutFault::Twice,
        PutFault::ThrottleAfterApplying(None),
        PutFault::LoseRequest,
        PutFault::Throttle(None),
    ] {
        let (memory, value) = in_memory();
        value.write(&token(7), "before").await.unwrap();
        memory.faults().next_put(fault);
        value.write(&token(7), "after").await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(value.read().await.unwrap().unwrap().1, "after", "{fault:?}");
        memory.faults().next_put(fault);
        value.seal(&token(8)).await.unwrap();
        let stored = memory.contents(value.key()).unwrap();
        let sequence = r#""sequence":3,"#;
        assert!(String::from_utf8_lossy(&stored).contains(sequence), "{fault:?}: each landed exactly once");
    }
}

#[tokio::test]
async fn a_first_write_whose_answer_was_lost_is_found_by_its_nonce() {
    for fault in [PutFault::LoseAnswer, PutFault::Twice, PutFault::LoseRequest] {
        let (memory, value) = in_memory();
        memory.faults().next_put(fault);
        value.write(&token(7), "first").await.unwrap();
        assert_eq!(value.read().await.unwrap().unwrap().1, "first", "{fault:?}");
    }
}

#[tokio::test]
async fn a_late_write_of_an_earlier_holder_is_refused_by_the_store() {
    let (memory, old) = in_memory();
    old.write(&token(7), "before").await.unwrap();
    // The store gets it after the takeover, and every read until then fails.
    memory.faults().next_put(PutFault::Late);
    memory.faults().next_get(GetFault::Refuse(Reason::Denied));
    let unknown = old.write(&token(7), "late").await.unwrap_err();
    assert!(matches!(unknown, FenceError::Unknown { .. }), "{unknown}");
    assert!(unknown.to_string().contains("token 7 of lease billing may have landed"), "{unknown}");
    on(&memory).seal(&token(8)).await.unwrap();
    assert_eq!(memory.faults().deliver_late(), 0);
    assert_eq!(old.read().await.unwrap().unwrap().1, "before");
    assert!(old.write(&token(7), "again").await.unwrap_err().is_stale());
}

#[tokio::test]
async fn a_landed_write_that_was_replaced_before_the_read_back_is_found_in_the_history() {
    for (others, is_found) in [(8, true), (9, false)] {
        let memory = Memory::new();
        let gated = GatedReads { memory: memory.clone(), reads: Arc::new(Semaphore::new(1)) };
        let reads = Arc::clone(&gated.reads);
        let (old, other) = (FencedValue::on(Arc::new(gated), fenced_key()), on(&memory));
        old.write(&token(7), "before").await.unwrap();
        memory.faults().next_put(PutFault::LoseAnswer);
        let held = token(7);
        let replaced = async {
            while memory.calls().puts < 2 {
                tokio::task::yield_now().await;
            }
            for number in 0..others {
                other.write(&held, number.to_string()).await.unwrap();
            }
            reads.add_permits(10);
        };
        let (written, ()) = tokio::join!(old.write(&held, "landed"), replaced);
        assert_eq!(written.is_ok(), is_found, "{others} writes followed: {written:?}");
        assert!(is_found || matches!(written, Err(FenceError::Unknown { .. })), "{written:?}");
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_leaves_a_write_unknown_and_a_read_refused() {
    let (memory, value) = in_memory();
    memory.faults().every_get(Some(GetFault::Refuse(Reason::Unreachable)));
    let error = value.write(&token(7), "x").await.unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Unreachable, .. }), "{error}");
    memory.faults().clear();
    memory.faults().next_put(PutFault::Refuse(Reason::Denied));
    let error = value.write(&token(7), "x").await.unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Denied, .. }), "{error}");
    assert_eq!(memory.contents(value.key()), None);
}

#[tokio::test]
async fn a_value_that_went_back_is_refused_until_it_is_acknowledged() {
    let (memory, value) = in_memory();
    value.write(&token(7), "seven").await.unwrap();
    let backup = memory.snapshot();
    value.write(&token(9), "nine").await.unwrap();
    memory.restore(&backup);
    // The first one is a warm write: the store answers with a conflict, so nothing was written.
    for error in [
        value.write(&token(9), "x").await.unwrap_err(),
        value.write(&token(9), "x").await.unwrap_err(),
        value.write(&token(10), "x").await.unwrap_err(),
        value.seal(&token(10)).await.unwrap_err(),
        value.read().await.unwrap_err(),
    ] {
        let FenceError::WentBack { seen, shown, .. } = &error else { panic!("{error}") };
        assert_eq!((seen.get(), shown.get()), (9, 7));
    }
    memory.delete(value.key());
    let error = value.write(&token(10), "x").await.unwrap_err();
    assert!(matches!(&error, FenceError::WentBack { shown, .. } if shown.get() == 0), "{error}");
    assert_eq!(memory.contents(value.key()), None, "nothing was written");
    value.acknowledge();
    value.write(&token(8), "eight").await.unwrap();
    assert_eq!(value.read().await.unwrap().unwrap().0, token(8));
}

#[tokio::test]
async fn foreign_bytes_are_never_overwritten() {
    let record = Record::new(token(1).token(), Nonce::from_bits(1), WallTime::default());
    let later = r#"{"format":"tenure-fenced-value","version":2,"lease":"billing","token":1}"#;
    for (foreign, word) in [
        (Bytes::from("a,b\n1,2\n"), "another program"),
        (Bytes::new(), "another program"),
        (record::encode(&record), "record of a lease"),
        (Bytes::from(format!("{later}\ncontent")), "later version"),
    ] {
        let (memory, value) = in_memory();
        let Put::Applied(_) = memory.put(value.key(), foreign.clone(), Expect::Absent).await.unwrap() else {
            panic!()
        };
        for error in [
            value.write(&token(7), "x").await.unwrap_err(),
            value.seal(&token(7)).await.unwrap_err(),
            value.read().await.unwrap_err(),
        ] {
            assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
        assert_eq!(memory.contents(value.key()).unwrap(), foreign);
    }
}

#[tokio::test]
async fn too_large_content_is_refused_before_anything_is_sent() {
    let (memory, value) = in_memory();
    assert_eq!(value.content_max(), Memory::VALUE_MAX - 1024);
    let error = value.write(&token(7), vec![0; value.content_max() + 1]).await.unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
    assert_eq!(memory.calls().total(), 0);
    value.write(&token(7), vec![0; value.content_max()]).await.unwrap();
}

#[tokio::test]
async fn a_store_that_may_lose_the_mark_is_refused_in_words() {
    let forgets = Memory::builder().declare(|it| it.keeps_acknowledged = false).build();
    let error = on(&forgets).write(&token(7), "x").await.unwrap_err();
    assert!(error.to_string().contains("may lose acknowledged writes"), "{error}");
    assert_eq!(tenure::Error::from(error).kind(), ErrorKind::Unsupported);
    let careless = Memory::builder().declare(|it| it.atomic_replace = false).build();
    let error = on(&careless).seal(&token(7)).await.unwrap_err();
    assert!(error.to_string().contains("does not guarantee atomic replace"), "{error}");
    assert_eq!((forgets.calls().total(), careless.calls().total()), (0, 0));
}

#[tokio::test]
async fn two_writes_of_one_handle_take_turns() {
    let (memory, value) = in_memory();
    value.write(&token(7), "0").await.unwrap();
    let before = memory.calls();
    let writes = (0..50).map(|number| {
        let value = value.clone();
        async move { value.write(&token(7), number.to_string()).await }
    });
    for written in futures_util::future::join_all(writes).await {
        written.unwrap();
    }
    let used = memory.calls() - before;
    assert_eq!((used.gets, used.puts), (0, 50));
}

#[tokio::test]
async fn a_dropped_write_leaves_the_value_old_or_new_and_the_next_write_is_not_held_up() {
    for (fault, shown) in [(PutFault::Hang, "before"), (PutFault::HangAfterApplying, "dropped")] {
        let memory = Memory::new();
        let tenure = Coordinator::connect(memory.clone()).await.unwrap();
        let value = tenure.fenced("report").unwrap();
        value.write(&token(7), "before").await.unwrap();
        memory.faults().next_put(fault);
        let before = memory.calls().puts;
        let sent = async {
            while memory.calls().puts == before {
                tokio::task::yield_now().await;
            }
        };
        let held = token(7);
        tokio::select! {
            written = value.write(&held, "dropped") => panic!("{written:?}"),
            () = sent => {}
        }
        assert_eq!(value.read().await.unwrap().unwrap().1, shown, "{fault:?}");
        value.write(&held, "after").await.unwrap();
        assert_eq!(value.read().await.unwrap().unwrap().1, "after");
    }
}

#[tokio::test]
async fn the_suite_in_memory() {
    let mut admitted = 0;
    for seed in 0..30 {
        let memory = Memory::new();
        let counts = suite::run(&Values::on(Arc::new(memory)), Plan::new(seed).calls(100)).await;
        admitted += counts.unwrap_or_else(|error| panic!("seed {seed}: {error}")).admitted;
    }
    println!("{admitted} admitted");
    assert!(admitted > 5_000);
}

#[tokio::test]
async fn the_suite_in_memory_with_lost_and_doubled_answers() {
    for seed in 0..12 {
        let memory = Memory::new();
        let mut chance = fastrand::Rng::with_seed(seed);
        for _ in 0..400 {
            let fault = match chance.u8(..6) {
                0 => PutFault::LoseAnswer,
                1 => PutFault::Twice,
                2 => PutFault::Late,
                _ => PutFault::SlowAnswer(Duration::ZERO),
            };
            memory.faults().next_put(fault);
        }
        let counts = suite::run(&Values::on(Arc::new(memory.clone())), Plan::new(seed).calls(50)).await;
        counts.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        memory.faults().deliver_late();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_on_the_file_store() {
    let directory = Scratch::new("fenced-value");
    let mut total = suite::Counts::default();
    for seed in 0..6 {
        let store = open(directory.0.join(seed.to_string()));
        let counts =
            suite::run(&Values::on(Arc::new(store)), Plan::new(seed).writers(4).calls(100)).await.unwrap();
        total.admitted += counts.admitted;
        total.refused += counts.refused;
    }
    println!("{total}");
    assert!(total.admitted > 500 && total.refused > 50, "{total}");
}

/// Fenced values on one store, as a resource of the suite.
#[derive(Debug)]
struct Values(Arc<dyn Store>);

struct ValueWriter(FencedValue);

impl Values {
    fn on(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    fn handle(&self) -> FencedValue {
        FencedValue::on(Arc::clone(&self.0), fenced_key())
    }
}

impl Resource for Values {
    type Writer = ValueWriter;

    async fn writer(&self) -> ValueWriter {
        ValueWriter(self.handle())
    }

    async fn shown(&self) -> Vec<Shown> {
        let shown = self.handle().read().await.unwrap();
        let shown = shown.map(|(token, content)| Shown {
            token: Some(token.token()),
            number: std::str::from_utf8(&content).unwrap().parse().unwrap(),
        });
        shown.into_iter().collect()
    }
}

impl Writer for ValueWriter {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let written = self.0.write(token, number.to_string()).await;
        // The other writers go on.
        tokio::task::yield_now().await;
        written
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(self.0.seal(token).await)
    }
}

/// A store whose reads wait for permits.
#[derive(Debug)]
struct GatedReads {
    memory: Memory,
    reads: Arc<Semaphore>,
}

impl Store for GatedReads {
    fn guarantees(&self) -> Guarantees {
        self.memory.guarantees()
    }

    fn identity(&self) -> Identity {
        self.memory.identity()
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(async move {
            self.reads.acquire().await.unwrap().forget();
            self.memory.get(key).await
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        self.memory.write(key, write)
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.memory.list(prefix)
    }
}

impl fmt::Display for GatedReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}

fn token(number: u64) -> FencingToken {
    format!("billing={number}").parse().unwrap()
}

fn in_memory() -> (Memory, FencedValue) {
    let memory = Memory::new();
    let value = on(&memory);
    (memory, value)
}

fn on(memory: &Memory) -> FencedValue {
    FencedValue::on(Arc::new(memory.clone()), fenced_key())
}

fn fenced_key() -> Key {
    Key::fenced_value(&key("report")).unwrap()
}
