//! The store on another real server: SeaweedFS, which keeps objects in a tree of files, is slow under contention, and
//! answers 412 where AWS answers 404.

mod bucket;

use std::time::Duration;

use bucket::Bucket;
use futures_util::future::join_all;
use tenure::Coordinator;
use tenure_conformance::Suite;
use tenure_testkit::Kind;

/// With small races: the long ones have a separate test.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_keeps_the_contract() {
    let Some(bucket) = Bucket::alone_on(Kind::SeaweedFs, "contract") else { return };
    bucket.keeps_the_contract(16, 2).await;
}

/// A race takes seconds here with little load on the machine, so all rounds run at the same time, each on separate
/// keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_racers_one_wins_in_each_of_ten_rounds() {
    let Some(bucket) = Bucket::on(Kind::SeaweedFs, "races") else { return };
    let rounds = join_all((1..=10).map(|run| {
        let suite = Suite::new(run).only("races").racers(64).rounds(1);
        let bucket = &bucket;
        async move { suite.run(bucket).await }
    }));
    for report in rounds.await {
        println!("{report}");
        report.assert_passed();
        assert_eq!(report.skips().count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_carries_leases() {
    let Some(bucket) = Bucket::alone_on(Kind::SeaweedFs, "carries") else { return };
    bucket.carries_leases(4, Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_carries_the_primitives() {
    let Some(bucket) = Bucket::on(Kind::SeaweedFs, "primitives") else { return };
    bucket.carries_primitives(Duration::from_secs(3)).await;
}

#[tokio::test]
async fn a_lease_goes_from_hand_to_hand_with_growing_tokens() {
    let Some(bucket) = Bucket::on(Kind::SeaweedFs, "hands") else { return };
    let mut last = 0;
    for _ in 0..3 {
        let coordinator = Coordinator::connect(bucket.store()).await.unwrap();
        let request = coordinator.lease("job").unwrap().without_witness().ttl(Duration::from_secs(15));
        let lease = request.acquire().await.unwrap();
        assert!(lease.token().get() > last);
        last = lease.token().get();
        lease.release().await.unwrap();
    }
}
