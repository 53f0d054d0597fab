//! Sixteen supervisors contend for five slots in a bucket, while holders are killed and stopped.

mod run_support;
mod slot_crowd;

use std::sync::Arc;
use std::time::Duration;

use run_support::World;
use slot_crowd::{SlotPlan, contend_for_slots};
use tenure_object::{Environment, S3};
use tenure_testkit::{Kind, Server, quota};

#[test]
fn sixteen_supervisors_on_five_slots_in_a_bucket_never_run_more_than_five_commands() {
    let Some(server) = Server::shared(Kind::Minio) else { return };
    server.create_bucket("slots");
    let store = S3::builder("slots").prefix("locks").endpoint(&server.endpoint()).region(server.region());
    let store = store.keys(server.access_key(), server.secret_key()).open_in(&Environment::default());
    let world = World::new("bucket-slots");
    contend_for_slots(&SlotPlan {
        world: &world,
        url: format!("s3://slots/locks?endpoint={}", server.endpoint()),
        environment: server.environment(),
        store: Arc::new(store.unwrap()),
        supervisors: 16,
        slots: 5,
        ttl: Duration::from_secs(4),
        span: Duration::from_secs(quota(20, 30)),
        faults_min: quota(6, 12) as usize,
        seed: 16,
    });
}
