//! The store on a third real server, for who asks for it by `TENURE_SERVERS=ceph`: Ceph RGW, which wants ETags without their
//! quotes, and answers some who lose a race with 500.

mod bucket;

use std::time::Duration;

use bucket::Bucket;
use tenure_conformance::{Suite, Verdict};
use tenure_testkit::Kind;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_keeps_the_contract() {
    let Some(bucket) = Bucket::alone_on(Kind::CephRgw, "contract") else { return };
    let report = Suite::new(1).only_contract().racers(64).rounds(10).run(&bucket).await;
    println!("{report}");
    report.assert_passed();
    for skip in report.skips() {
        let Verdict::Skipped(why) = &skip.verdict else { unreachable!("it is a skip") };
        assert!(why.starts_with("not promised: "), "the harness can do everything: {report}");
    }
}

/// On the machine's own clock: the server is as slow as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_carries_leases() {
    let Some(bucket) = Bucket::alone_on(Kind::CephRgw, "carries") else { return };
    let suite = Suite::new(1).only_leases().ttl(Duration::from_secs(3)).contenders(4).turns(2);
    let report = suite.run(&bucket).await;
    println!("{report}");
    report.assert_passed();
    let skipped: Vec<_> = report.skips().map(|finding| finding.check).collect();
    assert_eq!(skipped, ["tokens grow though the record was forgotten"], "nothing can be forgotten here");
}
