//! The store on another real server: SeaweedFS, which keeps objects in a tree of files, is slow under contention, and has
//! 412 where AWS has 404.

mod bucket;

use std::time::Duration;

use bucket::Bucket;
use futures_util::future::join_all;
use tenure::Coordinator;
use tenure_conformance::{Suite, Verdict};
use tenure_testkit::Kind;

/// With small races: the long ones are a test of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_keeps_the_contract() {
    let Some(bucket) = Bucket::alone_on(Kind::SeaweedFs, "contract") else { return };
    let report = Suite::new(1).only_contract().racers(16).rounds(2).run(&bucket).await;
    println!("{report}");
    report.assert_passed();
    for skip in report.skips() {
        let Verdict::Skipped(why) = &skip.verdict else { unreachable!("it is a skip") };
        assert!(why.starts_with("not promised: "), "the harness can do everything: {report}");
    }
}

/// A race takes seconds here in which the machine has little to do, so all rounds are run at the same time, each on keys of its
/// own.
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

/// On the machine's own clock: the server is as slow as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_carries_leases() {
    let Some(bucket) = Bucket::alone_on(Kind::SeaweedFs, "carries") else { return };
    let suite = Suite::new(1).only_leases().ttl(Duration::from_secs(3)).contenders(4).turns(2);
    let report = suite.run(&bucket).await;
    println!("{report}");
    report.assert_passed();
    let skipped: Vec<_> = report.skips().map(|finding| finding.check).collect();
    assert_eq!(skipped, ["tokens grow though the record was forgotten"], "nothing can be forgotten here");
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
