//! Lost answers and requests: Tenure never guesses an unknown outcome.

use tenure_store::{BoxFuture, Key};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure};
use crate::trial::Trial;
use crate::world::process::Process;
use crate::world::{World, failed};
use crate::{Harness, Supported};

pub(crate) const CLAUSE: Clause = Clause {
    name: "answers",
    checks: &[
        check!("a grant or renewal whose answer is lost is found and kept", lost_answers),
        check!("a grant or renewal that never arrived is not believed, and made again", lost_requests),
    ],
};

async fn lost_answers(trial: &Trial<'_>) -> CheckResult {
    lose_in_grant_and_renewal(trial, |harness| harness.lose_next_answer()).await
}

async fn lost_requests(trial: &Trial<'_>) -> CheckResult {
    lose_in_grant_and_renewal(trial, |harness| harness.lose_next_request()).await
}

/// Loses one of a grant, then one of a renewal. In both cases the holder has the lease, and the record shows it.
async fn lose_in_grant_and_renewal(
    trial: &Trial<'_>,
    lose_next: fn(&dyn Harness) -> BoxFuture<'_, Supported>,
) -> CheckResult {
    let world = World::new(trial)?;
    let process = world.process(0).await?;
    let key = trial.key("lost");
    let over = planted(&world, &process, &key).await?;

    lose_next(trial.harness).await.or_skip()?;
    let lease = world.granted(process.wants(&key).manual()).await?;
    world.is_recorded(&lease).await?;
    let history = world.record(&key).await?.history.len();
    ensure!(
        history == over,
        "a holder mistook its own grant for another holder's: {history} terms are over, and {over} should be"
    );

    lose_next(trial.harness).await.or_skip()?;
    let before = world.record(&key).await?.sequence;
    world.within("a renewal", lease.renew()).await?.map_err(failed)?;
    world.is_recorded(&lease).await?;
    let after = world.record(&key).await?.sequence;
    ensure!(after > before, "a renewal was confirmed, and the store does not have it");
    world.is_kept(&lease).await
}

/// Plants a vacant record, so that the next write is a grant. Returns the number of past terms.
async fn planted(world: &World<'_>, process: &Process, key: &Key) -> Result<usize, Stop> {
    let lease = world.granted(process.wants(key)).await?;
    world.released(lease).await?;
    Ok(world.record(key).await?.history.len())
}
