//! The store on a third real server, enabled by `TENURE_SERVERS=ceph`: Ceph RGW, which requires ETags without their
//! quotes, and answers some losers of a race with 500.

mod bucket;

use bucket::Bucket;
use tenure_testkit::Kind;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "only with TENURE_SERVERS=ceph"]
async fn a_bucket_of_ceph_rgw_keeps_the_contract() {
    let Some(bucket) = Bucket::alone_on(Kind::CephRgw, "contract") else { return };
    bucket.keeps_the_contract(64, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "only with TENURE_SERVERS=ceph"]
async fn a_bucket_of_ceph_rgw_carries_leases() {
    let Some(bucket) = Bucket::alone_on(Kind::CephRgw, "carries") else { return };
    bucket.carries_leases(4, std::time::Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "only with TENURE_SERVERS=ceph"]
async fn a_bucket_of_ceph_rgw_carries_the_primitives() {
    let Some(bucket) = Bucket::on(Kind::CephRgw, "primitives") else { return };
    bucket.carries_primitives(std::time::Duration::from_secs(3)).await;
}
