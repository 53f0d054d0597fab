//! Tokens grow, whatever happens to their holders and their records.

use std::time::Duration;

use tenure::{Forgotten, Token};
use tenure_store::StoreClock;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, ensure};
use crate::trial::Trial;
use crate::world::{World, are_apart, is_newer};

pub(crate) const CLAUSE: Clause = Clause {
    name: "tokens",
    checks: &[
        check!("tokens grow across releases", across_releases),
        check!("tokens grow across crashes", across_crashes),
        check!("tokens grow across the deletion of the record", across_a_deletion),
        check!("tokens grow though the record was forgotten", across_forgetting),
    ],
};

async fn across_releases(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let key = trial.key("released");
    let processes = [world.process(0).await?, world.process(1).await?, world.process(2).await?];
    let mut latest = Token::ZERO;
    for number in 0..trial.repeats().min(RELEASES) {
        let lease = world.granted(processes[number % processes.len()].wants(&key)).await?;
        is_newer(&lease, latest, "across a release")?;
        latest = lease.token();
        world.released(lease).await?;
        let record = world.record(&key).await?;
        ensure!(record.token == latest, "a release of token {latest} left token {} behind", record.token);
    }
    Ok(())
}

/// A process that dies leaves a held record. The next process waits for it, and no longer than necessary.
async fn across_crashes(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let key = trial.key("crashed");
    let first = world.process(0).await?;
    let mut dead = (world.granted(first.wants(&key)).await?, first);
    for number in 1..=CRASHES {
        dead.1.wire.cut();
        let process = world.process(number).await?;
        let lease = world.granted(process.wants(&key)).await?;
        are_apart(&lease, &dead.0)?;
        is_newer(&lease, dead.0.token(), "across a crash")?;
        dead = (lease, process);
    }
    Ok(())
}

/// Only the store's clock remembers the deleted record. The next process has seen nothing.
async fn across_a_deletion(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    trial.require(trial.promises.clock >= StoreClock::Floors, "a clock")?;
    let key = trial.key("deleted");
    let mut latest = Token::ZERO;
    for number in 0..DELETIONS {
        let process = world.process(number).await?;
        let lease = world.granted(process.wants(&key)).await?;
        is_newer(&lease, latest, "across the deletion of the record")?;
        latest = lease.token();
        world.released(lease).await?;
        // At once: the store's clock may still show the time of the grant.
        trial.harness.delete(&key).await.or_skip()?;
    }
    Ok(())
}

/// Like a deletion, but through the library's own `forget`.
async fn across_forgetting(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    trial.require(trial.writer().administration().is_some(), "removal")?;
    let key = trial.key("forgotten");
    let mut latest = Token::ZERO;
    for number in 0..2 {
        let process = world.process(number).await?;
        let lease = world.granted(process.wants(&key)).await?;
        is_newer(&lease, latest, "though the record was forgotten")?;
        latest = lease.token();
        world.released(lease).await?;
        let forgetting = process.coordinator.forget(key.as_str(), Duration::ZERO);
        let forgotten = world.within("forgetting", forgetting).await?;
        ensure!(
            matches!(forgotten, Ok(Forgotten::Removed { .. })),
            "a vacant record with token {latest} could not be forgotten: {forgotten:?}"
        );
    }
    Ok(())
}

/// Each costs a plant, a grant or a vacate.
const RELEASES: usize = 12;

/// Each costs a tick of the store's clock.
const DELETIONS: usize = 4;

/// Each costs a ttl.
const CRASHES: usize = 2;
