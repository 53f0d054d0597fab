//! Use of the server's wall clock for the age of a record, where the caller has accepted it.

mod bucket;

use std::time::Duration;

use bucket::Bucket;
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, ErrorKind, Lease};
use tenure_object::Environment;
use tenure_object::S3;
use tenure_store::{Expect, Store};
use tenure_testkit::{FaultyProxy, Kind as Server, key};

/// A lease whose holder is cut off from its store, and can neither renew nor remove it.
async fn dead(bucket: &Bucket) -> (Lease, FaultyProxy) {
    let proxy = FaultyProxy::start(bucket.server().address());
    let store = bucket.builder().endpoint(&proxy.endpoint()).open_in(&Environment::default()).unwrap();
    let holder = Coordinator::connect(store).await.unwrap();
    let lease = holder.lease("job").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    proxy.refuse_connections();
    (lease, proxy)
}

fn trusting(bucket: &Bucket) -> S3 {
    bucket.builder().accept_server_clock().open_in(&Environment::default()).unwrap()
}

async fn pause(time: Duration) {
    BootClock.sleep_until(BootClock.now() + time).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_contender_that_accepts_the_servers_clock_takes_over_a_long_dead_lease_at_once() {
    let Some(bucket) = Bucket::on(Server::Minio, "long-dead") else { return };
    let (dead, _proxy) = dead(&bucket).await;
    // The reported age is up to two seconds too small, never too large.
    pause(TTL + Duration::from_secs(3)).await;
    let doubting = Coordinator::connect(bucket.store()).await.unwrap();
    let held = doubting.lease("job").unwrap().ttl(TTL).wait(Duration::ZERO).acquire().await.unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Held, "it has to see for itself: {held}");

    let trusting = Coordinator::connect(trusting(&bucket)).await.unwrap();
    let lease = trusting.lease("job").unwrap().ttl(TTL).wait(Duration::ZERO).acquire().await.unwrap();
    assert!(lease.token() > dead.token());
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_contender_takes_over_before_the_ttl_whichever_clock_it_uses() {
    let Some(bucket) = Bucket::on(Server::Minio, "in-time") else { return };
    for round in 0..3 {
        let contender = if round == 0 { bucket.store() } else { trusting(&bucket) };
        let contender = Coordinator::connect(contender).await.unwrap();
        let began = BootClock.now();
        let (dead, _proxy) = dead(&bucket).await;
        // At different fractions of a second.
        pause(Duration::from_millis(300 * round)).await;
        let lease = contender.lease("job").unwrap().ttl(TTL).wait(TTL * 20).acquire().await.unwrap();
        let took = BootClock.now().since(began);
        println!("round {round}: taken {took:?} after it was asked for");
        assert!(took >= TTL && lease.token() > dead.token(), "{took:?}");
        lease.release().await.unwrap();
    }
}

/// Also for answers without a value: they have the time of the write as well.
#[tokio::test]
async fn complete_and_empty_answers_give_an_age_that_restarts_with_each_write() {
    let Some(bucket) = Bucket::on(Server::Minio, "ages") else { return };
    let (store, writer, key) = (trusting(&bucket), bucket.store(), key("k"));
    let _ = writer.put(&key, "one".into(), Expect::Absent).await.unwrap();
    let mut last = Duration::ZERO;
    for look in 0..4 {
        pause(Duration::from_millis(1600)).await;
        let entry = store.get(&key).await.unwrap().entry.unwrap();
        // The age is reported once it is certainly not negative.
        let age = entry.age.unwrap_or_default();
        assert!(age >= last && (look == 0 || age > Duration::ZERO), "{age:?} after {last:?}");
        last = age;
    }
    assert_eq!(bucket.proxy().log().iter().filter(|exchange| exchange.answered == Some(304)).count(), 3);
    let entry = writer.get(&key).await.unwrap().entry.unwrap();
    assert_eq!(entry.age, None, "without accept=server-clock an entry has no age");
    let _ = writer.put(&key, "two".into(), Expect::Version(entry.version)).await.unwrap();
    assert!(store.get(&key).await.unwrap().entry.unwrap().age < Some(last));
}

const TTL: Duration = Duration::from_secs(3);
