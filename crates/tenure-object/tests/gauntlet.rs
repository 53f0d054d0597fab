//! Leases in a bucket under network faults, counted. On MinIO `./test long` injects as many as `QUOTA` says, and other
//! runs a fifth of it; the other servers get a tenth of that. A run with fewer faults fails: a fault that did not
//! happen proves nothing.
//!
//! `TENURE_TEST_SEED=7` chooses other faults.

mod bucket;
#[path = "../../tenure-testkit/gauntlet/mod.rs"]
mod gauntlet;
#[path = "bucket/ground.rs"]
mod ground;

use std::time::Duration;

use bucket::Bucket;
use gauntlet::{Family, LEASES, QUOTA, Size, a_tenth_on, gauntlet, healthy_on, seed};
use tenure_testkit::{Kind, quota};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_network_does_one_holds_each_lease_at_a_time_on_minio() {
    let Some(bucket) = Bucket::alone_on(Kind::Minio, "gauntlet") else { return };
    let size = Size {
        keys: 8,
        machines: 5,
        ttl: Duration::from_secs(2),
        trusting: false,
        quota: QUOTA.part(quota(5, 1)),
        limit: Duration::from_secs(300),
        seed: seed(),
        families: Family::OF_NETWORKS,
    };
    gauntlet(&bucket, size).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_network_does_one_holds_each_lease_at_a_time_on_seaweedfs() {
    let Some(bucket) = Bucket::alone_on(Kind::SeaweedFs, "gauntlet") else { return };
    a_tenth_on(&bucket).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "only with TENURE_SERVERS=ceph"]
async fn whatever_the_network_does_one_holds_each_lease_at_a_time_on_ceph_rgw() {
    let Some(bucket) = Bucket::alone_on(Kind::CephRgw, "gauntlet") else { return };
    a_tenth_on(&bucket).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_is_lost_while_faults_are_shorter_than_the_ttl_allows() {
    let Some(bucket) = Bucket::alone_on(Kind::Minio, "healthy") else { return };
    healthy_on(&bucket, LEASES).await;
}

/// Tests the judge: a store that ignores conditions soon has two holders at a time. A coordinator that notices it no
/// longer trusts the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_a_liar_the_judge_sees_two_holders_at_a_time() {
    let Some(bucket) = Bucket::alone_on(Kind::Rclone, "gauntlet") else { return };
    let (mut was_seen, mut was_noticed) = (false, false);
    // Both need the right moment: on a busy machine it may not come in the first ten seconds.
    for seed in seed()..seed() + 6 {
        let size = Size {
            keys: 2,
            machines: 3,
            ttl: Duration::from_secs(1),
            trusting: true,
            quota: QUOTA.part(10),
            limit: Duration::from_secs(10),
            seed,
            families: Family::OF_NETWORKS,
        };
        let outcome = gauntlet(&bucket, size).await;
        println!("{outcome}");
        let (wrong, odd) = outcome.violations();
        println!("{} errors, such as {:?}", odd.len(), odd.first());
        was_seen |= wrong.iter().any(|why| why.contains("S2"));
        // Sometimes the store also shows half a record, which Tenure does not touch.
        was_noticed |= odd.iter().any(|why| why.contains("broke a promise"));
        if was_seen && was_noticed {
            return;
        }
    }
    panic!(
        "two holders at a time were seen: {was_seen}; the library noticed a broken promise: {was_noticed}"
    );
}
