//! `list`.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt};
use tenure_store::{Expect, Key, Listed, Prefix, Put, Stamp, Store};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "list",
    checks: &[
        check!("where there is nothing, nothing is listed", nothing),
        check!("what was written is listed over every connection", written_is_listed),
        check!("a prefix goes by whole segments and covers its own key", whole_segments),
        check!("unusual keys are listed as they were written", unusual_keys),
        check!("nothing but keys is listed: no temporary, lock or failed names", no_foreign_names),
        check!("a long list is whole and has every key once", long),
        check!("the list of everything has these keys too", everything),
        check!("a listing with stamps has the same keys", stamped_keys),
        check!("a stamp changes with each write, and only then", stamps_follow_writes),
    ],
};

async fn nothing(trial: &Trial<'_>) -> CheckResult {
    lists_exactly(trial, trial.scope(), &[]).await
}

async fn written_is_listed(trial: &Trial<'_>) -> CheckResult {
    let mut keys = Vec::new();
    for number in 0..5 {
        let key = trial.key(&format!("written-{number}"));
        let version = trial.create(&key, &trial.value("first")).await?;
        keys.push(key.clone());
        lists_exactly(trial, trial.scope(), &keys).await?;
        trial.replace(&key, &trial.value("second"), &version).await?;
        lists_exactly(trial, trial.scope(), &keys).await?;
    }
    Ok(())
}

async fn whole_segments(trial: &Trial<'_>) -> CheckResult {
    let covered = ["jobs", "jobs/a", "jobs/a/b", "jobs/.a", "jobs/z"].map(|name| trial.key(name));
    let others =
        ["jobs-old", "jobs.old/a", "jobsa", "job", "Jobs", "jobs /a", "x/jobs/a"].map(|name| trial.key(name));
    for key in covered.iter().chain(&others) {
        trial.create(key, &trial.value("first")).await?;
    }
    let jobs = format!("{}/jobs", trial.scope());
    lists_exactly(trial, &jobs, &covered).await?;
    lists_exactly(trial, &format!("{jobs}/"), &covered).await?;
    lists_exactly(trial, &format!("{jobs}/a"), &covered[1..3]).await?;
    lists_exactly(trial, &format!("{jobs}/b"), &[]).await
}

async fn unusual_keys(trial: &Trial<'_>) -> CheckResult {
    let names =
        ["Ünïcødé/键", "with space", "100%", "%2F", "..x", ".hidden", "a+b", "back\\slash", "#1", "a.lock"];
    let keys = names.map(|name| trial.key(name));
    for key in &keys {
        trial.create(key, &trial.value("first")).await?;
    }
    lists_exactly(trial, trial.scope(), &keys).await
}

/// Failed or dropped writes leave files behind: staging files, parts, locks.
async fn no_foreign_names(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("only");
    let missing = trial.key("missing");
    let version = trial.create(&key, &trial.value("first")).await?;
    let stale = Expect::Version(version.clone());
    trial.replace(&key, &trial.value("second"), &version).await?;
    trial.conflict(trial.writer(), &key, &Expect::Absent, "a create over an entry").await?;
    trial.conflict(trial.writer(), &key, &stale, "a replace of an earlier version").await?;
    let impossible = Expect::Version(trial.writer().identity().impossible_version);
    trial.conflict(trial.writer(), &missing, &impossible, "a replace of the impossible version").await?;
    trial.is_absent(&missing).await?;
    lists_exactly(trial, trial.scope(), &[key]).await
}

/// Object stores list in pages of a thousand, and Redis' SCAN may return a key twice.
async fn long(trial: &Trial<'_>) -> CheckResult {
    let keys: Vec<Key> = (0..trial.sizes.listed).map(|number| trial.key(&format!("{number:05}"))).collect();
    for some in keys.chunks(trial.sizes.racers) {
        let writes = some.iter().enumerate().map(async |(racer, key)| {
            let store = trial.connection(racer);
            trial.put(&*store, key, &trial.value("first"), &Expect::Absent).await
        });
        for answer in join_all(writes).await {
            ensure!(
                matches!(answer?, Put::Applied(_)),
                "a create of a key that does not exist was a conflict"
            );
        }
    }
    trial.note(format!("{} keys", keys.len()));
    lists_exactly(trial, trial.scope(), &keys).await
}

async fn everything(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("among-others");
    trial.create(&key, &trial.value("first")).await?;
    let times = listed(trial.other(), &Prefix::all()).await?;
    let listed = times.get(&key).copied().unwrap_or_default();
    ensure!(listed == 1, "{key} is in the list of everything {listed} times");
    Ok(())
}

async fn stamped_keys(trial: &Trial<'_>) -> CheckResult {
    let keys = ["stamped", "stamped/a", "stamped/b c"].map(|name| trial.key(name));
    for key in keys.iter().chain([&trial.key("stamped-not")]) {
        trial.create(key, &trial.value("first")).await?;
    }
    let prefix = Prefix::of(&keys[0]);
    for connection in trial.connections() {
        let mut tries = 0;
        loop {
            let names: Vec<_> =
                stamps(&**connection, &prefix).await?.into_iter().map(|listed| listed.key).collect();
            let is_whole = names.len() == keys.len() && keys.iter().all(|key| names.contains(key));
            tries += 1;
            ensure!(
                is_whole || tries < TRIES_MAX,
                "written were {keys:?}, and listed with stamps are {names:?}"
            );
            if is_whole {
                break;
            }
            trial.harness.pause(AGAIN).await;
        }
    }
    Ok(())
}

/// Waiting contenders for a slot learn from it which slots to read.
async fn stamps_follow_writes(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("followed");
    let quiet = trial.key("quiet");
    trial.create(&quiet, &trial.value("first")).await?;
    let mut version = trial.create(&key, &trial.value("same length")).await?;
    let mut seen = vec![Vec::new(); trial.connections().len()];
    for _ in 0..trial.repeats().min(10) {
        for (connection, seen) in trial.connections().iter().zip(&mut seen) {
            let new = new_stamp(trial, &**connection, &key, seen).await?;
            for _ in 0..STILL {
                let again = stamp(&**connection, &key).await?;
                ensure!(
                    again == new,
                    "{key} was not written, and its stamp changed from {new:?} to {again:?}"
                );
            }
            seen.push(new);
        }
        version = trial.replace(&key, &trial.value("same length"), &version).await?;
    }
    for connection in trial.connections() {
        let stamps = [stamp(&**connection, &quiet).await?, stamp(&**connection, &quiet).await?];
        ensure!(stamps[0] == stamps[1], "{quiet} was written once, and has the stamps {stamps:?}");
    }
    Ok(())
}

/// The stamp of a key after a write: one that no earlier write had. A listing may be late.
async fn new_stamp(
    trial: &Trial<'_>,
    store: &dyn Store,
    key: &Key,
    seen: &[Option<Stamp>],
) -> Result<Option<Stamp>, Stop> {
    for _ in 0..TRIES_MAX {
        let shown = stamp(store, key).await?;
        if shown.is_some() && !seen.contains(&shown) {
            return Ok(shown);
        }
        trial.harness.pause(AGAIN).await;
    }
    fail!("{key} was written, and its stamp in the listing is one of an earlier write: {:?}", seen.last())
}

async fn stamp(store: &dyn Store, key: &Key) -> Result<Option<Stamp>, Stop> {
    let listed = stamps(store, &Prefix::of(key)).await?;
    Ok(listed.into_iter().find(|listed| listed.key == *key).map(|listed| listed.stamp))
}

async fn stamps(store: &dyn Store, prefix: &Prefix) -> Result<Vec<Listed>, Stop> {
    let Some(listing) = store.list_stamped(prefix) else {
        return Err(Stop::Skipped("the store has no listing with stamps".to_owned()));
    };
    let listed = listing.take(LISTED_MAX).try_collect().await;
    listed.map_err(|error| Stop::Failed(format!("the listing with stamps broke off: {error}")))
}

/// The contract does not say how soon a list shows a write, so the check allows a little time. A list that never shows
/// it is a failure.
async fn lists_exactly(trial: &Trial<'_>, prefix: &str, keys: &[Key]) -> CheckResult {
    let prefix = Prefix::parse(prefix).map_err(|error| Stop::Failed(error.to_string()))?;
    for connection in trial.connections() {
        let mut tries = 0;
        while let Err(stop) = compare(&**connection, &prefix, keys).await {
            tries += 1;
            if tries == TRIES_MAX {
                return Err(stop);
            }
            trial.harness.pause(AGAIN).await;
        }
    }
    Ok(())
}

async fn compare(store: &dyn Store, prefix: &Prefix, keys: &[Key]) -> CheckResult {
    let mut times = listed(store, prefix).await?;
    for key in keys {
        let listed = times.remove(key).unwrap_or_default();
        ensure!(listed == 1, "under {prefix:?}, {key} is listed {listed} times", prefix = prefix.as_str());
    }
    let foreign: Vec<_> = times.keys().take(3).map(Key::as_str).collect();
    ensure!(
        foreign.is_empty(),
        "under {:?} there are {} names that are not covered or were not written, such as {foreign:?}",
        prefix.as_str(),
        times.len()
    );
    Ok(())
}

/// Number of times that each key is listed.
async fn listed(store: &dyn Store, prefix: &Prefix) -> Result<BTreeMap<Key, usize>, Stop> {
    let mut times = BTreeMap::new();
    let mut names = store.list(prefix);
    while let Some(name) = names.next().await {
        let key = name.map_err(|error| Stop::Failed(format!("the list broke off: {error}")))?;
        *times.entry(key).or_insert(0) += 1;
        ensure!(times.len() <= LISTED_MAX, "the list does not end: {LISTED_MAX} names so far");
    }
    Ok(times)
}

/// Number of listings that must show the same stamp.
const STILL: usize = 3;

/// Number of further attempts before a missing name is a failure.
const TRIES_MAX: usize = 5;

/// Wait between two attempts.
const AGAIN: Duration = Duration::from_millis(100);

/// More keys than any store has that is suitable for tests.
const LISTED_MAX: usize = 1_000_000;
