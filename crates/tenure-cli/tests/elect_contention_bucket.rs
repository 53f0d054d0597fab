//! A hundred candidates campaign for one lease in a bucket, while leaders and followers are killed, stopped and asked to
//! resign. A proxy counts their calls.
//!
//! `./test long`, or `TENURE_TEST_CANDIDATES=200 TENURE_TEST_SECONDS=600`, lets 200 candidates campaign for ten minutes.

mod run_crowd;
mod run_support;

use std::sync::Arc;
use std::time::Duration;

use run_crowd::elections::campaign;
use run_crowd::{Place, Plan, setting};
use run_support::World;
use tenure_object::{Environment, S3};
use tenure_testkit::{FaultyProxy, Kind, Server, quota};

#[test]
fn a_hundred_candidates_in_a_bucket_have_one_leader_at_a_time_and_make_few_calls() {
    let Some(server) = Server::shared(Kind::Minio) else { return };
    let proxy = FaultyProxy::start(server.address());
    server.create_bucket("candidates");
    let store =
        S3::builder("candidates").prefix("locks").endpoint(&server.endpoint()).region(server.region());
    let store =
        store.keys(server.access_key(), server.secret_key()).open_in(&Environment::default()).unwrap();
    let url = format!("s3://candidates/locks?endpoint={}", proxy.endpoint());
    let place = Place::new(url.clone(), server.environment(), Arc::new(store), Duration::from_millis(20));
    let world = World::new("candidates");
    // The safety check once, and not by a hundred processes at the same time.
    let mut first = world.run(&["other", "--", "true"]);
    first.env("TENURE_STORE", &url).envs(server.environment());
    assert_eq!(world.ran(first).code, 0);

    let seconds = setting("TENURE_TEST_SECONDS", quota(60, 600));
    let candidates = setting("TENURE_TEST_CANDIDATES", quota(100, 200));
    // The default. A shorter one would have more candidates write at the same moment on a busy machine.
    let ttl = Duration::from_secs(15);
    let plan = Plan {
        world: &world,
        place: &place,
        lease: "one",
        verb: "elect",
        supervisors: candidates as usize,
        ttl,
        // Shorter than a renewal period, so that the writes are those of grants and releases.
        acts: 50,
        faults: seconds / 2,
        span: Duration::from_secs(seconds),
        seed: setting("TENURE_TEST_SEED", 5),
    };
    let election = campaign(&plan, || proxy.clear_log());
    election.outcome.assert_as_after_faults(seconds / 3);

    // From the first fault to the end of the last candidate.
    let log = proxy.log();
    let writes = log.iter().filter(|call| call.method == "PUT" && call.target.contains("one.record")).count();
    let span = log.last().expect("there were calls").at - log[0].at;
    let ttls = span.as_secs_f64() / ttl.as_secs_f64();
    let (grants, calls) = (election.grants as f64, log.len() as f64);
    let (per_grant, per_contender) = (writes as f64 / grants, calls / candidates as f64 / ttls);
    let others = log.iter().filter(|call| !call.target.contains("one.record")).count();
    eprintln!(
        "{calls} calls in {span:.1?}, {others} of them not on the record, {writes} writes, {grants} grants: \
         {per_grant:.2} writes per grant, {per_contender:.2} calls per candidate and ttl"
    );
    // A term that its leader ends costs two writes: the grant and the vacate.
    assert!(per_grant <= 3.0 && per_contender <= 5.0, "too many calls");
}
