//! Concurrent writers. Several servers pass every check before this one: they first check, and then write.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use tenure_store::{BoxFuture, Expect, Key, Put, Store, StoreError, Version};

use super::referee::{RacerAnswer, Referee};
use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::{Trial, excerpt};

pub(crate) const CLAUSE: Clause = Clause {
    name: "races",
    checks: &[
        check!("of racing creates exactly one is applied", creates),
        check!("of racing replaces of one version exactly one is applied", replaces),
        check!("no write of a chain of racing replaces is lost", chain),
        check!("readers beside a writer never see it go back", readers_beside_a_writer),
    ],
};

async fn creates(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_create, "atomic create")?;
    let mut referee = Referee::default();
    for round in 0..trial.sizes.rounds {
        let key = trial.key(&format!("round-{round}"));
        one_round(trial, &mut referee, &key, &Expect::Absent).await?;
    }
    trial.note(referee.sum()?);
    Ok(())
}

async fn replaces(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    let mut referee = Referee::default();
    for round in 0..trial.sizes.rounds {
        let key = trial.key(&format!("round-{round}"));
        let base = trial.create(&key, &trial.value("base")).await?;
        one_round(trial, &mut referee, &key, &Expect::Version(base)).await?;
    }
    trial.note(referee.sum()?);
    Ok(())
}

/// All racers send the same expectation, each with a different value.
async fn one_round(trial: &Trial<'_>, referee: &mut Referee, key: &Key, expect: &Expect) -> CheckResult {
    let values: Vec<Bytes> =
        (0..trial.sizes.racers).map(|racer| trial.value(&format!("racer {racer}"))).collect();
    trial.may_write(&values[0])?;
    let racers = values.iter().enumerate().map(|(racer, value)| -> BoxFuture<'static, _> {
        let (store, key) = (trial.connection(racer), key.clone());
        let (value, expect) = (value.clone(), expect.clone());
        Box::pin(async move { store.put(&key, value, expect).await })
    });
    trial.pace(key).await;
    let told: Vec<RacerAnswer> = trial
        .race(racers)
        .await
        .into_iter()
        .map(|told| told.map_or(RacerAnswer::Nothing, RacerAnswer::of))
        .collect();
    // The answers alone are sufficient, also for a store whose reads promise nothing.
    if let Err(stop) = Referee::count_winners(&told) {
        return referee.note(&told, Err(stop));
    }
    let stored = trial.read(trial.other(), key).await?;
    referee.judge(&values, &told, stored.as_ref())
}

/// Each racer adds its number to a list by read and replace. Numbers are never removed, so the list itself shows whose
/// write was applied. It needs no search for an order, and resolves every unknown outcome.
async fn chain(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.atomic_replace, "atomic replace")?;
    let (mut added, mut uncertain) = (0, 0);
    for round in 0..trial.sizes.rounds {
        let key = trial.key(&format!("round-{round}"));
        let base = trial.value("list:");
        let longest = base.len() + 8 * trial.sizes.racers;
        trial.require(longest <= trial.promises.value_max, &format!("values of {longest} bytes"))?;
        let version = trial.create(&key, &base).await?;
        let racers = (0..trial.sizes.racers).map(|racer| -> BoxFuture<'static, _> {
            let (store, key) = (trial.connection(racer), key.clone());
            Box::pin(async move { append_number(&*store, &key, racer).await })
        });
        trial.pace(&key).await;
        let told = trial.race(racers).await;
        let Some(entry) = trial.read(trial.other(), &key).await? else {
            fail!("{key} is gone after a race of replaces")
        };
        let listed = check_chain(&base, &entry.value, &version, &told)?;
        added += listed;
        uncertain +=
            told.iter().filter(|told| matches!(told, None | Some(RacerAnswer::Uncertain(_)))).count();
    }
    ensure!(added > 0, "in {} rounds of racing replaces not one was applied", trial.sizes.rounds);
    trial.note(format!("{added} links, {uncertain} unknown outcomes"));
    Ok(())
}

/// One racer of the chain: reads, adds its number and replaces, a few times, until the write is applied.
async fn append_number(store: &dyn Store, key: &Key, racer: usize) -> RacerAnswer {
    for _ in 0..CHAIN_TRIES {
        let Ok(reading) = store.get(key).await else { continue };
        let Some(entry) = reading.entry else { return RacerAnswer::Refused("the key held nothing".into()) };
        let longer = [&entry.value[..], format!("{racer},").as_bytes()].concat();
        match store.put(key, longer.into(), Expect::Version(entry.version)).await {
            Ok(Put::Conflict(_)) | Err(StoreError::Refused(_)) => {}
            answer => return RacerAnswer::of(answer),
        }
    }
    RacerAnswer::Conflict
}

/// Compares the list with the answers that the racers received. Returns the length of the list.
fn check_chain(
    base: &Bytes,
    list: &Bytes,
    created: &Version,
    told: &[Option<RacerAnswer>],
) -> Result<usize, Stop> {
    let added = list.strip_prefix(&base[..]).and_then(|added| std::str::from_utf8(added).ok());
    let Some(added) = added else { fail!("the list no longer begins as it did: {}", excerpt(list)) };
    let mut times: HashMap<&str, usize> = HashMap::new();
    for racer in added.split_terminator(',') {
        *times.entry(racer).or_default() += 1;
    }

    let mut versions = HashSet::from([created]);
    for (racer, told) in told.iter().enumerate() {
        let listed = times.remove(racer.to_string().as_str()).unwrap_or_default();
        let as_told = match told {
            Some(RacerAnswer::Applied(version)) => {
                ensure!(versions.insert(version), "two writes of one key were both given version {version}");
                listed == 1
            }
            Some(RacerAnswer::Conflict | RacerAnswer::Refused(_)) => listed == 0,
            Some(RacerAnswer::Uncertain(_) | RacerAnswer::Nothing) | None => listed <= 1,
        };
        let told = told.as_ref().unwrap_or(&RacerAnswer::Nothing);
        ensure!(as_told, "racer {racer} was told {told}, and its write is in the list {listed} times");
    }
    ensure!(times.is_empty(), "the list has writes that no racer made: {times:?}");
    Ok(added.split_terminator(',').count())
}

/// A read that is sent after another one returned must not show an older value.
async fn readers_beside_a_writer(trial: &Trial<'_>) -> CheckResult {
    trial.require(trial.promises.linearizable_reads, "linearizable reads")?;
    trial.require(trial.promises.write_interval.is_zero(), "writes without a pause")?;
    let key = trial.key("counter");
    let last = trial.repeats();
    let first = Bytes::from(padded(0));
    trial.may_write(&first)?;
    let mut version = trial.create(&key, &first).await?;

    let (store, counted) = (trial.connection(0), key.clone());
    let writer: BoxFuture<'static, Result<(), String>> = Box::pin(async move {
        for number in 1..=last {
            match store.put(&counted, padded(number).into(), Expect::Version(version)).await {
                Ok(Put::Applied(applied)) => version = applied.version,
                Ok(Put::Conflict(_)) => {
                    return Err(format!("the only writer met a conflict at write {number}"));
                }
                // The writer's error is not the subject here: the readers have seen enough, or another check reports it.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    });
    let readers = (1..=READERS).map(|reader| -> BoxFuture<'static, Result<(), String>> {
        let (store, key) = (trial.connection(reader), key.clone());
        Box::pin(async move { read_while_it_grows(&*store, &key, last).await })
    });
    for outcome in trial.race(std::iter::once(writer).chain(readers)).await {
        outcome.unwrap_or_else(|| Err("a task died".into())).map_err(Stop::Failed)?;
    }
    Ok(())
}

async fn read_while_it_grows(store: &dyn Store, key: &Key, last: usize) -> Result<(), String> {
    let mut highest = 0;
    for _ in 0..last * 4 {
        let Ok(reading) = store.get(key).await else { continue };
        let entry = reading.entry.ok_or("the entry was gone for a moment")?;
        let text = std::str::from_utf8(&entry.value).unwrap_or_default();
        let number: usize =
            text.trim_start_matches('n').parse().map_err(|_| format!("a torn value: {text:?}"))?;
        if text.len() != padded(0).len() {
            return Err(format!("a torn value: {text:?}"));
        }
        if number < highest {
            return Err(format!("a read showed write {number} after another had shown write {highest}"));
        }
        highest = number;
        if highest == last {
            break;
        }
    }
    Ok(())
}

/// A number with padding, long enough that half of it is noticed.
fn padded(number: usize) -> String {
    format!("{}{number:08}", "n".repeat(56))
}

/// Maximum number of conflicts before a racer of the chain gives up: for each of 64 racers to win once, they would need
/// 2080 attempts.
const CHAIN_TRIES: usize = 4;

/// One reader per connection would be enough; a few more share them.
const READERS: usize = 8;
