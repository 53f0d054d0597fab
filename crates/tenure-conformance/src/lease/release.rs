//! A release ends only the term that it belongs to.

use tenure::{ErrorKind, Lease};
use tenure_store::Key;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure};
use crate::trial::Trial;
use crate::world::process::Process;
use crate::world::{World, is_lost, is_newer};

pub(crate) const CLAUSE: Clause = Clause {
    name: "release",
    checks: &[
        check!("a release that comes too late leaves the successor alone", of_a_past_holder),
        check!(
            "a release that is on its way for long does not end the holder's own next term",
            of_an_earlier_term
        ),
    ],
};

/// In every way: in flight since before the successor's grant, requested now, and by dropping the lease.
async fn of_a_past_holder(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (first, next) = (world.process(0).await?, world.process(1).await?);
    let key = trial.key("superseded");
    let lease = delayed_release(&world, &first, &key).await?;
    let newer = world.granted(next.wants(&key)).await?;
    is_newer(&newer, lease.token(), "after a release that did not arrive")?;
    world.deliver_too_late(&first).await?;
    first.wire.open();
    is_lost(&lease, "after the next grant")?;
    let released = world.within("a release", lease.release()).await?;
    ensure!(
        released.as_ref().is_err_and(|error| error.kind() == ErrorKind::Lost),
        "a lease that was lost could be released: {released:?}"
    );
    drop(lease);
    world.pass(2 * world.step()).await;
    world.is_kept(&newer).await
}

async fn of_an_earlier_term(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let process = world.process(0).await?;
    let key = trial.key("again");
    let earlier = delayed_release(&world, &process, &key).await?;
    process.wire.open();
    let newer = world.granted(process.wants(&key)).await?;
    is_newer(&newer, earlier.token(), "after a release that did not arrive")?;
    world.deliver_too_late(&process).await?;
    world.is_kept(&newer).await
}

/// A lease whose release is in flight.
async fn delayed_release(world: &World<'_>, process: &Process, key: &Key) -> Result<Lease, Stop> {
    let lease = world.granted(process.wants(key)).await?;
    process.wire.delay_writes();
    let released = world.within("a release", lease.release()).await?;
    ensure!(
        released.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable),
        "a release that never arrived: {released:?}"
    );
    is_lost(&lease, "after its release")?;
    Ok(lease)
}
