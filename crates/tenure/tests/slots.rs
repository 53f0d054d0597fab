//! Groups of slots: at most n holders, few calls, and no slot that stays unused.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::odd::Odd;
use support::{World, eventually, poll_times, spawn};
use tenure::store::memory::{GetFault, PutFault};
use tenure::{Coordinator, ErrorKind, GroupFull, Key, Lost, Slot};
use tenure_store::{Reason, StoreClock};

const TTL: Duration = Duration::from_secs(12);

/// A store without hints, as a bucket is.
fn without_hints() -> World {
    World::built(|builder| builder.declare(|guarantees| guarantees.watch = false))
}

/// A process that the store gives neither hints nor stamps.
async fn without_stamps(world: &World) -> Coordinator {
    let builder = Coordinator::builder().clock(Arc::new(world.clock.clone()));
    builder.connect(Odd::new(&world.memory)).await.unwrap()
}

async fn slot(coordinator: &Coordinator, group: &str, slots: u32) -> Slot {
    coordinator.slots(group, slots).unwrap().ttl(TTL).try_acquire().await.unwrap()
}

async fn fill(coordinator: &Coordinator, group: &str, slots: u32, count: u32) -> Vec<Slot> {
    let mut held = Vec::new();
    for _ in 0..count {
        held.push(slot(coordinator, group, slots).await);
    }
    held.sort_by_key(Slot::index);
    held
}

fn slot_key(group: &str, index: u16) -> Key {
    Key::group_slot(&Key::parse(group).unwrap(), index).unwrap()
}

fn size_key(group: &str) -> Key {
    Key::group_size(&Key::parse(group).unwrap()).unwrap()
}

#[tokio::test]
async fn a_group_has_as_many_holders_as_slots_and_each_slot_is_a_lease_with_an_index() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let held = fill(&a, "gpu", 3, 3).await;
    assert_eq!(held.iter().map(Slot::index).collect::<Vec<_>>(), [0, 1, 2]);
    for slot in &held {
        slot.check().unwrap();
        assert_eq!((slot.group().as_str(), slot.key()), ("gpu", &slot_key("gpu", slot.index())));
    }
    let error = b.slots("gpu", 3).unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held);
    let tokens: Vec<_> = held.iter().map(|slot| slot.token()).collect();
    assert_eq!(
        error.to_string(),
        format!(
            "all 3 slots of gpu on memory: are held: slot 0 by a (token {}), slot 1 by a (token {}), slot 2 by a \
             (token {}). Wait, or do something else",
            tokens[0], tokens[1], tokens[2]
        )
    );
    let full = GroupFull::of(&error).unwrap();
    let listed = b.slot_group("gpu").unwrap().holders().await.unwrap();
    for holders in [&full.holders, &listed] {
        assert_eq!(holders.iter().map(|held| held.index).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(holders.iter().all(|held| held.holder() == "a" && held.remaining.at_most <= TTL * 102 / 100));
        assert_eq!(holders.iter().map(|held| held.record.token).collect::<Vec<_>>(), tokens);
    }
    held[1].release().await.unwrap();
    let next = slot(&b, "gpu", 3).await;
    assert_eq!(next.index(), 1);
    assert!(next.token() > tokens[1]);
}

#[tokio::test]
async fn the_number_of_slots_is_stored_and_another_number_is_refused_with_both() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    assert_eq!(b.slot_group("gpu").unwrap().size().await.unwrap(), None);
    let _held = slot(&a, "gpu", 3).await;
    assert_eq!(b.slots("gpu", 5).unwrap().size().await.unwrap(), Some(3));
    let before = world.memory.calls();
    let error = b.slots("gpu", 5).unwrap().acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "group gpu on memory: has 3 slots, and this contender expects 5: use the same number everywhere, or resize the \
         group"
    );
    assert_eq!(world.calls_since(before), (1, 0));
}

#[tokio::test]
async fn a_shrink_evicts_no_holder_and_its_highest_slots_are_not_granted_again() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let held = fill(&a, "gpu", 3, 3).await;
    let mut group = b.slots("gpu", 3).unwrap();
    assert_eq!(group.resize(2).await.unwrap(), 3);
    assert_eq!(group.size().await.unwrap(), Some(2));
    world.pass(TTL * 2).await;
    assert!(held.iter().all(|slot| slot.check().is_ok()), "all of them finish");
    assert_eq!(group.holders().await.unwrap().len(), 3);
    held[2].release().await.unwrap();
    let error = group.clone().try_acquire().await.unwrap_err();
    assert!(error.to_string().starts_with("all 2 slots of gpu"), "{error}");
    held[0].release().await.unwrap();
    assert_eq!(group.clone().try_acquire().await.unwrap().index(), 0);
    assert_eq!(b.slots("gpu", 3).unwrap().try_acquire().await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_shrink_between_the_grant_and_the_belief_gives_the_slot_back() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    drop(fill(&a, "gpu", 2, 2).await);
    let lower = loop {
        let held = slot(&a, "gpu", 2).await;
        if held.index() == 0 {
            break held;
        }
    };
    world.settle().await;
    // Granted at once, and the answer arrives later.
    world.memory.faults().next_put(PutFault::SlowAnswer(TTL / 20));
    let acquired = spawn(b.slots("gpu", 2).unwrap().ttl(TTL).acquire());
    let group = a.slot_group("gpu").unwrap();
    eventually("slot 1 is granted", || {
        let record = world.memory.contents(&slot_key("gpu", 1)).unwrap();
        String::from_utf8_lossy(&record).contains("\"held\"")
    })
    .await;
    assert_eq!(group.resize(1).await.unwrap(), 2);
    world.pass(TTL / 10).await;
    let error = acquired.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("was resized to 1 slot, and this contender expects 2"), "{error}");
    let holders = group.holders().await.unwrap();
    assert_eq!(holders.iter().map(|held| held.index).collect::<Vec<_>>(), [0], "slot 1 is given back");
    lower.check().unwrap();
}

#[tokio::test]
async fn a_group_grows_at_once_for_those_who_expect_it_and_a_waiting_contender_with_the_old_number_is_refused()
 {
    for world in [World::new(), without_hints()] {
        let (a, b) = (world.process("a").await, world.process("b").await);
        let _held = fill(&a, "gpu", 2, 2).await;
        let waiting = spawn(b.slots("gpu", 2).unwrap().ttl(TTL).acquire());
        world.pass(TTL).await;
        assert_eq!(a.slot_group("gpu").unwrap().resize(3).await.unwrap(), 2);
        assert_eq!(slot(&a, "gpu", 3).await.index(), 2);
        world.pass(TTL * 2).await;
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error.to_string().contains("was resized to 3 slots, and this contender expects 2"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_resize_to_the_same_number_changes_nothing_and_a_missing_group_is_not_resized() {
    let world = World::new();
    let a = world.process("a").await;
    let group = a.slot_group("gpu").unwrap();
    let error = group.resize(3).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "group gpu on memory: has no size yet: acquire a slot of it first, which stores the number of slots"
    );
    let _held = slot(&a, "gpu", 3).await;
    let before = world.memory.calls();
    assert_eq!(group.resize(3).await.unwrap(), 3);
    assert_eq!(world.calls_since(before).1, 0, "nothing is written");
}

#[tokio::test]
async fn bad_numbers_and_hostile_names_are_refused_before_anything_is_sent() {
    let world = World::new();
    let a = world.process("a").await;
    let before = world.memory.calls();
    for slots in [0, 1_025, u32::MAX] {
        let error = a.slots("gpu", slots).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("a group has 1 to 1024 slots, not {slots}: choose a number in this range")
        );
    }
    let long = "gpu/".repeat(45) + "x";
    for group in ["", "/", "a/../b", "a//b", "a\0b", "..", ".tenure/slots/gpu/0", ".tenure/x", &long] {
        for refused in [a.slots(group, 3).err(), a.slot_group(group).err()] {
            assert_eq!(refused.unwrap().kind(), ErrorKind::Invalid, "{group:?}");
        }
    }
    assert!(a.slots("gpu", 3).unwrap().ttl(Duration::ZERO).acquire().await.is_err());
    assert_eq!(world.calls_since(before), (0, 0));
}

#[tokio::test]
async fn groups_whose_names_nest_and_leases_of_the_same_name_are_separate() {
    let world = World::new();
    let a = world.process("a").await;
    let names = ["a", "a/0", "a/size", "a%2Fsize", "a%2F0", "a b", "Ünïcødé/键"];
    let mut held = Vec::new();
    for (slots, name) in (1u32..).zip(names) {
        held.push(a.lease(name).unwrap().try_acquire().await.unwrap());
        for slot in fill(&a, name, slots, slots).await {
            held.push(slot.into_lease());
        }
        assert!(a.slots(name, slots).unwrap().try_acquire().await.is_err(), "{name} is full");
    }
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let groups = a.slot_groups().await.unwrap();
    assert_eq!(groups.iter().map(Key::as_str).collect::<Vec<_>>(), sorted);
    assert_eq!(a.observe_all(&tenure::Prefix::all()).await.unwrap().len(), names.len(), "ls hides slots");
}

// ── cost ──────────────────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn the_cost_of_an_acquire_in_a_group_of_64_is_that_of_a_lease_and_two_reads_of_the_size() {
    let world = World::new();
    let a = world.process("a").await;
    let lease = {
        let before = world.memory.calls();
        std::mem::forget(a.lease("k").unwrap().try_acquire().await.unwrap());
        world.calls_since(before)
    };
    let _first = slot(&a, "gpu", 64).await;
    let before = world.memory.calls();
    let mut held = vec![slot(&a, "gpu", 64).await];
    let cold = world.calls_since(before);
    assert!(cold.1 == lease.1 && cold.0 <= lease.0 + 3, "{cold:?} in an empty group, {lease:?} for a lease");
    held.extend(fill(&a, "gpu", 64, 30).await);
    let b = world.process("b").await;
    let before = world.memory.calls();
    let mut tries = Vec::new();
    for _ in 0..16 {
        tries.push(slot(&b, "gpu", 64).await);
    }
    let (reads, _) = world.calls_since(before);
    assert!(reads <= 16 * 16, "{reads} reads for 16 slots of a group that is half full and more");
    held.extend(tries);
    held.extend(fill(&a, "gpu", 64, 64 - 1 - held.len() as u32 - 1).await);
    let c = world.process("c").await;
    let before = world.memory.calls();
    held.push(slot(&c, "gpu", 64).await);
    let (reads, writes) = world.calls_since(before);
    assert!(reads <= 64 + 4 && writes <= 2, "{reads} reads and {writes} writes");
    let before = world.memory.calls();
    let error = c.slots("gpu", 64).unwrap().try_acquire().await.unwrap_err();
    assert_eq!(GroupFull::of(&error).unwrap().holders.len(), 64);
    let (reads, writes) = world.calls_since(before);
    assert!(reads <= 64 + 1 && writes == 0, "{reads} reads and {writes} writes");
}

#[tokio::test]
async fn a_contender_that_waits_in_a_full_group_of_64_makes_at_most_four_calls_per_ttl() {
    let world = without_hints();
    let a = world.process("a").await;
    let _held = fill(&a, "gpu", 64, 64).await;
    for (b, listings) in [(world.process("b").await, 2..=3), (without_stamps(&world).await, 0..=0)] {
        let before = world.memory.calls();
        let waiting = spawn(b.slots("gpu", 64).unwrap().ttl(TTL).acquire());
        eventually("it has read every slot", || world.calls_since(before).0 >= 65).await;
        world.settle().await;
        assert!(world.calls_since(before).0 <= 66);
        for _ in 0..3 {
            let before = world.memory.calls();
            world.pass(TTL).await;
            let calls = world.memory.calls() - before;
            assert!((2..=4).contains(&(calls.gets + calls.lists)), "{calls:?} in a ttl");
            assert!(listings.contains(&calls.lists), "{calls:?} in a ttl");
        }
        waiting.abort();
    }
}

#[tokio::test]
async fn a_freed_slot_is_found_at_once_by_a_hint() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let held = fill(&a, "gpu", 64, 64).await;
    let waiting = spawn(b.slots("gpu", 64).unwrap().ttl(TTL).acquire());
    world.pass(TTL / 10).await;
    held[41].release().await.unwrap();
    world.pass(Duration::from_millis(100)).await;
    assert_eq!(waiting.await.unwrap().unwrap().index(), 41);
}

#[tokio::test]
async fn a_freed_slot_is_found_by_the_next_listing_where_listings_show_stamps() {
    for slots in [4, 64] {
        let world = without_hints();
        let (a, b) = (world.process("a").await, world.process("b").await);
        let held = fill(&a, "gpu", slots, slots).await;
        let waiting = spawn(b.slots("gpu", slots).unwrap().ttl(TTL).acquire());
        world.pass(TTL).await;
        held[3].release().await.unwrap();
        world.pass(TTL * 2 / 5).await;
        assert!(waiting.is_finished(), "{slots} slots");
        assert_eq!(waiting.await.unwrap().unwrap().index(), 3);
    }
}

#[tokio::test]
async fn a_freed_slot_is_found_without_stamps_within_a_quarter_of_a_ttl_for_each_slot_and_two_more() {
    let world = without_hints();
    let (a, b) = (world.process("a").await, without_stamps(&world).await);
    let held = fill(&a, "gpu", 6, 6).await;
    let waiting = spawn(b.slots("gpu", 6).unwrap().ttl(TTL).acquire());
    world.pass(TTL).await;
    held[4].release().await.unwrap();
    world.pass(TTL * 11 / 10 * (6 + 2) / 4).await;
    assert_eq!(waiting.await.unwrap().unwrap().index(), 4);
}

// ── crashes ───────────────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn a_crashed_holder_frees_exactly_its_slot() {
    for world in [World::new(), World::with_store_clock(StoreClock::Ages), without_hints()] {
        let (a, b) = (world.process("a").await, world.process("b").await);
        let held = fill(&a, "gpu", 3, 2).await;
        let dead = a.slots("gpu", 3).unwrap().ttl(TTL).manual().try_acquire().await.unwrap();
        let index = dead.index();
        let waiting = spawn(b.slots("gpu", 3).unwrap().ttl(TTL).acquire());
        world.pass(TTL * 4).await;
        assert_eq!(waiting.await.unwrap().unwrap().index(), index);
        assert_eq!(dead.lost().await, Lost::Expired);
        assert!(held.iter().all(|slot| slot.check().is_ok()), "no other slot is touched");
    }
}

#[tokio::test]
async fn a_group_of_one_slot_behaves_as_a_lease() {
    for world in [World::new(), without_hints()] {
        let (a, b) = (world.process("a").await, world.process("b").await);
        let dead = a.slots("one", 1).unwrap().ttl(TTL).manual().acquire().await.unwrap();
        let lease = a.lease("lease").unwrap().ttl(TTL).manual().acquire().await.unwrap();
        let slot = spawn(b.slots("one", 1).unwrap().ttl(TTL).acquire());
        let waiting = spawn(b.lease("lease").unwrap().ttl(TTL).acquire());
        world.pass(TTL * 101 / 100 + TTL / 100).await;
        let (slot, waiting) = (slot.await.unwrap().unwrap(), waiting.await.unwrap().unwrap());
        assert_eq!(slot.index(), 0);
        assert!(slot.token() > dead.token() && waiting.token() > lease.token());
        let again = spawn(a.slots("one", 1).unwrap().ttl(TTL).wait(TTL * 9).acquire());
        world.pass(TTL * 10).await;
        let error = again.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Held);
        assert!(error.to_string().starts_with("the slot of one on memory: is held: slot 0 by b"), "{error}");
    }
}

#[tokio::test]
async fn dropping_an_acquire_at_any_point_leaves_no_slot_held() {
    let world = World::new();
    let a = world.process("a").await;
    drop(slot(&a, "gpu", 2).await);
    for polls in 1..12 {
        let acquired = poll_times(&world, a.slots("gpu", 2).unwrap().ttl(TTL).acquire(), polls).await;
        drop(acquired);
        world.settle().await;
        let holders = a.slot_group("gpu").unwrap().holders().await.unwrap();
        assert!(holders.is_empty(), "after {polls} polls: {holders:?}");
    }
}

#[tokio::test]
async fn a_shutdown_ends_the_wait_for_a_slot() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _held = fill(&a, "gpu", 2, 2).await;
    let waiting = spawn(b.slots("gpu", 2).unwrap().ttl(TTL).acquire());
    world.pass(TTL / 10).await;
    b.shutdown().await.unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("the coordinator is shut down"), "{error}");
    let error = b.slots("gpu", 2).unwrap().acquire().await.unwrap_err();
    assert!(error.to_string().contains("the coordinator is shut down"), "{error}");
}

// ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test]
async fn lost_answers_are_resolved_and_never_cost_a_slot() {
    let world = World::new();
    let a = world.process("a").await;
    for at in 0..6 {
        let group = format!("gpu-{at}");
        for _ in 0..at {
            world.memory.faults().next_put(PutFault::SlowAnswer(Duration::ZERO));
        }
        world.memory.faults().next_put(PutFault::LoseAnswer);
        world.memory.faults().next_get(GetFault::Fail);
        let acquired = spawn(a.slots(&group, 2).unwrap().ttl(TTL).acquire());
        world.pass(TTL).await;
        let slot = acquired.await.unwrap().unwrap();
        world.memory.faults().clear();
        assert_eq!(a.slot_group(&group).unwrap().holders().await.unwrap().len(), 1, "after put {at}");
        slot.check().unwrap();
    }
}

#[tokio::test]
async fn a_store_that_refuses_for_good_ends_the_wait_and_one_that_is_down_does_not() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let held = fill(&a, "gpu", 2, 2).await;
    let waiting = spawn(b.slots("gpu", 2).unwrap().ttl(TTL).acquire());
    world.pass(TTL / 2).await;
    world.memory.faults().every_get(Some(GetFault::Fail));
    world.pass(TTL / 2).await;
    world.memory.faults().every_get(None);
    held[0].release().await.unwrap();
    world.pass(TTL * 2).await;
    let slot = waiting.await.unwrap().unwrap();
    assert_eq!(slot.index(), 0);
    let waiting = spawn(b.slots("gpu", 2).unwrap().ttl(TTL).acquire());
    world.pass(TTL / 2).await;
    world.memory.faults().every_get(Some(GetFault::Refuse(Reason::Denied)));
    world.pass(TTL).await;
    assert_eq!(waiting.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_foreign_value_in_a_slot_is_never_overwritten_and_costs_only_that_slot() {
    let world = World::new();
    let a = world.process("a").await;
    drop(slot(&a, "gpu", 2).await);
    world.memory.overwrite(&slot_key("gpu", 0), "not a record");
    world.settle().await;
    assert_eq!(slot(&a, "gpu", 2).await.index(), 1);
    world.memory.overwrite(&slot_key("gpu", 1), "neither");
    let error = a.slots("gpu", 2).unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(world.memory.contents(&slot_key("gpu", 0)).unwrap(), "not a record");
}

#[tokio::test]
async fn foreign_values_in_all_slots_end_the_wait_with_an_error_and_cost_few_calls() {
    for slots in [1, 3] {
        let world = without_hints();
        let (a, b) = (world.process("a").await, world.process("b").await);
        let _held = fill(&a, "gpu", slots, slots).await;
        let waiting = spawn(b.slots("gpu", slots).unwrap().ttl(TTL).acquire());
        world.pass(TTL / 8).await;
        for index in 0..slots as u16 {
            world.memory.overwrite(&slot_key("gpu", index), "not a record");
        }
        let before = world.memory.calls();
        world.pass(TTL * 2).await;
        let (gets, _) = world.calls_since(before);
        assert!(waiting.is_finished() && gets < 20, "{slots} slots: {gets} reads");
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        // Nor does the next contender wait.
        let error = b.slots("gpu", slots).unwrap().ttl(TTL).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[tokio::test]
async fn a_foreign_value_as_the_size_is_an_error_and_a_deleted_size_is_stored_again() {
    let world = World::new();
    let a = world.process("a").await;
    drop(slot(&a, "gpu", 2).await);
    world.memory.overwrite(&size_key("gpu"), "not a record");
    let error = a.slots("gpu", 2).unwrap().acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(world.memory.contents(&size_key("gpu")).unwrap(), "not a record");
    world.memory.delete(&size_key("gpu"));
    drop(slot(&a, "gpu", 2).await);
    assert_eq!(a.slot_group("gpu").unwrap().size().await.unwrap(), Some(2));
}
