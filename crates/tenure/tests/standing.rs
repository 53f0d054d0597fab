//! The standing of a key for an observer.

mod support;

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{Instant, WallTime};
use tenure::store::memory::GetFault;
use tenure::{ErrorKind, Key, Prefix, Remaining, Standing, record};
use tenure_core::machine::{Content, Look, ObservedRead, Observer, Sighting};
use tenure_store::{Store, StoreClock, Version};

use support::World;

const TTL: Duration = Duration::from_secs(10);

/// Time that a contender waits for a ttl of ten seconds.
const WHOLE: Duration = Duration::from_millis(10_100);

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../tenure-core/tests/fixtures/records/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

#[tokio::test]
async fn on_a_store_with_ages_the_first_read_subtracts_the_elapsed_time() {
    let world = World::with_store_clock(StoreClock::Ages);
    // No keeper vacates the term of a handle.
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire_handle().await.unwrap();
    world.clock.advance(Duration::from_secs(4));
    let b = world.process("b").await;
    let seen = b.observe("k").await.unwrap();
    let remaining = Remaining::new(WHOLE - Duration::from_secs(4), true);
    assert_eq!(seen.standing, Standing::Held(remaining));
    assert_eq!(seen.record.unwrap().token, lease.token());
    assert!(!seen.standing.is_free() && seen.standing.is_held());
    world.clock.advance(remaining.at_most);
    assert_eq!(b.observe("k").await.unwrap().standing, Standing::RanOut);
    assert!(Standing::RanOut.is_free());
}

#[tokio::test]
async fn on_a_store_without_ages_the_first_read_cannot_judge_and_the_next_counts_from_it() {
    let world = World::new();
    let _lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire_handle().await.unwrap();
    world.clock.advance(Duration::from_secs(4));
    let b = world.process("b").await;
    let first = b.observe("k").await.unwrap().standing;
    assert_eq!(first, Standing::Held(Remaining::new(WHOLE, false)));
    world.clock.advance(Duration::from_secs(1));
    let second = b.observe("k").await.unwrap().standing;
    assert_eq!(second, Standing::Held(Remaining::new(WHOLE - Duration::from_secs(1), true)));
    world.clock.advance(WHOLE - Duration::from_secs(1));
    assert_eq!(b.observe("k").await.unwrap().standing, Standing::RanOut);
}

#[tokio::test]
async fn a_renewal_is_another_version_and_restarts_the_count() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    let b = world.process("b").await;
    b.observe("k").await.unwrap();
    world.clock.advance(Duration::from_secs(3));
    lease.renew().await.unwrap();
    let seen = b.observe("k").await.unwrap().standing;
    assert_eq!(seen, Standing::Held(Remaining::new(WHOLE, false)));
}

#[tokio::test]
async fn every_state_of_a_record_has_its_standing() {
    let world = World::new();
    for name in ["reserved", "closed", "revoked", "vacant", "key", "key-released"] {
        world.memory.overwrite(&key(name), fixture(name));
    }
    world.memory.overwrite(&key("foreign"), "{}");
    let a = world.process("a").await;
    let left = Remaining::new(Duration::from_millis(15_150), false);
    let standing = async |name: &str| a.observe(name).await.unwrap().standing;
    assert_eq!(standing("reserved").await, Standing::Reserved(left));
    assert_eq!(standing("revoked").await, Standing::Revoked(left));
    assert_eq!(standing("closed").await, Standing::Closed);
    assert_eq!(standing("vacant").await, Standing::Vacant);
    assert_eq!(standing("nothing").await, Standing::Absent);
    assert_eq!(standing("key").await, Standing::PlainKey);
    assert_eq!(standing("key-released").await, Standing::PlainKey);
    assert!(!Standing::PlainKey.is_free() && !Standing::PlainKey.is_held(), "it is no lease");
    assert!(matches!(standing("foreign").await, Standing::Foreign(what) if what.contains("another program")));
    assert!(!Standing::Closed.is_free(), "a closed key is never granted");
    world.clock.advance(left.at_most);
    assert_eq!(standing("reserved").await, Standing::RanOut);
    assert_eq!(standing("revoked").await, Standing::RanOut);
}

#[tokio::test]
async fn a_listing_has_every_key_in_order_and_an_error_concerns_only_its_key() {
    let world = World::with_store_clock(StoreClock::Ages);
    let a = world.process("a").await;
    let held = a.lease("jobs/b").unwrap().ttl(TTL).acquire().await.unwrap();
    a.lease("jobs/a").unwrap().acquire().await.unwrap().release().await.unwrap();
    world.memory.overwrite(&key("jobs/c"), "foreign");
    world.memory.overwrite(&key("other"), "foreign");
    world.memory.overwrite(&Key::scratch(), "ours alone");
    let all = a.observe_all(&Prefix::parse("jobs").unwrap()).await.unwrap();
    let names: Vec<_> = all.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(names, ["jobs/a", "jobs/b", "jobs/c"]);
    let standings: Vec<_> = all.iter().map(|(_, seen)| &seen.as_ref().unwrap().standing).collect();
    assert!(
        matches!(standings[..], [Standing::Vacant, Standing::Held(_), Standing::Foreign(_)]),
        "{standings:?}"
    );
    world.memory.faults().next_get(GetFault::Fail);
    let all = a.observe_all(&Prefix::all()).await.unwrap();
    let failed: Vec<_> = all.iter().filter_map(|(key, seen)| Some((key, seen.as_ref().err()?))).collect();
    assert_eq!((all.len(), failed.len()), (4, 1), "{all:?}");
    assert_eq!(failed[0].1.kind(), ErrorKind::Unavailable);
    assert!(failed[0].1.to_string().contains(failed[0].0.as_str()));
    drop(held);
}

#[tokio::test]
async fn a_listing_reads_each_key_once() {
    let world = World::new();
    let a = world.process("a").await;
    for number in 0..500 {
        world.memory.overwrite(&key(&format!("k{number}")), fixture("vacant"));
    }
    let before = world.memory.calls();
    assert_eq!(a.observe_all(&Prefix::all()).await.unwrap().len(), 500);
    assert_eq!(world.calls_since(before), (500, 0));
}

#[test]
fn a_holder_whose_witness_is_free_is_dead_and_any_doubt_keeps_it_alive() {
    let record = Arc::new(record::decode(&fixture("revoked")).unwrap());
    let content = Content::Record(Arc::clone(&record), Version::new("1"));
    let read = ObservedRead {
        look: Look { content, age: None, time: None },
        clock: StoreClock::Nothing,
        sent: Instant::default(),
        returned: Instant::default(),
        wall: WallTime::default(),
    };
    let gone = Sighting {
        found: true,
        same_file: true,
        guards_locked: false,
        tree_locked: false,
        lists_nonce: true,
    };
    assert_eq!(Observer::new().judge(&read, gone), Some(Standing::Dead));
    let doubts = [
        Sighting { found: false, ..gone },
        Sighting { same_file: false, ..gone },
        Sighting { guards_locked: true, ..gone },
        Sighting { tree_locked: true, ..gone },
        Sighting { lists_nonce: false, ..gone },
    ];
    for doubt in doubts {
        let standing = Observer::new().judge(&read, doubt).unwrap();
        assert!(matches!(standing, Standing::Revoked(_)), "{doubt:?}: {standing:?}");
    }
}

#[tokio::test]
async fn a_shared_store_of_an_erased_type_behaves_like_the_store() {
    let world = World::new();
    let shared: Arc<dyn Store> = Arc::new(world.memory.clone());
    assert_eq!(shared.guarantees(), world.memory.guarantees());
    assert_eq!(Store::guarantees(&shared), world.memory.guarantees());
    assert_eq!(Store::identity(&shared), world.memory.identity());
    assert!(Store::watch(&shared, &Prefix::all()).is_some(), "the default would hide it");
    let a = tenure::Coordinator::connect(shared).await.unwrap();
    a.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    assert_eq!(a.observe("k").await.unwrap().standing, Standing::Vacant);
}
