//! A hundred candidates campaign for one lease, while leaders and followers are killed, stopped and asked to resign.
//!
//! `./test long`, or `TENURE_TEST_CANDIDATES=200 TENURE_TEST_SECONDS=600`, lets 200 candidates campaign for ten minutes.

mod run_crowd;
mod run_support;

use std::time::Duration;

use run_crowd::elections::campaign;
use run_crowd::{Place, Plan, setting};
use run_support::World;
use tenure_testkit::quota;

#[test]
fn a_hundred_candidates_have_one_leader_at_a_time_whatever_happens_to_leaders_and_followers() {
    let world = World::new("candidates");
    let seconds = setting("TENURE_TEST_SECONDS", quota(60, 600));
    let election = campaign(
        &Plan {
            world: &world,
            place: &Place::file(&world),
            lease: "one",
            verb: "elect",
            supervisors: setting("TENURE_TEST_CANDIDATES", quota(100, 200)) as usize,
            // Long enough for hundreds of processes on two cores.
            ttl: Duration::from_secs(3),
            acts: 50,
            faults: seconds,
            span: Duration::from_secs(seconds),
            seed: setting("TENURE_TEST_SEED", 5),
        },
        || (),
    );
    election.outcome.assert_as_after_faults(seconds / 4);
}
