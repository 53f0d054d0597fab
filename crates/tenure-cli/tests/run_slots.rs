//! Sixty-four supervisors contend for five slots, while holders are killed and stopped.

mod run_support;
mod slot_crowd;

use std::sync::Arc;
use std::time::Duration;

use run_support::World;
use slot_crowd::{SlotPlan, contend_for_slots};
use tenure_testkit::quota;

#[test]
fn sixty_four_supervisors_on_five_slots_never_run_more_than_five_commands_and_reuse_every_crashed_slot() {
    let world = World::new("slots");
    contend_for_slots(&SlotPlan {
        world: &world,
        url: world.store_url(),
        environment: Vec::new(),
        store: Arc::new(world.store()),
        supervisors: 64,
        slots: 5,
        ttl: Duration::from_millis(2500),
        span: Duration::from_secs(quota(15, 30)),
        faults_min: quota(10, 25) as usize,
        seed: 15,
    });
}
