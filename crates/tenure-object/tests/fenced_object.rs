//! Fenced objects at exact names, on a real server: MinIO.

mod bucket;

use std::sync::Arc;
use std::time::Duration;

use bucket::{Bucket, BucketOf, Cloud, Container, GoogleBucket};
use bytes::Bytes;
use futures_util::future::join_all;
use tenure::fence::{FenceError, FencedManifest, FencedValue};
use tenure_fence::FencingToken;
use tenure_fence::suite::{self, Counts, Plan, Resource, Shown, Writer};
use tenure_object::{Environment, Requests, S3};
use tenure_store::{Expect, Key, Put, Reason, Store};
use tenure_testkit::{ErrorAnswer, Fault, FaultyProxy, Kind as Server, Rule, key};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fenced_object_lies_at_its_exact_name_and_its_content_follows_the_first_line() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-name") else { return };
    let (store, value) = object(&bucket);
    value.write(&token(7), "a,b\n1,2\n").await.unwrap();
    let log = bucket.proxy().log();
    assert!(log.iter().all(|exchange| exchange.target == "/fenced-name/reports/today.csv"), "{log:?}");
    let body = store.get(&key(NAME)).await.unwrap().entry.unwrap().value;
    assert!(body.starts_with(b"{\"format\":\"tenure-fenced-value\""));
    let content = body.split(|byte| *byte == b'\n').skip(1).collect::<Vec<_>>().join(&b'\n');
    assert_eq!(content, b"a,b\n1,2\n");
    assert_eq!(value.read().await.unwrap().unwrap(), (token(7), Bytes::from("a,b\n1,2\n")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_content_has_another_version_each_time() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-etag") else { return };
    let (store, value) = object(&bucket);
    let mut versions = Vec::new();
    for _ in 0..5 {
        value.write(&token(7), "same").await.unwrap();
        versions.push(store.get(&key(NAME)).await.unwrap().entry.unwrap().version);
    }
    let all = versions.len();
    versions.dedup();
    assert_eq!(versions.len(), all);
    // The bare object has the same version again: a stale condition on it would pass.
    let (plain, mut last) = (key("plain"), Expect::Absent);
    let mut bare = Vec::new();
    for content in ["same", "other", "same"] {
        let Put::Applied(applied) = store.put(&plain, content.into(), last).await.unwrap() else { panic!() };
        last = Expect::Version(applied.version.clone());
        bare.push(applied.version);
    }
    assert_eq!(bare[0], bare[2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cold_write_is_two_requests_and_a_warm_one_is_one() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-requests") else { return };
    let (store, value) = object(&bucket);
    let mut before = store.requests();
    let mut used = || {
        let now = store.requests();
        let Requests { puts, gets, .. } = now;
        let used = (gets - before.gets, puts - before.puts);
        before = now;
        used
    };
    value.write(&token(7), "cold").await.unwrap();
    assert_eq!(used(), (1, 1));
    value.write(&token(7), "warm").await.unwrap();
    assert_eq!(used(), (0, 1));
    value.seal(&token(8)).await.unwrap();
    assert_eq!(used(), (1, 1));
    value.write(&token(8), "warm").await.unwrap();
    assert_eq!(used(), (0, 1));
    assert!(value.write(&token(7), "stale").await.unwrap_err().is_stale());
    assert_eq!(used(), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_another_program_is_never_overwritten() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-foreign") else { return };
    let (store, value) = object(&bucket);
    let csv = Bytes::from("a,b\n1,2\n");
    let Put::Applied(_) = store.put(&key(NAME), csv.clone(), Expect::Absent).await.unwrap() else { panic!() };
    for error in [value.write(&token(7), "x").await.unwrap_err(), value.seal(&token(7)).await.unwrap_err()] {
        assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
    }
    assert_eq!(store.get(&key(NAME)).await.unwrap().entry.unwrap().value, csv);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_object_is_written_and_one_beyond_the_limit_is_not_sent() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-large") else { return };
    let (store, value) = object(&bucket);
    let large = Bytes::from(vec![b'x'; 5 << 20]);
    value.write(&token(7), large.clone()).await.unwrap();
    value.seal(&token(8)).await.unwrap();
    assert_eq!(value.read().await.unwrap().unwrap(), (token(7), large));
    let before = store.requests();
    let error = value.write(&token(8), vec![0; S3::OBJECT_MAX]).await.unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
    assert_eq!(store.requests(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_was_cut_off_landed_once() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-lost") else { return };
    let (_, value) = object(&bucket);
    value.write(&token(7), "first").await.unwrap();
    for (number, fault) in [Fault::CutAfter, Fault::CutBefore, Fault::CutMidAnswer, Fault::TwiceSecondAnswer]
        .into_iter()
        .enumerate()
    {
        let lost = bucket.proxy().install(Rule::new(fault).method("PUT").times(1));
        value.write(&token(7), number.to_string()).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        lost.remove();
        assert_eq!(value.read().await.unwrap().unwrap().1, number.to_string(), "{fault:?}");
    }
    let body = bucket_body(&bucket).await;
    assert!(body.contains("\"sequence\":5,"), "one write for each call: {body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_arrives_after_the_takeover_is_refused_by_the_server() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-late") else { return };
    // The old holder is behind a proxy of its own, and the new one is not.
    let slow = FaultyProxy::start(bucket.server().address());
    let behind = store_at(&bucket, "fenced-late", &bucket.server().endpoint_at(slow.address()));
    let direct = store_at(&bucket, "fenced-late", &bucket.server().endpoint());
    let values = |store: &S3| -> Vec<_> {
        let names = (0..LATE_WRITES).map(|number| key(&format!("reports/{number}.csv")));
        names.map(|key| FencedValue::on(Arc::new(store.clone()), key)).collect()
    };
    let (old, new) = (values(&behind), values(&direct));
    let (before, after) = (token(7), token(8));
    for value in &old {
        value.write(&before, "before").await.unwrap();
    }
    // The writes are held back, and the reads that would show it are refused.
    let late = slow.install(Rule::new(Fault::CutThenDeliver(Duration::from_secs(4))).method("PUT"));
    let denied = Fault::AnswerInstead(ErrorAnswer::new(403, "AccessDenied"));
    let reads = slow.install(Rule::new(denied).method("GET"));
    for written in join_all(old.iter().map(|value| value.write(&before, "late"))).await {
        assert!(matches!(written, Err(FenceError::Unknown { .. })), "{written:?}");
    }
    for sealed in join_all(new.iter().map(|value| value.seal(&after))).await {
        sealed.unwrap();
    }
    slow.settle(Duration::from_secs(20));
    assert_eq!(
        (late.counts().installed, late.counts().applied),
        (LATE_WRITES, 0),
        "the server refused all of them"
    );
    late.remove();
    reads.remove();
    for (old, new) in old.iter().zip(&new) {
        assert_eq!(new.read().await.unwrap().unwrap(), (before.clone(), Bytes::from("before")));
        assert!(old.write(&before, "again").await.unwrap_err().is_stale());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_condition_the_late_write_would_be_accepted() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-bare") else { return };
    let (_, old) = object(&bucket);
    old.write(&token(7), "before").await.unwrap();
    bucket.proxy().install(Rule::new(Fault::ForgetCondition).method("PUT").times(1));
    let (_, new) = object(&bucket);
    let direct = value_on(store_at(&bucket, "fenced-bare", &bucket.server().endpoint()));
    direct.seal(&token(8)).await.unwrap();
    old.write(&token(7), "late").await.expect("nothing checks it");
    assert_eq!(new.read().await.unwrap().unwrap().1, "late");
    // The handle that has seen token 8 reports it.
    assert!(matches!(direct.read().await.unwrap_err(), FenceError::WentBack { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_and_its_data_objects_in_a_bucket() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-manifest") else { return };
    let store = exact(&bucket);
    let table = FencedManifest::on(Arc::new(store.clone()), key("tables/sales")).unwrap();
    let first = table.put(&token(7), "a.csv", "a,1\n").await.unwrap();
    bucket.proxy().install(Rule::new(Fault::CutAfter).method("PUT").times(1));
    let second = table.put(&token(7), "b.csv", "a,2\n").await.unwrap();
    table.commit(&token(7), &[first.clone(), second.clone()]).await.unwrap();
    let plain = key(&format!("tables/sales/{}", first.object()));
    assert_eq!(store.get(&plain).await.unwrap().entry.unwrap().value, "a,1\n", "a plain body");
    table.commit(&token(8), std::slice::from_ref(&first)).await.unwrap();
    assert_eq!(table.garbage().await.unwrap(), [key(&format!("tables/sales/{}", second.object()))]);
    let late = table.put(&token(7), "c.csv", "late").await.unwrap();
    assert!(table.commit(&token(7), &[late]).await.unwrap_err().is_stale());
    assert_eq!(table.garbage().await.unwrap().len(), 2);
    let manifest = table.read().await.unwrap().unwrap();
    assert_eq!(table.get(&manifest.entries[0]).await.unwrap(), "a,1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-suite") else { return };
    let mut total = Counts::default();
    for seed in 0..30 {
        let values = Values::new(store_at(&bucket, "fenced-suite", &bucket.server().endpoint()), seed);
        add(&mut total, suite::run(&values, Plan::new(seed).calls(30)).await.unwrap());
    }
    println!("{total}");
    assert!(total.admitted > 700 && total.refused > 700, "{total}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_with_lost_late_and_doubled_requests() {
    let Some(bucket) = Bucket::on(Server::Minio, "fenced-faults") else { return };
    let late = Duration::from_millis(40);
    let rules = [
        Rule::new(Fault::CutAfter).method("PUT").chance(0.05, 1),
        Rule::new(Fault::CutBefore).method("PUT").chance(0.02, 2),
        Rule::new(Fault::CutThenDeliver(late)).method("PUT").chance(0.05, 3),
        Rule::new(Fault::TwiceSecondAnswer).method("PUT").chance(0.05, 4),
        Rule::new(Fault::CutAfter).method("GET").chance(0.02, 5),
    ];
    let rules = rules.map(|rule| bucket.proxy().install(rule));
    let mut total = Counts::default();
    for seed in 0..10 {
        let values = Values::new(exact(&bucket), seed);
        add(&mut total, suite::run(&values, Plan::new(seed).calls(20)).await.unwrap());
    }
    bucket.proxy().settle(Duration::from_secs(10));
    let faults: Vec<_> = rules.iter().map(|rule| rule.counts().installed).collect();
    println!("{total}; faults: {faults:?}");
    assert!(total.admitted > 100 && total.refused > 100, "{total}");
    assert!(faults.iter().all(|count| *count > 3), "{faults:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn azure_keeps_the_fence() {
    let Some(container) = Container::on(Server::Azurite, "fenced-azure") else { return };
    keeps_the_fence(&container).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn google_keeps_the_fence() {
    let Some(bucket) = GoogleBucket::on(Server::FakeGcs, "fenced-google") else { return };
    keeps_the_fence(&bucket).await;
}

async fn keeps_the_fence<C: Cloud>(bucket: &BucketOf<C>) {
    let builder = C::write_interval(C::exact_names(bucket.builder_at_the_top()), Duration::ZERO);
    let open = || FencedValue::on(Arc::new(C::open(&builder)), key(NAME));
    let (old, new) = (open(), open());
    old.write(&token(7), "first").await.unwrap();
    bucket.proxy().install(Rule::new(Fault::CutAfter).method("PUT").times(1));
    old.write(&token(7), "lost answer").await.unwrap();
    new.seal(&token(8)).await.unwrap();
    assert!(old.write(&token(7), "late").await.unwrap_err().is_stale());
    assert_eq!(new.read().await.unwrap().unwrap(), (token(7), Bytes::from("lost answer")));
    new.write(&token(8), "next").await.unwrap();
    assert_eq!(old.read().await.unwrap().unwrap(), (token(8), Bytes::from("next")));
    let log = bucket.proxy().log();
    let name = |target: &str| target.replace("%2F", "/").replace("%2E", ".");
    assert!(log.iter().all(|exchange| name(&exchange.target).ends_with(NAME)), "{log:?}");
}

/// Fenced objects of one bucket, as a resource of the suite.
struct Values {
    store: S3,
    key: Key,
}

struct ValueWriter(FencedValue);

impl Values {
    fn new(store: S3, seed: u64) -> Self {
        Self { store, key: key(&format!("suite/{seed}")) }
    }

    fn handle(&self) -> FencedValue {
        FencedValue::on(Arc::new(self.store.clone()), self.key.clone())
    }
}

impl Resource for Values {
    type Writer = ValueWriter;

    async fn writer(&self) -> ValueWriter {
        ValueWriter(self.handle())
    }

    async fn shown(&self) -> Vec<Shown> {
        let Some((token, content)) = self.handle().read().await.unwrap() else { return Vec::new() };
        let number = std::str::from_utf8(&content).unwrap().parse().unwrap();
        vec![Shown { token: Some(token.token()), number }]
    }
}

impl Writer for ValueWriter {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        self.0.write(token, number.to_string()).await
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(self.0.seal(token).await)
    }
}

fn add(total: &mut Counts, counts: Counts) {
    total.admitted += counts.admitted;
    total.refused += counts.refused;
    total.unknown += counts.unknown;
    total.crashes += counts.crashes;
}

/// The store behind the proxy of the bucket, and the fenced object in it.
fn object(bucket: &Bucket) -> (S3, FencedValue) {
    let store = exact(bucket);
    (store.clone(), value_on(store))
}

fn exact(bucket: &Bucket) -> S3 {
    let builder = bucket.builder_at_the_top().write_interval(Duration::ZERO);
    builder.exact_names().open_in(&Environment::default()).unwrap()
}

fn store_at(bucket: &Bucket, name: &str, endpoint: &str) -> S3 {
    let server = bucket.server();
    let builder = S3::builder(name).endpoint(endpoint).region(server.region());
    let builder = builder.keys(server.access_key(), server.secret_key()).write_interval(Duration::ZERO);
    builder.exact_names().open_in(&Environment::default()).unwrap()
}

fn value_on(store: S3) -> FencedValue {
    FencedValue::on(Arc::new(store), key(NAME))
}

async fn bucket_body(bucket: &Bucket) -> String {
    let entry = exact(bucket).get(&key(NAME)).await.unwrap().entry.unwrap();
    String::from_utf8(entry.value.to_vec()).unwrap()
}

fn token(number: u64) -> FencingToken {
    format!("billing={number}").parse().unwrap()
}

/// Number of writes that arrive after the takeover.
const LATE_WRITES: u64 = 50;

const NAME: &str = "reports/today.csv";
