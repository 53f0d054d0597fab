//! The check at connect refuses every store that always lies, before anything is granted on it.

use std::sync::Arc;
use std::time::Duration;

use tenure_conformance::broken::{Broken, Lie};
use tenure_core::check::connect_check;
use tenure_store::Store;

/// Connects, while test time passes quickly.
async fn connect(store: &Broken) -> Result<(), tenure::Error> {
    connect_check(store, &|_| Box::pin(std::future::ready(())), 0x00c0_ffee).await
}

#[tokio::test]
async fn a_liar_that_always_lies_is_refused_at_connect() {
    for &lie in Lie::ALL.iter().filter(|lie| lie.always()) {
        let Err(error) = connect(&Broken::lying(lie)).await else { panic!("{lie} was let in") };
        assert_eq!(error.kind(), tenure::ErrorKind::Unsupported, "{lie}: {error}");
        println!("{lie:<30} {error}");
    }
}

#[tokio::test]
async fn any_number_of_clients_accept_an_honest_store() {
    let store = Broken::honest();
    for _ in 0..100 {
        connect(&store).await.expect("it keeps every promise");
    }
}

/// Documents the difference between the two checks: the suite, which the long check with races runs, catches stores
/// that connect.
#[tokio::test]
async fn a_liar_that_lies_only_in_a_race_connects_and_fails_the_suite() {
    let store = Arc::new(Broken::lying(Lie::RacyCheckThenAct));
    connect(&store).await.expect("one client alone has no race");
}

/// This lie is visible only in a write that succeeds, so the first such write reveals it, and nothing is built on it.
#[tokio::test]
async fn a_liar_whose_versions_never_change_grants_nothing() {
    // Its clock does not move here.
    let mut store = Broken::lying(Lie::SameVersionForEveryWrite);
    let mut guarantees = store.guarantees();
    guarantees.clock_tick = Duration::ZERO;
    store = store.declaring(guarantees);
    for name in ["a", "b"] {
        let holder = tenure::Holder::new(name).unwrap();
        let coordinator = tenure::Coordinator::builder().holder(holder).connect(store.clone()).await.unwrap();
        // The second one waits until the record of the first has run out.
        let request = coordinator.lease("k").unwrap().ttl(Duration::from_secs(2)).without_witness();
        let error = request.acquire().await.unwrap_err();
        assert_eq!(error.kind(), tenure::ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("which is not new"), "{error}");
    }
}
