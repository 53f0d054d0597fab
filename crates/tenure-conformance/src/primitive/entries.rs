//! Plain keys: entries that one participant creates, and only their owner renews and releases.

use futures_util::FutureExt;
use tenure::{Creation, ErrorKind, Holder, KeyEntry, Keys, Prefix, Replacement, Revision};
use tenure_store::Key;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;
use crate::world::{World, failed};

pub(crate) const CLAUSE: Clause = Clause {
    name: "entries",
    checks: &[
        check!("of many that create an entry one does, and the others are shown it", one_creator),
        check!("only its owner renews and releases an entry", owner_only),
        check!("an entry runs out unless it is renewed, and without a ttl it never does", run_out),
        check!("a lease is refused as a plain key, and a plain key as a lease", kinds_apart),
        check!("entries are listed under their prefix, and leases are not", listed),
    ],
};

/// Every racer is an owner of its own. All rounds run at the same time, each on a separate key.
async fn one_creator(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    let mut processes = Vec::new();
    for number in 0..trial.connections().len() {
        processes.push(world.process(number).await?);
    }
    let keys: Vec<_> = (0..ROUNDS).map(|round| trial.key(&format!("wanted-{round}"))).collect();
    let racers = keys.iter().flat_map(|key| (0..CREATORS).map(move |racer| (key, racer)));
    let racers = racers.map(|(key, racer)| {
        let (key, owner) = (key.clone(), processes[racer % processes.len()].coordinator.keys());
        async move { (key.clone(), owner.create_if_absent(&key, &format!("racer-{racer}"), None).await) }
            .boxed()
    });
    let finishes = world.within("a race of creations", trial.race(racers)).await?;
    let answers: Vec<_> = finishes.into_iter().flatten().collect();
    for key in &keys {
        let (mut created, mut shown) = (Vec::new(), Vec::new());
        for (_, answer) in answers.iter().filter(|(of, _)| of == key) {
            match answer {
                Ok(Creation::Created(entry)) => created.push(entry),
                Ok(Creation::Exists(entry)) => shown.push(entry),
                // Its outcome is not known, so it may be the one.
                Err(error) if error.kind() == ErrorKind::Unavailable => trial.note(error.to_string()),
                Err(error) => fail!("a creation of {key}: {error}"),
            }
        }
        let Some(now) = get(&world, &processes[0].coordinator.keys(), key).await? else {
            fail!("after a race of creations, {key} has no entry")
        };
        ensure!(
            created.len() <= 1 && created.iter().all(|entry| is_same(entry, &now)),
            "{} racers created {key}, which now has {}: {}",
            created.len(),
            shown_as(&now),
            created.iter().map(|entry| shown_as(entry)).collect::<Vec<_>>().join(", ")
        );
        for entry in shown {
            ensure!(
                is_same(entry, &now),
                "a racer was shown {}, and {key} has {}",
                shown_as(entry),
                shown_as(&now)
            );
        }
    }
    Ok(())
}

async fn owner_only(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let key = trial.key("owned");
    let name = || Holder::new("an owner").expect("a name without surprises");
    let (owner, stranger) =
        (process.coordinator.keys().owner(name(), "its secret"), other.coordinator.keys());
    let entry = create(&world, &owner, &key, &"v".repeat(2_000)).await?;
    for (what, refused) in [
        ("renewed", world.within("a renewal", stranger.renew(&key)).await?.map(drop)),
        ("released", world.within("a release", stranger.release(&key)).await?),
    ] {
        ensure!(
            refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::Lost),
            "an entry was {what} by another owner than its own: {refused:?}"
        );
    }
    let renewed = world.within("a renewal", owner.renew(&key)).await?.map_err(failed)?;
    ensure!(is_same(&renewed, &entry), "a renewal made {} of {}", shown_as(&renewed), shown_as(&entry));
    let seen = get(&world, &stranger, &key).await?;
    ensure!(
        seen.as_ref().is_some_and(|seen| is_same(seen, &entry)),
        "its owner wrote {} to {key}, and another sees {seen:?}",
        shown_as(&entry)
    );
    // The secret is the owner, wherever it is used.
    let elsewhere = other.coordinator.keys().owner(name(), "its secret");
    world.within("a release", elsewhere.release(&key)).await?.map_err(failed)?;
    ensure!(get(&world, &stranger, &key).await?.is_none(), "{key} was released, and has an entry");
    let late = world.within("a renewal", owner.renew(&key)).await?;
    ensure!(
        late.as_ref().is_err_and(|error| error.kind() == ErrorKind::Lost),
        "an entry was renewed after its release: {late:?}"
    );
    Ok(())
}

async fn run_out(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let (owner, observer) = (process.coordinator.keys(), other.coordinator.keys());
    let [left, kept, forever] = ["left", "kept", "forever"].map(|name| trial.key(name));
    let create = async |key: &Key, ttl: Option<std::time::Duration>| {
        let created = world.within("a creation", owner.create_if_absent(key, "a value", ttl)).await?;
        created_entry(key, created.map_err(failed)?)
    };
    create(&forever, None).await?;
    let entry = create(&left, Some(world.ttl)).await?;
    create(&kept, Some(world.ttl)).await?;
    // A participant that sees the entry for as long as its ttl knows that it has run out.
    let seen = get(&world, &observer, &left).await?;
    ensure!(seen.is_some(), "an entry with a ttl of {:?} was gone at once", world.ttl);
    for _ in 0..RENEWALS {
        world.pass(world.ttl * 5 / 4 / RENEWALS).await;
        if let Err(error) = world.within("a renewal", owner.renew(&kept)).await? {
            // The machine is too busy for this ttl. That is not the subject of this check.
            trial.note(format!("an entry could not be renewed in time: {error}"));
        }
    }
    ensure!(get(&world, &observer, &forever).await?.is_some(), "an entry without a ttl has run out");
    let seen = get(&world, &observer, &left).await?;
    ensure!(seen.is_none(), "an entry is there {:?} after its ttl of {:?}", world.ttl / 4, world.ttl);
    let renewed = world.within("a renewal", owner.renew(&left)).await?;
    ensure!(
        renewed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Lost),
        "an entry that had run out was renewed: {renewed:?}"
    );
    let old = observer.compare_and_set(&left, entry.revision, "late", None);
    let old = world.within("a change", old).await?.map_err(failed)?;
    ensure!(
        old == Replacement::Conflict(None),
        "an entry that had run out was changed by its old revision: {old:?}"
    );
    let again = self::create(&world, &observer, &left, "again").await?;
    ensure!(
        again.revision > entry.revision,
        "after revision {} had run out, the next was {}",
        entry.revision,
        again.revision
    );
    Ok(())
}

/// Held, and vacant.
async fn kinds_apart(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let (owner, stranger) = (process.coordinator.keys(), other.coordinator.keys());
    let (lease_key, entry_key) = (trial.key("lease"), trial.key("entry"));
    let lease = world.granted(process.wants(&lease_key)).await?;
    refused_as_key(&world, &stranger, &lease_key).await?;
    world.is_kept(&lease).await?;
    world.released(lease).await?;
    refused_as_key(&world, &stranger, &lease_key).await?;

    create(&world, &owner, &entry_key, "a value").await?;
    refused_as_lease(&world, &other, &entry_key).await?;
    world.within("a release", owner.release(&entry_key)).await?.map_err(failed)?;
    refused_as_lease(&world, &other, &entry_key).await
}

async fn refused_as_key(world: &World<'_>, keys: &Keys, key: &Key) -> CheckResult {
    let answers = [
        ("a read", world.within("a read", keys.get(key)).await?.map(drop)),
        ("a creation", world.within("a creation", keys.create_if_absent(key, "x", None)).await?.map(drop)),
        ("a release", world.within("a release", keys.release(key)).await?),
    ];
    for (what, answer) in answers {
        ensure!(
            answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Invalid),
            "{what} of the lease {key} as a plain key: {answer:?}"
        );
    }
    Ok(())
}

async fn refused_as_lease(
    world: &World<'_>,
    process: &crate::world::process::Process,
    key: &Key,
) -> CheckResult {
    let before = world.entry(key).await?;
    let answer = world.within("an attempt", process.wants(key).try_acquire()).await?;
    ensure!(
        answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Invalid),
        "the plain key {key} was wanted as a lease: {answer:?}"
    );
    world.trial.holds(key, &before.value, &before.version).await
}

async fn listed(trial: &Trial<'_>) -> CheckResult {
    let world = World::for_keys(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let owner = process.coordinator.keys();
    let keys = ["list/a", "list/b", "list/deep/c"].map(|name| trial.key(name));
    // One after the other, each after a tick of the store's clock, would take seconds.
    let creations = keys.each_ref().map(|key| create(&world, &owner, key, key.as_str()));
    futures_util::future::try_join_all(creations).await?;
    let lease = world.granted(process.wants(&trial.key("list/lease"))).await?;
    create(&world, &owner, &trial.key("list-beside"), "not under the prefix").await?;
    let prefix = Prefix::of(&trial.key("list"));
    let observer = other.coordinator.keys();
    let found = world.ask("a listing", || observer.list(&prefix)).await?;
    let mut shown = Vec::new();
    for (key, entry) in found {
        let entry = entry.map_err(failed)?;
        ensure!(entry.value.as_ref() == key.as_str(), "{key} is listed with the value {:?}", entry.value);
        shown.push(key);
    }
    ensure!(shown == keys, "{keys:?} have entries, and these are listed: {shown:?}");
    drop(lease);
    Ok(())
}

/// Creates an entry without a ttl, which must be absent.
pub(super) async fn create(world: &World<'_>, keys: &Keys, key: &Key, value: &str) -> Result<KeyEntry, Stop> {
    let created = world.within("a creation", keys.create_if_absent(key, value, None)).await?;
    created_entry(key, created.map_err(failed)?)
}

pub(super) fn created_entry(key: &Key, created: Creation) -> Result<KeyEntry, Stop> {
    match created {
        Creation::Created(entry) if entry.revision > Revision::ABSENT => Ok(entry),
        Creation::Created(entry) => fail!("{key} was created with {}", shown_as(&entry)),
        Creation::Exists(entry) => fail!("{key} has no entry, and a creation found {}", shown_as(&entry)),
    }
}

pub(super) async fn get(world: &World<'_>, keys: &Keys, key: &Key) -> Result<Option<KeyEntry>, Stop> {
    world.within("a read", keys.get(key)).await?.map_err(failed)
}

/// True if it is the same change of the key.
pub(super) fn is_same(a: &KeyEntry, b: &KeyEntry) -> bool {
    (a.revision, &a.value) == (b.revision, &b.value)
}

pub(super) fn shown_as(entry: &KeyEntry) -> String {
    format!("revision {} ({})", entry.revision, crate::trial::excerpt(entry.value.as_bytes()))
}

/// Number of racers for each entry.
const CREATORS: usize = 8;

/// Number of entries that are raced for.
const ROUNDS: usize = 4;

/// Number of renewals in a little more than a ttl.
const RENEWALS: u32 = 5;
