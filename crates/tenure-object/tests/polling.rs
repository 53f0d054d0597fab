//! A waiting contender polls cheaply: its reads transfer a value only if it has changed.

mod bucket;

use std::time::Duration;

use bucket::{Bucket, BucketOf, Cloud, OnAzure, OnGoogle, OnS3};
use futures_util::future::join_all;
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, ErrorKind};
use tenure_store::{Applied, Entry, Expect, Key, Put, Store, Version};
use tenure_testkit::{ErrorAnswer, Exchange, Fault, Kind as Server, Rule, key};

/// The reads of this key that the server received: the condition of each, and the status of its answer.
fn reads<C: Cloud>(bucket: &BucketOf<C>, name: &str) -> Vec<(Option<String>, u16)> {
    let of_key = |exchange: &Exchange| exchange.method == "GET" && exchange.target.contains(name);
    let log = bucket.proxy().log().into_iter().filter(of_key);
    log.map(|exchange| (exchange.if_none_match, exchange.answered.unwrap_or_default())).collect()
}

async fn put(store: &impl Store, key: &Key, value: &'static str, expect: Expect) -> Version {
    match store.put(key, value.into(), expect).await.unwrap() {
        Put::Applied(Applied { version, .. }) => version,
        Put::Conflict(_) => panic!("there is no other writer"),
    }
}

async fn entry(store: &impl Store, key: &Key) -> Entry {
    let reading = store.get(key).await.unwrap();
    assert!(reading.time.is_some(), "the store's time is told with every answer");
    reading.entry.expect("it is there")
}

#[tokio::test]
async fn an_unchanged_value_is_not_sent_again() {
    unchanged_on::<OnS3>(Server::Minio).await;
    unchanged_on::<OnS3>(Server::SeaweedFs).await;
    unchanged_on::<OnAzure>(Server::Azurite).await;
}

async fn unchanged_on<C: Cloud>(kind: Server) {
    let Some(bucket) = BucketOf::<C>::on(kind, "polling") else { return };
    let (ours, theirs, key) = (bucket.store(), bucket.store(), key("shared"));
    let first = put(&theirs, &key, "first", Expect::Absent).await;
    let seen = entry(&ours, &key).await;
    assert_eq!((seen.value.as_ref(), &seen.version), (&b"first"[..], &first));
    assert_eq!(entry(&ours, &key).await, seen, "the same, of the same version");
    assert_eq!(entry(&ours.clone(), &key).await, seen, "a clone is the same store");

    let second = put(&theirs, &key, "second", Expect::Version(first.clone())).await;
    let seen = entry(&ours, &key).await;
    assert_eq!((seen.value.as_ref(), &seen.version), (&b"second"[..], &second));
    entry(&ours, &key).await;
    let (first, second) = (Some(first.to_string()), Some(second.to_string()));
    let expected = [(None, 200), (first.clone(), 304), (first.clone(), 304), (first, 200), (second, 304)];
    // The proxy logs an answer after it has forwarded it.
    let end = BootClock.now() + Duration::from_secs(10);
    while reads(&bucket, "shared").iter().any(|(_, status)| *status == 0) && BootClock.now() < end {
        BootClock.sleep_until(BootClock.now() + Duration::from_millis(5)).await;
    }
    assert_eq!(reads(&bucket, "shared"), expected, "{kind:?}");
    assert_eq!(C::requests(&ours).gets, 5, "a look is a request, whatever is answered");
}

#[tokio::test]
async fn after_its_own_write_a_store_reads_the_value_again_whatever_the_result() {
    own_write_on::<OnS3>(Server::Minio).await;
    own_write_on::<OnS3>(Server::SeaweedFs).await;
    own_write_on::<OnAzure>(Server::Azurite).await;
    own_write_on::<OnGoogle>(Server::FakeGcs).await;
}

async fn own_write_on<C: Cloud>(kind: Server) {
    let Some(bucket) = BucketOf::<C>::on(kind, "polling") else { return };
    let (store, key) = (bucket.store(), key("own"));
    let version = put(&store, &key, "one", Expect::Absent).await;
    entry(&store, &key).await;
    let lost = Expect::Version(store.identity().impossible_version);
    assert!(matches!(store.put(&key, "lost".into(), lost).await, Ok(Put::Conflict(_))));
    assert_eq!(entry(&store, &key).await.value, "one");
    bucket.proxy().install(Rule::new(Fault::CutAfter).method("PUT").path("own").times(1));
    store.put(&key, "two".into(), Expect::Version(version)).await.unwrap_err();
    assert_eq!(entry(&store, &key).await.value, "two", "it had happened");
    // The store also caches nothing from a server that could not answer.
    bucket.proxy().install(
        Rule::new(Fault::AnswerInstead(ErrorAnswer::UNAVAILABLE)).method("GET").path("own").times(1),
    );
    store.get(&key).await.unwrap_err();
    assert_eq!(entry(&store, &key).await.value, "two");
    let conditional = reads(&bucket, "own").into_iter().filter(|(condition, _)| condition.is_some());
    assert_eq!(conditional.count(), 1, "that which was not answered: {:?}", reads(&bucket, "own"));
}

#[tokio::test]
async fn a_deleted_object_is_missing_and_a_new_one_is_read_anew() {
    let Some(bucket) = Bucket::on(Server::Minio, "anew") else { return };
    let (store, other, key) = (bucket.store(), bucket.store(), key("k"));
    put(&other, &key, "old", Expect::Absent).await;
    entry(&store, &key).await;
    bucket.remove(&key).await;
    assert!(store.get(&key).await.unwrap().entry.is_none());
    put(&other, &key, "new", Expect::Absent).await;
    assert_eq!(entry(&store, &key).await.value, "new");
}

/// At most five polls per ttl, counted at the server over several ttls, all but the first with a condition.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standby_polls_at_most_five_times_per_ttl() {
    let Some(bucket) = Bucket::on(Server::Minio, "standbys") else { return };
    let holder = Coordinator::connect(bucket.store()).await.unwrap();
    let lease = holder.lease("wanted").unwrap().ttl(TTL).acquire().await.unwrap();
    let mut standbys = Vec::new();
    for _ in 0..STANDBYS {
        let store = bucket.store();
        standbys.push((Coordinator::connect(store.clone()).await.unwrap(), store));
    }
    bucket.proxy().clear_log();
    let waits = standbys.iter().map(async |(standby, store)| {
        let before = store.requests();
        let began = BootClock.now();
        let request = standby.lease("wanted").unwrap().ttl(TTL).wait(TTL * TTLS);
        let error = request.acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Held, "{error}");
        let (took, now) = (BootClock.now().since(began), store.requests());
        (now.gets - before.gets, now.puts - before.puts, took)
    });
    let waited: Vec<(u64, u64, Duration)> = join_all(waits).await;
    let reads = reads(&bucket, "wanted.record");
    let unchanged = reads.iter().filter(|(_, status)| *status == 304).count();
    println!("{waited:?}: {} looks at the server, {unchanged} of them carried no value", reads.len());
    for (gets, puts, took) in &waited {
        // One at the beginning, and about four for each ttl that has passed; more until it knows the rhythm of the holder.
        let most = 1 + (took.as_secs_f64() * 5.0 / TTL.as_secs_f64()).floor() as u64;
        assert!(*gets <= most && *gets >= u64::from(TTLS), "{gets} looks in {took:?}");
        assert_eq!(*puts, 0, "a waiting contender writes nothing");
    }
    let whole = reads.iter().filter(|(condition, _)| condition.is_none()).count();
    assert_eq!(whole, STANDBYS, "the first look of each, and no other: {reads:?}");
    lease.release().await.unwrap();
}

/// A holder that has died, or that renews manually and rarely, leaves its record unchanged: polls transfer no value.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_contender_that_waits_for_a_dead_holder_receives_its_record_once() {
    let Some(bucket) = Bucket::on(Server::Minio, "dead") else { return };
    // The holder bypasses the proxy, which sees only the standby.
    let elsewhere = OnS3::open(&bucket.builder_beside_the_proxy());
    let dead = Coordinator::connect(elsewhere).await.unwrap();
    let dead = dead.lease("wanted").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    let store = bucket.store();
    let standby = Coordinator::connect(store.clone()).await.unwrap();
    bucket.proxy().clear_log();
    let lease = standby.lease("wanted").unwrap().ttl(TTL).wait(TTL * 20).acquire().await.unwrap();
    assert!(lease.token() > dead.token());
    // The holder's process is still alive, and may clean up its record at the very end.
    let log = bucket.proxy().log();
    let looks = log.iter().take_while(|exchange| exchange.method == "GET");
    let statuses: Vec<u16> = looks.filter_map(|exchange| exchange.answered).collect();
    assert!(statuses.len() >= 2, "{log:?}");
    assert_eq!(statuses[0], 200);
    assert!(statuses[1..].iter().all(|status| *status == 304), "{log:?}");
    let size = store.get(&key("wanted")).await.unwrap().entry.unwrap().value.len();
    println!("{statuses:?}: {} bytes of values instead of {}", size, size * statuses.len());
    lease.release().await.unwrap();
}

const TTL: Duration = Duration::from_secs(3);
const TTLS: u32 = 4;
const STANDBYS: usize = 3;
