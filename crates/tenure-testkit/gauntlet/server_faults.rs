//! Leases while faults happen to the server itself.

use std::time::Duration;

use futures_util::future::join_all;
use tenure::Coordinator;
use tenure::clock::{BootClock, Clock};

use super::arena::{Family, Size, gauntlet_while};
use super::ground::Ground;
use super::part::seed;
use super::tally::Tally;

/// Lets contenders run while these faults happen to the server, one after another, with some time between them. Each
/// fault returns when the server serves again. Verifies that one contender at a time held each lease, and that every
/// lease recovers within this time.
pub(crate) async fn one_holds_while(
    ground: &impl Ground,
    ttl: Duration,
    recovers_in: Duration,
    faults: &[(&str, &dyn Fn())],
) {
    let size = Size {
        keys: 3,
        machines: 4,
        ttl,
        trusting: false,
        quota: Tally::default(),
        limit: recovers_in,
        seed: seed(),
        families: &[Family::Calm],
    };
    let outcome = gauntlet_while(ground, size, || {
        for (name, fault) in faults {
            std::thread::sleep(recovers_in);
            println!("the server: {name}");
            fault();
        }
        // Until the last fault is overcome, too.
        std::thread::sleep(recovers_in);
    });
    outcome.await.assert_passed();
}

/// Holds leases and slots while this fault, which is shorter than the ttl allows, happens to the server twice. Verifies that none was
/// lost (L4).
pub(crate) async fn none_is_lost_while(ground: &impl Ground, ttl: Duration, fault: impl Fn()) {
    let proxy = ground.proxy();
    let coordinator = Coordinator::connect(ground.store_through(&proxy)).await.unwrap();
    let acquire = |number| {
        let request = coordinator.lease(format!("healthy/{number}").as_str()).unwrap().without_witness();
        async move { request.ttl(ttl).wait(4 * ttl).acquire().await.unwrap() }
    };
    let mut leases = join_all((0..LEASES).map(acquire)).await;
    for _ in 0..ground.slots() {
        let request = coordinator.slots("healthy/slots", ground.slots().into()).unwrap().without_witness();
        leases.push(request.ttl(ttl).wait(4 * ttl).acquire().await.unwrap().into_lease());
    }
    for _ in 0..2 {
        tokio::task::block_in_place(&fault);
        BootClock.sleep_until(BootClock.now() + ttl).await;
        for lease in &leases {
            if let Err(lost) = lease.check() {
                panic!("{lost}; the last trouble was {:?}", lease.last_error());
            }
        }
    }
    join_all(leases.into_iter().map(|lease| async move { lease.release().await.unwrap() })).await;
}

const LEASES: usize = 8;
