//! Tokens grow, whatever happens to the complete store.

use std::time::Duration;

use tenure::Token;
use tenure_store::{Key, StoreClock};

use crate::check::{Clause, check};
use crate::stop::CheckResult;
use crate::trial::Trial;
use crate::world::{World, are_apart, is_newer};

pub(crate) const CLAUSE: Clause = Clause {
    name: "recovery",
    checks: &[
        check!("tokens grow across the restore of a backup", across_a_restore),
        check!(
            "tokens grow across a restart of the store, and an owner stays the only one",
            across_a_restart
        ),
    ],
};

/// The copy is older than two ttls, as every backup is: a process that had just read the restored version could still
/// replace it without another read.
async fn across_a_restore(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    trial.require(trial.promises.clock >= StoreClock::Floors, "a clock")?;
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

/// The owner does not renew, so that the next contender is granted the lease eventually, but not while the owner
/// believes that it holds it.
async fn across_a_restart(trial: &Trial<'_>) -> CheckResult {
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

/// Waits until the store's clock shows a time after this token on every connection: across a restore, tokens grow only
/// as far as the tick of the clock. Gives up after a limit: then the next grant shows it.
async fn clock_passes(world: &World<'_>, key: &Key, token: Token) -> CheckResult {
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
