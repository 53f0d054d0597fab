//! The store on another real server: SeaweedFS, which keeps objects in a tree of files, is slow under contention, and has
//! 412 where AWS has 404.

mod bucket;

use std::time::Duration;

use bucket::Bucket;
use tenure::Coordinator;
use tenure_conformance::{Suite, Verdict};
use tenure_testkit::Kind;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_keeps_the_contract() {
    let Some(bucket) = Bucket::alone_on(Kind::SeaweedFs, "contract") else { return };
    let report = Suite::new(1).only_contract().racers(16).rounds(10).run(&bucket).await;
    println!("{report}");
    report.assert_passed();
    for skip in report.skips() {
        let Verdict::Skipped(why) = &skip.verdict else { unreachable!("it is a skip") };
        assert!(why.starts_with("not promised: "), "the harness can do everything: {report}");
    }
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
