//! Slots: at most n holders of a group, each with a lease of its own.

use futures_util::FutureExt;
use tenure::{Error, ErrorKind, Slot, Slots};
use tenure_store::Key;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure, fail};
use crate::trial::Trial;
use crate::world::process::Process;
use crate::world::{World, failed};

pub(crate) const CLAUSE: Clause = Clause {
    name: "slots",
    checks: &[
        check!("of many contenders as many hold a slot as there are, each another one", no_more_than_n),
        check!("a contender with another number of slots is refused with both numbers", another_size),
        check!("a slot that was released, or whose holder is cut off, is granted again", freed),
        check!("a group that shrinks grants no slot beyond its size, and evicts no holder", shrink),
        check!("the holders of a group are listed by their slots", holders),
    ],
};

/// All at once, each tries until it has a slot or the group is full.
async fn no_more_than_n(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let group = trial.key("group");
    let mut processes = Vec::new();
    for number in 0..trial.connections().len() {
        processes.push(world.process(number).await?);
    }
    let racers = (0..RACERS).map(|racer| {
        let request = wants(&world, &processes[racer % processes.len()], &group, SIZE);
        async move { try_until_known(request).await }.boxed()
    });
    let finishes = world.within("a race for slots", trial.race(racers)).await?;
    let mut held = Vec::new();
    for answer in finishes.into_iter().flatten() {
        match answer {
            Ok(slot) => held.push(slot),
            Err(error) if error.kind() == ErrorKind::Held => {}
            // Its outcome is not known; what was granted is vacated.
            Err(error) if error.kind() == ErrorKind::Unavailable => trial.note(error.to_string()),
            Err(error) => return Err(failed(error)),
        }
    }
    // A lost slot stays lost, so those that believe after this instant believed during it.
    let believing: Vec<_> = held.iter().filter(|slot| slot.check().is_ok()).map(Slot::index).collect();
    let still = held.iter().filter(|slot| slot.check().is_ok()).count();
    ensure!(still <= SIZE as usize, "{still} contenders hold slots of a group of {SIZE}: {believing:?}");
    ensure!(!held.is_empty(), "no contender was granted a slot of an empty group");
    let mut indexes = believing.clone();
    indexes.sort();
    indexes.dedup();
    ensure!(indexes.len() == believing.len(), "two contenders hold the same slot: {believing:?}");
    ensure!(
        indexes.iter().all(|index| u32::from(*index) < SIZE),
        "a slot beyond the size of {SIZE} was granted: {indexes:?}"
    );
    for slot in held.iter().filter(|slot| slot.check().is_ok()) {
        world.is_kept(slot).await?;
    }
    Ok(())
}

/// One attempt with a definite answer.
async fn try_until_known(request: Slots) -> Result<Slot, Error> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match request.clone().try_acquire().await {
            Err(error) if error.kind() == ErrorKind::Unavailable && attempts < ATTEMPTS => {}
            answer => return answer,
        }
    }
}

async fn another_size(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let group = trial.key("group");
    let slot = granted(&world, wants(&world, &process, &group, SIZE)).await?;
    for size in [SIZE + 1, SIZE - 1] {
        let tried = world.within("an attempt", wants(&world, &other, &group, size).try_acquire()).await?;
        let Err(error) = tried else {
            fail!("a group of {SIZE} slots granted one to a contender for {size}")
        };
        ensure!(error.kind() == ErrorKind::Invalid, "a group of {SIZE} slots, wanted as {size}: {error}");
        let sentence = error.to_string();
        ensure!(
            [SIZE, size].iter().all(|number| sentence.contains(&number.to_string())),
            "the refusal does not name {SIZE} and {size}: {sentence}"
        );
    }
    world.is_kept(&slot).await
}

async fn freed(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (process, other, third) = (world.process(0).await?, world.process(1).await?, world.process(2).await?);
    let group = trial.key("group");
    let first = granted(&world, wants(&world, &process, &group, 2)).await?;
    let second = granted(&world, wants(&world, &other, &group, 2)).await?;
    let (index, token) = (first.index(), first.token());
    world.released(first.into_lease()).await?;
    let again = granted(&world, wants(&world, &third, &group, 2)).await?;
    ensure!(again.index() == index, "slot {index} was released, and slot {} granted", again.index());
    ensure!(again.token() > token, "the token of slot {index} went from {token} to {}", again.token());
    other.wire.cut();
    let next = granted(&world, wants(&world, &process, &group, 2)).await?;
    ensure!(second.check().is_err(), "{next:?} was granted while {second:?} is held");
    ensure!(
        next.index() == second.index() && next.token() > second.token(),
        "{second:?} was cut off, and {next:?} was granted"
    );
    other.wire.open();
    world.is_kept(&again).await
}

async fn shrink(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let group = trial.key("group");
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(granted(&world, wants(&world, &process, &group, 2)).await?);
    }
    let mut request = wants(&world, &other, &group, 2);
    let former = world.within("a resize", request.resize(1)).await?.map_err(failed)?;
    ensure!(former == 2, "a group of 2 slots had {former} before its resize");
    for slot in &held {
        world.is_kept(slot).await?;
    }
    held.sort_by_key(Slot::index);
    let beyond = held.pop().expect("two slots");
    world.released(beyond.into_lease()).await?;
    let tried = world.within("an attempt", wants(&world, &other, &group, 2).try_acquire()).await?;
    ensure!(
        tried.as_ref().is_err_and(|error| error.kind() == ErrorKind::Invalid),
        "a group that was resized to 1 slot, wanted as 2: {tried:?}"
    );
    let tried = world.within("an attempt", try_until_known(wants(&world, &other, &group, 1))).await?;
    ensure!(
        tried.as_ref().is_err_and(|error| error.kind() == ErrorKind::Held),
        "the only slot of a group is held, and another contender was answered: {tried:?}"
    );
    let last = held.pop().expect("one slot");
    world.released(last.into_lease()).await?;
    let slot = granted(&world, wants(&world, &other, &group, 1)).await?;
    ensure!(slot.index() == 0, "slot {} of a group of 1 was granted", slot.index());
    Ok(())
}

async fn holders(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    let (process, other) = (world.process(0).await?, world.process(1).await?);
    let group = trial.key("group");
    let request = wants(&world, &process, &group, SIZE);
    let slot = granted(&world, request).await?;
    let size = wants(&world, &other, &group, SIZE);
    let stored = world.ask("a read", || size.size()).await?;
    ensure!(stored.map(u32::from) == Some(SIZE), "a group of {SIZE} slots has the size {stored:?}");
    let listed = world.ask("a listing", || size.holders()).await?;
    let shown: Vec<_> = listed.iter().map(|held| (held.index, held.record.token)).collect();
    ensure!(
        shown == [(slot.index(), slot.token())],
        "slot {} is held with token {}, and these are listed: {shown:?}",
        slot.index(),
        slot.token()
    );
    Ok(())
}

fn wants(world: &World<'_>, process: &Process, group: &Key, slots: u32) -> Slots {
    let request = process.coordinator.slots(group.as_str(), slots).expect("a key is the name of a group");
    request.ttl(world.ttl).without_witness()
}

/// The slot, which must be granted within a few ttls.
async fn granted(world: &World<'_>, request: Slots) -> Result<Slot, Stop> {
    let wanting = request.wait(world.patience()).acquire();
    world.within("an acquire of a slot", wanting).await?.map_err(failed)
}

/// Number of slots.
const SIZE: u32 = 3;

/// Number of contenders that race for them.
const RACERS: usize = 8;

/// Number of attempts that may fail on a busy machine.
const ATTEMPTS: usize = 4;
