//! Tokens grow, whatever becomes of their holders and their records.

use std::time::Duration;

use tenure::{Forgotten, Token};
use tenure_store::{Key, StoreClock};

use super::world::{World, are_apart, is_newer};
use crate::check::{Check, Clause};
use crate::stop::{Outcome, ensure};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "tokens",
    checks: &[
        Check { name: "tokens grow across releases", run: |t| Box::pin(across_releases(t)) },
        Check { name: "tokens grow across crashes", run: |t| Box::pin(across_crashes(t)) },
        Check {
            name: "tokens grow across the deletion of the record",
            run: |t| Box::pin(across_a_deletion(t)),
        },
        Check {
            name: "tokens grow though the record was forgotten",
            run: |t| Box::pin(across_forgetting(t)),
        },
        Check { name: "tokens grow across the restore of a backup", run: |t| Box::pin(across_a_restore(t)) },
        Check {
            name: "tokens grow across a restart of the store, and an owner stays the only one",
            run: |t| Box::pin(across_a_restart(t)),
        },
    ],
};

async fn across_releases(trial: &Trial<'_>) -> Outcome {
    let world = World::new(trial)?;
    let key = trial.key("released");
    let processes = [world.process(0).await?, world.process(1).await?, world.process(2).await?];
    let mut latest = Token::ZERO;
    for number in 0..trial.often().min(RELEASES) {
        let lease = world.granted(processes[number % processes.len()].wants(&key)).await?;
        is_newer(&lease, latest, "across a release")?;
        latest = lease.token();
        world.released(lease).await?;
        let record = world.record(&key).await?;
        ensure!(record.token == latest, "a release of token {latest} left token {} behind", record.token);
    }
    Ok(())
}

/// A process that dies leaves a record that is held. The next one waits for it, and no longer than it must.
async fn across_crashes(trial: &Trial<'_>) -> Outcome {
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

/// Only the store's clock knows what was there. The next process has seen nothing.
async fn across_a_deletion(trial: &Trial<'_>) -> Outcome {
    let world = World::new(trial)?;
    trial.promised(trial.promises.clock >= StoreClock::Floors, "a clock")?;
    let key = trial.key("deleted");
    let mut latest = Token::ZERO;
    for number in 0..2 {
        let process = world.process(number).await?;
        let lease = world.granted(process.wants(&key)).await?;
        is_newer(&lease, latest, "across the deletion of the record")?;
        latest = lease.token();
        world.released(lease).await?;
        trial.harness.delete(&key).await.or_skip()?;
        clock_passes(&world, &key, latest).await?;
    }
    Ok(())
}

/// As across a deletion, by the library's own way.
async fn across_forgetting(trial: &Trial<'_>) -> Outcome {
    let world = World::new(trial)?;
    trial.promised(trial.here().administration().is_some(), "removal")?;
    let key = trial.key("forgotten");
    let mut latest = Token::ZERO;
    for number in 0..2 {
        let process = world.process(number).await?;
        let lease = world.granted(process.wants(&key)).await?;
        is_newer(&lease, latest, "though the record was forgotten")?;
        latest = lease.token();
        world.released(lease).await?;
        clock_passes(&world, &key, latest).await?;
        let forgetting = process.coordinator.forget(key.as_str(), Duration::ZERO);
        let forgotten = world.within("forgetting", forgetting).await?;
        ensure!(
            matches!(forgotten, Ok(Forgotten::Removed { .. })),
            "a vacant record with token {latest} could not be forgotten: {forgotten:?}"
        );
    }
    Ok(())
}

/// The copy is older than two ttl, as every backup is: somebody who had just read what comes back could still replace
/// it without another look.
async fn across_a_restore(trial: &Trial<'_>) -> Outcome {
    let world = World::new(trial)?;
    trial.promised(trial.promises.clock >= StoreClock::Floors, "a clock")?;
    let key = trial.key("restored");
    let first = world.process(0).await?;
    let lease = world.granted(first.wants(&key)).await?;
    let saved = lease.token();
    world.released(lease).await?;
    trial.harness.snapshot().await.or_skip()?;
    world.pass(world.ttl * 5 / 2).await;

    let second = world.process(1).await?;
    let lease = world.granted(second.wants(&key)).await?;
    let forgotten = lease.token();
    is_newer(&lease, saved, "across a release")?;
    world.released(lease).await?;
    clock_passes(&world, &key, forgotten).await?;
    trial.harness.restore().await.or_skip()?;

    let third = world.process_on(2, trial.harness.open().await).await?;
    let lease = world.granted(third.wants(&key)).await?;
    is_newer(&lease, forgotten, "across the restore of a backup")
}

/// The owner does not renew, so that the next one is granted at last, and not as long as the owner believes.
async fn across_a_restart(trial: &Trial<'_>) -> Outcome {
    let world = World::new(trial)?;
    let key = trial.key("restarted");
    let owner = world.process(0).await?;
    let lease = world.granted(owner.wants(&key).manual()).await?;
    trial.harness.restart().await.or_skip()?;
    let next = world.process_on(1, trial.harness.open().await).await?;
    let newer = world.granted(next.wants(&key)).await?;
    are_apart(&newer, &lease)?;
    is_newer(&newer, lease.token(), "across a restart of the store")
}

/// Waits until the store's clock, wherever one asks, shows a time after this token: what it has forgotten is known to
/// the resolution of its clock, and no better. Gives up after a while: then the next grant shows it.
async fn clock_passes(world: &World<'_>, key: &Key, token: Token) -> Outcome {
    let mut waited = Duration::ZERO;
    while waited < TICK_MAX {
        let mut passed = true;
        for store in world.trial.connections() {
            let time = world.trial.reading(&**store, key).await?.time;
            passed &= time.is_some_and(|time| time.as_micros() > token.get());
        }
        if passed {
            break;
        }
        world.pass(world.step()).await;
        waited += world.step();
    }
    Ok(())
}

/// The `Date` of HTTP has whole seconds, and two front ends may be a second apart.
const TICK_MAX: Duration = Duration::from_millis(2_500);

/// Each costs a plant, a grant or a vacate.
const RELEASES: usize = 12;

/// Each costs a ttl.
const CRASHES: usize = 2;
