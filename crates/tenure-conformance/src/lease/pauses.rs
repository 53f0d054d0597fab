//! A process that was paused for longer than its ttl.

use tenure::ErrorKind;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, ensure};
use crate::trial::Trial;
use crate::world::{World, are_apart, failed, is_lost, is_newer};

pub(crate) const CLAUSE: Clause = Clause {
    name: "pauses",
    checks: &[
        check!("a holder that was paused for longer than its ttl has lost, and knows it", too_long),
        check!("a holder that was paused for a moment goes on", a_moment),
    ],
};

/// While the process is paused, none of its calls reaches the store; when it resumes, another process has the lease.
async fn too_long(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (paused, other) = (world.process(0).await?, world.process(1).await?);
    let key = trial.key("paused");
    let lease = world.granted(paused.wants(&key).manual()).await?;
    paused.wire.cut();
    let newer = world.granted(other.wants(&key)).await?;
    are_apart(&newer, &lease)?;
    is_lost(&lease, "while another holds it")?;
    is_newer(&newer, lease.token(), "after a pause")?;
    paused.wire.open();
    let renewed = world.within("a renewal", lease.renew()).await?;
    ensure!(
        renewed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Lost),
        "a lease was renewed after a pause in which another was granted: {renewed:?}"
    );
    world.is_kept(&newer).await
}

async fn a_moment(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let process = world.process(0).await?;
    let key = trial.key("moment");
    let lease = world.granted(process.wants(&key).manual()).await?;
    let before = lease.remaining();
    process.wire.cut();
    world.pass(world.ttl / 8).await;
    process.wire.open();
    world.within("a renewal", lease.renew()).await?.map_err(failed)?;
    ensure!(lease.check().is_ok(), "a lease of {:?} was lost {:?} after a renewal", world.ttl, world.ttl / 8);
    let after = lease.remaining();
    ensure!(after > before / 2, "a renewal left {after:?} of a lease that had {before:?}");
    world.is_recorded(&lease).await
}
