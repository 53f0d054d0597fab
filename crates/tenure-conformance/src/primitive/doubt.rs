//! Lost answers and requests: a change of an entry happens once, and its outcome is never guessed.

use tenure::{Keys, Replacement, Revision};
use tenure_store::{BoxFuture, Key};

use super::entries::{create, get, is_same, shown_as};
use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;
use crate::world::{World, failed};
use crate::{Harness, Supported};

pub(crate) const CLAUSE: Clause = Clause {
    name: "doubt",
    checks: &[
        check!("a change of an entry whose answer is lost is found, and made once", lost_answers),
        check!("a change of an entry that never arrived is made again", lost_requests),
    ],
};

async fn lost_answers(trial: &Trial<'_>) -> CheckResult {
    lose_in_each_write(trial, |harness| harness.lose_next_answer()).await
}

async fn lost_requests(trial: &Trial<'_>) -> CheckResult {
    lose_in_each_write(trial, |harness| harness.lose_next_request()).await
}

/// Loses one of a change, one of a renewal and one of a release. In every case the store has what the caller was told.
async fn lose_in_each_write(
    trial: &Trial<'_>,
    lose_next: fn(&dyn Harness) -> BoxFuture<'_, Supported>,
) -> CheckResult {
    let world = World::for_keys(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let (keys, observer) = (process.coordinator.keys(), other.coordinator.keys());
    let key = trial.key("changed");
    let entry = create(&world, &keys, &key, "created").await?;

    lose_next(trial.harness).await.or_skip()?;
    let revision = change(&world, &keys, &observer, &key, entry.revision).await?;
    ensure!(revision > entry.revision, "a change made revision {revision} of {}", entry.revision);

    lose_next(trial.harness).await.or_skip()?;
    let renewed = world.within("a renewal", keys.renew(&key)).await?.map_err(failed)?;
    ensure!(renewed.revision == revision, "a renewal made revision {} of {revision}", renewed.revision);
    let next = change(&world, &keys, &observer, &key, revision).await?;

    lose_next(trial.harness).await.or_skip()?;
    world.within("a release", keys.release(&key)).await?.map_err(failed)?;
    let left = get(&world, &observer, &key).await?;
    ensure!(left.is_none(), "a release of revision {next} was confirmed, and {key} has {left:?}");
    Ok(())
}

/// Changes the entry, and verifies that another participant sees exactly this change.
async fn change(
    world: &World<'_>,
    keys: &Keys,
    observer: &Keys,
    key: &Key,
    revision: Revision,
) -> Result<Revision, Stop> {
    let value = format!("after {revision}");
    let changing = keys.compare_and_set(key, revision, &value, None);
    let changed = match world.within("a change", changing).await?.map_err(failed)? {
        Replacement::Updated(entry) => entry,
        answer => fail!("a change of {key} at its present revision {revision}, to {value:?}: {answer:?}"),
    };
    let seen = get(world, observer, key).await?;
    ensure!(
        seen.as_ref().is_some_and(|seen| is_same(seen, &changed)),
        "a change to {} was confirmed, and {key} has {seen:?}",
        shown_as(&changed)
    );
    Ok(changed.revision)
}
