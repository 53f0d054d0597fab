//! Leases in a bucket of a stand-in for Google under network faults: a tenth of those that MinIO gets.

#[path = "gauntlet/arena.rs"]
mod arena;
#[path = "gauntlet/book.rs"]
mod book;
mod bucket;
#[path = "gauntlet/healthy.rs"]
mod healthy;
#[path = "gauntlet/machine.rs"]
mod machine;
#[path = "gauntlet/outcome.rs"]
mod outcome;
#[path = "gauntlet/part.rs"]
mod part;
#[path = "gauntlet/tally.rs"]
mod tally;

use bucket::OnGoogle;
use healthy::{LEASES, healthy_on};
use part::a_tenth_on;
use tenure_testkit::Kind;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_network_does_one_holds_each_lease_at_a_time_on_fake_gcs() {
    a_tenth_on::<OnGoogle>(Kind::FakeGcs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_is_lost_while_faults_are_shorter_than_the_ttl_allows() {
    healthy_on::<OnGoogle>(Kind::FakeGcs, LEASES / 2).await;
}
