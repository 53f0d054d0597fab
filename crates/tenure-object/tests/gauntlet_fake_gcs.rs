//! Leases in a bucket of a stand-in for Google under network faults: a tenth of those that MinIO gets.

mod bucket;
#[path = "../../tenure-testkit/gauntlet/mod.rs"]
mod gauntlet;
#[path = "bucket/ground.rs"]
mod ground;

use bucket::GoogleBucket;
use gauntlet::{LEASES, a_tenth_on, healthy_on};
use tenure_testkit::Kind;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_network_does_one_holds_each_lease_at_a_time_on_fake_gcs() {
    let Some(bucket) = GoogleBucket::alone_on(Kind::FakeGcs, "gauntlet") else { return };
    a_tenth_on(&bucket).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_is_lost_while_faults_are_shorter_than_the_ttl_allows() {
    let Some(bucket) = GoogleBucket::alone_on(Kind::FakeGcs, "healthy") else { return };
    healthy_on(&bucket, LEASES / 2).await;
}
