//! Removal by an operator. A store need not offer it; if it does, removal must be conditional, and must not set tokens
//! back.

use tenure_store::{
    Administration, BoxFuture, Expect, Key, Put, Removal, Store, StoreClock, StoreError, Version,
};

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure};
use crate::trial::{Retries, Trial};

pub(crate) const CLAUSE: Clause = Clause {
    name: "removal",
    checks: &[
        check!("a removal is offered only where the clock gives a floor for tokens", is_offered_with_a_clock),
        check!("only the version that was seen is removed, and is gone then", is_conditional),
        check!("what was removed and created again has none of its earlier versions", never_repeats),
        check!("of a removal and racing replaces of one version exactly one is applied", races),
    ],
};

async fn is_offered_with_a_clock(trial: &Trial<'_>) -> CheckResult {
    let has_clock = trial.promises.clock >= StoreClock::Floors;
    for store in trial.connections() {
        ensure!(
            has_clock || store.administration().is_none(),
            "entries can be removed, and there is no clock from which the next token could begin"
        );
    }
    Ok(())
}

async fn is_conditional(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("removed");
    let store = trial.writer();
    let administration = offered(trial, store)?;
    let first = trial.create(&key, &trial.value("first")).await?;
    let value = trial.value("second");
    let second = trial.replace(&key, &value, &first).await?;
    for (version, what) in
        [(&first, "the version before the current one"), (&store.identity().impossible_version, "no version")]
    {
        let removal = remove(trial, administration, &key, version).await?;
        ensure!(removal != Removal::Removed, "a client that had seen {what} of {key} removed it");
        trial.holds(&key, &value, &second).await?;
    }
    let removal = remove(trial, administration, &key, &second).await?;
    ensure!(removal == Removal::Removed, "{key} was not removed at its current version {second}");
    trial.is_absent(&key).await?;
    let again = remove(trial, administration, &key, &second).await?;
    ensure!(again != Removal::Removed, "{key} was removed once more, after it was gone");
    trial.conflict(trial.other(), &key, &Expect::Version(second), "a replace of what was removed").await?;
    trial.create(&key, &trial.value("third")).await?;
    Ok(())
}

/// A write that was in flight for a long time may still arrive. It must not find the version that it expects.
async fn never_repeats(trial: &Trial<'_>) -> CheckResult {
    let key = trial.key("made-anew");
    let administration = offered(trial, trial.writer())?;
    let mut gone: Vec<Version> = Vec::new();
    for life in ["first", "second", "third"] {
        let created = trial.create(&key, &trial.value(&format!("{life} created"))).await?;
        let replaced = trial.replace(&key, &trial.value(&format!("{life} replaced")), &created).await?;
        for version in [&created, &replaced] {
            ensure!(
                !gone.contains(version),
                "{key} was removed and created again, and has version {version} once more"
            );
        }
        for version in &gone {
            let late = Expect::Version(version.clone());
            trial.conflict(trial.other(), &key, &late, "a late replace of what was removed").await?;
        }
        let removal = remove(trial, administration, &key, &replaced).await?;
        ensure!(removal == Removal::Removed, "{key} was not removed at its current version {replaced}");
        gone.extend([created, replaced]);
    }
    Ok(())
}

async fn races(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    offered(trial, trial.writer())?;
    let (mut removed, mut replaced) = (0, 0);
    for round in 0..trial.sizes.rounds {
        let key = trial.key(&format!("round-{round}"));
        let base = trial.create(&key, &trial.value("base")).await?;
        let racers = (0..trial.sizes.racers).map(|racer| -> BoxFuture<'static, RemovalAnswer> {
            let (store, key, base) = (trial.connection(racer), key.clone(), base.clone());
            let value = trial.value(&format!("racer {racer}"));
            // Half of the racers each, and not always the same ones first.
            if (racer + round) % 2 == 0 {
                Box::pin(async move {
                    let put = store.put(&key, value, Expect::Version(base)).await;
                    RemovalAnswer::of_put(put)
                })
            } else {
                Box::pin(async move {
                    let Some(administration) = store.administration() else { return RemovalAnswer::Nothing };
                    RemovalAnswer::of_removal(administration.remove(&key, &base).await)
                })
            }
        });
        let racers: Vec<_> = racers.collect();
        trial.pace(&key).await;
        let told = trial.race(racers).await;
        let count = |wanted: RemovalAnswer| told.iter().filter(|told| **told == Some(wanted)).count();
        let (removals, replaces) = (count(RemovalAnswer::Removed), count(RemovalAnswer::Replaced));
        ensure!(
            removals + replaces <= 1,
            "round {round}: {removals} removals and {replaces} replaces of one version were told that they won"
        );
        let there = trial.read(trial.other(), &key).await?;
        let is_as_told = match (removals, replaces) {
            (1, 0) => there.is_none(),
            (0, 1) => there.is_some_and(|entry| entry.version != base),
            // A racer with an unknown outcome may have won.
            _ => count(RemovalAnswer::Nothing) > 0 || told.contains(&None),
        };
        ensure!(
            is_as_told,
            "round {round}: {removals} removals and {replaces} replaces won, and that is not what is stored"
        );
        (removed, replaced) = (removed + removals, replaced + replaces);
    }
    ensure!(removed + replaced > 0, "in {} rounds no racer received a win", trial.sizes.rounds);
    trial.note(format!("{removed} removed, {replaced} replaced"));
    Ok(())
}

/// The answer that one racer received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RemovalAnswer {
    Removed,
    Replaced,
    Conflict,
    /// No definite answer.
    Nothing,
}

impl RemovalAnswer {
    fn of_put(answer: Result<Put, StoreError>) -> Self {
        match answer {
            Ok(Put::Applied(_)) => Self::Replaced,
            Ok(Put::Conflict(_)) => Self::Conflict,
            Err(_) => Self::Nothing,
        }
    }

    fn of_removal(answer: Result<Removal, StoreError>) -> Self {
        match answer {
            Ok(Removal::Removed) => Self::Removed,
            Ok(Removal::Conflict(_)) => Self::Conflict,
            Err(_) => Self::Nothing,
        }
    }
}

fn offered<'s>(trial: &Trial<'_>, store: &'s dyn Store) -> Result<&'s dyn Administration, Stop> {
    let offered = store.administration();
    trial.require(offered.is_some(), "removal")?;
    Ok(offered.expect("it was just there"))
}

/// A removal with a definite answer. A removal with an unknown outcome is sent again, and an entry that is then absent
/// counts as removed.
async fn remove(
    trial: &Trial<'_>,
    administration: &dyn Administration,
    key: &Key,
    version: &Version,
) -> Result<Removal, Stop> {
    let mut patience = Retries::default();
    let mut uncertain = false;
    loop {
        trial.pace(key).await;
        match administration.remove(key, version).await {
            Ok(Removal::Conflict(_)) if uncertain && trial.read(trial.writer(), key).await?.is_none() => {
                return Ok(Removal::Removed);
            }
            Ok(removal) => return Ok(removal),
            Err(error) => {
                uncertain |= !matches!(error, StoreError::Refused(_));
                patience.spend(trial.harness, &error).await?;
            }
        }
    }
}
