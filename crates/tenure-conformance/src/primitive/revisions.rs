//! Revisions of plain keys: a change needs the present one, and they only grow.

use futures_util::FutureExt;
use tenure::{Error, ErrorKind, KeyEntry, Keys, Replacement, Revision};
use tenure_store::{Key, StoreClock};

use super::entries::{create, get, shown_as};
use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;
use crate::world::{World, failed};

pub(crate) const CLAUSE: Clause = Clause {
    name: "revisions",
    checks: &[
        check!("of many that count in one entry none loses an update", no_lost_update),
        check!("a change with an old revision is a conflict that shows the present entry", old_revision),
        check!("revisions grow with every change and release, and stay in renewals", grow),
        check!("revisions grow across the deletion of the record", across_a_deletion),
    ],
};

/// Each racer adds one, several times, by compare-and-set alone.
async fn no_lost_update(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    let key = trial.key("counter");
    let mut processes = Vec::new();
    for number in 0..COUNTERS {
        processes.push(world.process(number).await?);
    }
    create(&world, &processes[0].coordinator.keys(), &key, "0").await?;
    let racers = processes.iter().map(|process| {
        let (keys, key) = (process.coordinator.keys(), key.clone());
        async move { count(&keys, &key).await }.boxed()
    });
    let finishes = world.within("a race of changes", trial.race(racers)).await?;
    let (mut revisions, mut in_doubt) = (Vec::new(), 0);
    for counted in finishes.into_iter().flatten() {
        let counted = counted.map_err(failed)?;
        revisions.extend(counted.revisions);
        in_doubt += counted.in_doubt;
    }
    let Some(now) = get(&world, &processes[0].coordinator.keys(), &key).await? else {
        fail!("the counter {key} is gone")
    };
    let (changes, total) = (revisions.len(), now.value.parse::<usize>().unwrap_or_default());
    trial.note(format!("{changes} changes, {in_doubt} of unknown outcome"));
    ensure!(
        changes <= total && total <= changes + in_doubt,
        "{changes} changes that each added one were confirmed, and the counter is at {total}"
    );
    ensure!(
        changes == COUNTERS * UPDATES,
        "only {changes} of {} changes in {ATTEMPTS_MAX} attempts of each racer",
        COUNTERS * UPDATES
    );
    revisions.sort();
    let distinct = revisions.windows(2).all(|two| two[0] < two[1]);
    ensure!(distinct, "two changes of {key} got the same revision: {revisions:?}");
    ensure!(
        revisions.last().is_none_or(|last| *last <= now.revision),
        "{} is older than the change with revision {:?}",
        shown_as(&now),
        revisions.last()
    );
    Ok(())
}

/// The confirmed changes of one racer.
struct Counted {
    revisions: Vec<Revision>,
    in_doubt: usize,
}

async fn count(keys: &Keys, key: &Key) -> Result<Counted, Error> {
    let mut counted = Counted { revisions: Vec::new(), in_doubt: 0 };
    let mut entry = keys.get(key).await?;
    for _ in 0..ATTEMPTS_MAX {
        let (revision, number) = match &entry {
            Some(entry) => (entry.revision, entry.value.parse::<usize>().unwrap_or_default()),
            None => (Revision::ABSENT, 0),
        };
        match keys.compare_and_set(key, revision, &(number + 1).to_string(), None).await {
            Ok(Replacement::Created(now) | Replacement::Updated(now)) => {
                counted.revisions.push(now.revision);
                entry = Some(now);
            }
            Ok(Replacement::Conflict(now)) => entry = now,
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                counted.in_doubt += 1;
                entry = keys.get(key).await?;
            }
            Err(error) => return Err(error),
        }
        if counted.revisions.len() == UPDATES {
            break;
        }
    }
    Ok(counted)
}

async fn old_revision(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let (a, b) = (process.coordinator.keys(), other.coordinator.keys());
    let key = trial.key("changed");
    let first = match set(&world, &a, &key, Revision::ABSENT).await? {
        Replacement::Created(entry) => entry,
        answer => fail!("a change of revision 0 of a new key: {answer:?}"),
    };
    let second = updated(&world, &b, &key, first.revision).await?;
    let after = Revision::new(second.revision.get() + 1).expect("far from the top");
    for old in [first.revision, Revision::ABSENT, after] {
        for keys in [&a, &b] {
            let answer = set(&world, keys, &key, old).await?;
            let Replacement::Conflict(Some(shown)) = &answer else {
                fail!("a change of revision {old} of {key}, which has {}: {answer:?}", shown_as(&second))
            };
            ensure!(
                shown.revision == second.revision,
                "a conflict shows {}, and {key} has {}",
                shown_as(shown),
                shown_as(&second)
            );
        }
    }
    // The other owner has made the latest change, so it is the owner.
    let released = world.within("a release", a.release(&key)).await?;
    ensure!(
        released.as_ref().is_err_and(|error| error.kind() == ErrorKind::Lost),
        "an entry was released by its former owner: {released:?}"
    );
    world.within("a release", b.release(&key)).await?.map_err(failed)?;
    let answer = set(&world, &a, &key, second.revision).await?;
    ensure!(answer == Replacement::Conflict(None), "a change of an entry that was released: {answer:?}");
    Ok(())
}

async fn grow(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    let key = trial.key("growing");
    let mut latest = Revision::ABSENT;
    for number in 0..GROWTHS {
        // A process that knew an older version would not know the outcome of a write that a slow store throttles.
        let process = world.process(number).await?;
        let keys = process.coordinator.keys();
        let created = create(&world, &keys, &key, "created").await?;
        let changed = updated(&world, &keys, &key, created.revision).await?;
        ensure!(
            latest < created.revision && created.revision < changed.revision,
            "the revisions of {key} went from {latest} to {} and {}",
            created.revision,
            changed.revision
        );
        let renewed = world.within("a renewal", keys.renew(&key)).await?.map_err(failed)?;
        ensure!(
            renewed.revision == changed.revision,
            "a renewal made revision {} of {}",
            renewed.revision,
            changed.revision
        );
        latest = changed.revision;
        world.within("a release", keys.release(&key)).await?.map_err(failed)?;
    }
    Ok(())
}

/// Only the store's clock remembers the deleted record. The next process has seen nothing.
async fn across_a_deletion(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    trial.require(trial.promises.clock >= StoreClock::Floors, "a clock")?;
    let key = trial.key("deleted");
    let mut latest = Revision::ABSENT;
    for number in 0..DELETIONS {
        let process = world.process(number).await?;
        let entry = create(&world, &process.coordinator.keys(), &key, "a value").await?;
        ensure!(
            entry.revision > latest,
            "across the deletion of the record, the revision of {key} went from {latest} to {}",
            entry.revision
        );
        latest = entry.revision;
        // At once: the store's clock may still show the time of the change.
        trial.harness.delete(&key).await.or_skip()?;
    }
    Ok(())
}

async fn set(world: &World<'_>, keys: &Keys, key: &Key, revision: Revision) -> Result<Replacement, Stop> {
    let value = format!("after {revision}");
    world.within("a change", keys.compare_and_set(key, revision, &value, None)).await?.map_err(failed)
}

/// Changes the entry, which must have this revision.
async fn updated(world: &World<'_>, keys: &Keys, key: &Key, revision: Revision) -> Result<KeyEntry, Stop> {
    match set(world, keys, key, revision).await? {
        Replacement::Updated(entry) => Ok(entry),
        answer => fail!("a change of {key} at its present revision {revision}: {answer:?}"),
    }
}

/// Number of racers that count.
const COUNTERS: usize = 4;

/// Number of updates of each racer.
const UPDATES: usize = 4;

/// Of four racers at least one succeeds in each attempt of all.
const ATTEMPTS_MAX: usize = 100;

/// Each costs a few writes.
const GROWTHS: usize = 4;

/// Each costs a tick of the store's clock.
const DELETIONS: usize = 3;
