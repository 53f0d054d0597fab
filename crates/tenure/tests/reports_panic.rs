//! A trace subscriber that panics costs no lease, and the recorder receives every event. One test, because a process
//! has one subscriber.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure::{AttemptReport, Coordinator, EventReport, Recorder};

use support::subscriber::OnEvent;
use support::{World, eventually};

const TTL: Duration = Duration::from_secs(15);

static PANICKED: AtomicUsize = AtomicUsize::new(0);

/// The bug of a subscriber.
fn panics() {
    PANICKED.fetch_add(1, Ordering::SeqCst);
    panic!("a bug in a subscriber, on purpose");
}

#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Recorder for Counting {
    fn attempt(&self, _: &AttemptReport) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn event(&self, _: &EventReport) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_subscriber_that_panics_costs_no_lease_and_the_recorder_receives_every_report() {
    tracing::subscriber::set_global_default(OnEvent(panics)).unwrap();
    let world = World::new();
    let counting = Arc::new(Counting::default());
    let a = Coordinator::builder()
        .clock(Arc::new(world.clock.clone()))
        .recorder(Arc::clone(&counting) as Arc<dyn Recorder>)
        .connect(world.memory.clone())
        .await
        .unwrap();
    let lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.pass(2 * TTL).await;
    lease.check().unwrap();
    lease.release().await.unwrap();
    // One read, three writes, granted, lost and left, and at least two for each of the six renewals.
    eventually("everything is recorded", || counting.0.load(Ordering::SeqCst) >= 19).await;
    assert!(PANICKED.load(Ordering::SeqCst) > 19, "each report, and the loss of each");
}
