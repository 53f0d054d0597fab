//! A lease that has run out stays lost: no renewal revives it, however late it arrives.

use tenure::{ErrorKind, Lease};
use tenure_store::Key;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;
use crate::world::process::Process;
use crate::world::{World, failed, is_lost, is_newer};

pub(crate) const CLAUSE: Clause = Clause {
    name: "expiry",
    checks: &[
        check!("a lease that has run out is not renewed, even if it was not taken over", run_out),
        check!("a renewal that lands after the lease has run out revives nothing", lands_too_late),
        check!("a renewal that arrives after the next grant changes nothing", arrives_after_the_next),
    ],
};

async fn run_out(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (first, next) = (world.process(0).await?, world.process(1).await?);
    let key = trial.key("run-out");
    let lease = world.granted(first.wants(&key).manual()).await?;
    let granted = world.record(&key).await?;
    world.pass(world.ttl * 5 / 4).await;
    not_renewed(&world, &lease).await?;
    let record = world.record(&key).await?;
    ensure!(
        record.nonce == granted.nonce || !record.is_held(),
        "a lease of {:?} was held anew after {:?} without a renewal: {record:?}",
        world.ttl,
        world.ttl * 5 / 4
    );
    let newer = world.granted(next.wants(&key)).await?;
    is_newer(&newer, lease.token(), "after a lease had run out")?;
    not_renewed(&world, &lease).await
}

async fn not_renewed(world: &World<'_>, lease: &Lease) -> CheckResult {
    is_lost(lease, "after its ttl")?;
    match world.within("a renewal", lease.renew()).await? {
        Err(error) if error.kind() == ErrorKind::Lost => is_lost(lease, "after a renewal that came too late"),
        Err(error) => Err(failed(error)),
        Ok(()) => fail!("a lease that had run out was renewed"),
    }
}

/// The renewal lands without its holder's knowledge: the next contender waits for it, and no holder acts during that
/// time.
async fn lands_too_late(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (first, next) = (world.process(0).await?, world.process(1).await?);
    let key = trial.key("late");
    let lease = renewing_until_lost(&world, &first, &key).await?;
    for late in first.wire.take_late_writes() {
        // The first is applied, because the lease was not taken over, and the others find another version.
        let _ = trial.write(trial.writer(), &late.key, &late.write).await?;
    }
    is_lost(&lease, "after a renewal landed too late")?;
    first.wire.open();
    world.pass(world.ttl / 4).await;
    is_lost(&lease, "after it could have learned of a renewal that landed too late")?;
    let newer = world.granted(next.wants(&key)).await?;
    is_newer(&newer, lease.token(), "after a renewal had landed too late")
}

async fn arrives_after_the_next(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (first, next) = (world.process(0).await?, world.process(1).await?);
    let key = trial.key("stale");
    let lease = renewing_until_lost(&world, &first, &key).await?;
    let newer = world.granted(next.wants(&key)).await?;
    is_newer(&newer, lease.token(), "after a lease had run out")?;
    world.deliver_too_late(&first).await?;
    is_lost(&lease, "after the next grant")?;
    world.is_kept(&newer).await
}

/// A lease whose holder renews over a wire that delivers nothing, until the lease is lost.
async fn renewing_until_lost(world: &World<'_>, process: &Process, key: &Key) -> Result<Lease, Stop> {
    let lease = world.granted(process.wants(key).manual()).await?;
    process.wire.delay_writes();
    match world.within("a renewal", lease.renew()).await? {
        Err(error) if error.kind() == ErrorKind::Lost => Ok(lease),
        Err(error) => Err(failed(error)),
        Ok(()) => fail!("a renewal that never arrived succeeded"),
    }
}
