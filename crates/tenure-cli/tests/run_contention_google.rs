//! Supervisors contend for one lease in a bucket of a stand-in for Google, at one write per second, while the holder is
//! killed, stopped and stolen from.

mod run_crowd;
mod run_support;

use std::sync::Arc;
use std::time::Duration;

use run_crowd::{Place, Plan, contend, setting};
use run_support::World;
use tenure_object::{Environment, Google};
use tenure_testkit::{Kind, Server, quota};

#[test]
fn supervisors_of_a_lease_in_a_bucket_of_google_never_overlap_whatever_happens_to_the_holder() {
    let Some(server) = Server::shared(Kind::FakeGcs) else { return };
    server.create_bucket("contended");
    let store = Google::builder("contended").prefix("locks").endpoint(&server.endpoint());
    let store = store.token(server.bearer_token()).open_in(&Environment::default()).unwrap();
    let url = format!("gs://contended/locks?endpoint={}", server.endpoint());
    let place = Place::new(url, server.environment(), Arc::new(store), Duration::from_millis(20));
    let world = World::new("google");
    let plan = Plan {
        world: &world,
        place: &place,
        lease: "one",
        verb: "run",
        supervisors: 8,
        // The shortest that the store bears.
        ttl: Duration::from_secs(11),
        // Long enough that a holder renews, and so learns that it was stolen from, before its work ends.
        acts: 1000,
        faults: quota(4, 12),
        span: Duration::from_secs(quota(45, 120)),
        seed: setting("TENURE_TEST_SEED", 6),
    };
    // A holder that is hit before its command starts makes no visible grant.
    contend(&plan).assert_as_after_faults(plan.faults / 2);
}
