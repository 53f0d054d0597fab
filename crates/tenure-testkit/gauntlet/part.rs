//! Sizes of runs.

use std::time::Duration;

use tenure_testkit::quota;

use super::arena::{Family, Size, gauntlet};
use super::ground::Ground;
use super::tally::Tally;

/// In the order of [`Of`](super::tally::Of). The counts of applied faults, and of those past the ttl, are included in the count
/// before them.
pub(crate) const QUOTA: Tally = Tally([1500, 500, 100, 100, 300, 500, 100]);

pub(crate) fn seed() -> u64 {
    std::env::var("TENURE_TEST_SEED").map_or(6, |text| text.parse().expect("a number"))
}

/// Injects a tenth of the faults on this server.
pub(crate) async fn a_tenth_on(ground: &impl Ground) {
    let size = Size {
        keys: 2,
        machines: 3,
        ttl: Duration::from_secs(3),
        trusting: false,
        quota: QUOTA.part(quota(50, 10)),
        limit: Duration::from_secs(300),
        seed: seed(),
        families: Family::OF_NETWORKS,
    };
    gauntlet(ground, size).await.assert_passed();
}
