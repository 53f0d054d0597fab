//! Forgetting removes the records of unused leases, but tokens still grow.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure::clock::{Clock, WallTime};
use tenure::{
    AttemptReport, ErrorKind, Event, EventReport, Forgotten, Key, Prefix, Recorder, WhyKept, record,
};
use tenure_store::StoreClock;

use support::World;

const TTL: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../tenure-core/tests/fixtures/records/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

/// A world in the year of the fixtures, a month after they were written.
fn a_month_later() -> World {
    let world = World::new();
    let written = record::decode(&fixture("vacant")).unwrap().written_at;
    world.clock.set_wall(WallTime::from_millis(written.as_millis() + 30 * 86_400_000));
    world
}

#[tokio::test]
async fn a_vacant_record_is_removed_and_the_next_token_is_greater_with_and_without_memory_of_it() {
    let world = a_month_later();
    let a = world.process("a").await;
    let mut latest = None;
    for round in 0..3 {
        let coordinator = if round == 1 { world.process("b").await } else { a.clone() };
        let lease = coordinator.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        let token = lease.token();
        assert!(Some(token) > latest, "round {round}: {token} after {latest:?}");
        latest = Some(token);
        lease.release().await.unwrap();
        world.clock.advance(Duration::from_millis(1) + DAY);
        assert_eq!(
            a.forget("k", 2 * DAY).await.unwrap(),
            Forgotten::Kept(WhyKept::TooYoung { vacant_for: DAY + Duration::from_millis(1) })
        );
        let removed = Forgotten::Removed { token, vacant_for: DAY + Duration::from_millis(1) };
        assert_eq!(a.would_forget("k", DAY).await.unwrap(), removed);
        assert!(world.memory.contents(&key("k")).is_some(), "to look removes nothing");
        assert_eq!(a.forget("k", DAY).await.unwrap(), removed);
        assert_eq!(world.memory.contents(&key("k")), None);
        assert_eq!(a.forget("k", DAY).await.unwrap(), Forgotten::Absent);
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_sets_no_token_back() {
    let world = a_month_later();
    let mut latest = None;
    for round in 0..3 {
        let coordinator = world.process("another one each time").await;
        let lease = coordinator.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        assert!(Some(lease.token()) > latest, "round {round}: {} after {latest:?}", lease.token());
        latest = Some(lease.token());
        lease.release().await.unwrap();
        // The store's time counts writes until the clock catches up.
        world.clock.set_wall(WallTime::from_millis(world.clock.wall().as_millis() - 3_600_000));
        let removed = coordinator.forget("k", Duration::ZERO).await.unwrap();
        assert!(matches!(removed, Forgotten::Removed { .. }), "{removed:?}");
    }
}

#[tokio::test]
async fn a_record_that_is_not_vacant_is_kept_with_a_reason() {
    let world = a_month_later();
    let a = world.process("a").await;
    for name in
        ["reserved", "closed", "revoked", "unknown-fields", "vacant", "planted", "key", "key-released"]
    {
        world.memory.overwrite(&key(name), fixture(name));
    }
    world.memory.overwrite(&key("foreign"), "{\"hello\":1}");
    // No keeper vacates the term of a handle.
    let _held = a.lease("held").unwrap().ttl(TTL).acquire_handle().await.unwrap();
    let all = a.list(&Prefix::all()).await.unwrap();
    let mut kept = Vec::new();
    for name in &all {
        let forgotten = a.forget(name.as_str(), Duration::ZERO).await.unwrap();
        match forgotten {
            Forgotten::Kept(why) => kept.push((name.as_str(), why)),
            Forgotten::Removed { .. } => {
                assert!(["vacant", "planted", "key-released"].contains(&name.as_str()), "{name}")
            }
            Forgotten::Absent => panic!("{name}"),
        }
    }
    let why = |name| &kept.iter().find(|(kept, _)| *kept == name).unwrap_or_else(|| panic!("{name}")).1;
    assert_eq!(*why("held"), WhyKept::Held);
    assert_eq!(*why("reserved"), WhyKept::Reserved);
    assert_eq!(*why("revoked"), WhyKept::Revoked);
    assert_eq!(*why("closed"), WhyKept::Closed);
    assert_eq!(*why("key"), WhyKept::PlainKey);
    for name in ["foreign", "unknown-fields"] {
        assert!(matches!(why(name), WhyKept::Foreign(_)), "{:?}", why(name));
    }
    world.clock.advance(2 * TTL);
    assert_eq!(a.forget("held", Duration::ZERO).await.unwrap(), Forgotten::Kept(WhyKept::NotReleased));
    assert_eq!(a.list(&Prefix::all()).await.unwrap().len(), 7);
}

/// Such a record comes from a clock that was wrong, or from another store.
#[tokio::test]
async fn a_record_whose_token_is_ahead_of_the_stores_time_is_kept() {
    let world = a_month_later();
    let mut record = record::decode(&fixture("vacant")).unwrap();
    let now = world.clock.wall().as_millis() * 1_000;
    record.token = tenure::Token::new(now + 1_000_000).unwrap();
    world.memory.overwrite(&key("k"), record::encode(&record));
    let a = world.process("a").await;
    let kept = Forgotten::Kept(WhyKept::AheadOfClock { token: record.token });
    assert_eq!(a.forget("k", Duration::ZERO).await.unwrap(), kept);
    world.clock.advance(Duration::from_secs(2));
    assert!(matches!(a.forget("k", Duration::ZERO).await.unwrap(), Forgotten::Removed { .. }));
}

#[tokio::test]
async fn a_store_whose_clock_was_never_set_forgets_nothing() {
    let world = World::new();
    world.clock.set_wall(WallTime::from_millis(86_400_000));
    let a = world.process("a").await;
    a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap().release().await.unwrap();
    let kept = a.forget("k", Duration::ZERO).await.unwrap();
    assert!(matches!(kept, Forgotten::Kept(WhyKept::AheadOfClock { .. })), "{kept:?}");
}

#[tokio::test]
async fn a_store_without_a_clock_is_refused_with_a_message() {
    let world = World::with_store_clock(StoreClock::Nothing);
    let a = world.process("a").await;
    a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap().release().await.unwrap();
    let error = a.forget("k", Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "leases on memory: cannot be forgotten: it has no clock that gives a floor for tokens, so a lease that is \
         created again would reuse earlier tokens. Keep the records: they are small"
    );
    assert!(world.memory.contents(&key("k")).is_some());
}

#[tokio::test]
async fn a_store_that_cannot_remove_is_refused_with_a_message() {
    let world = World::new();
    let odd = support::odd::Odd::new(&world.memory);
    let a = tenure::Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(odd).await.unwrap();
    let error = a.would_forget("k", Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "leases on odd: cannot be forgotten: this kind of store cannot remove a record. Keep the records: they are \
         small"
    );
}

/// Counts the reports that a token has gone back.
#[derive(Debug, Default)]
struct Alarms(AtomicUsize);

impl Recorder for Alarms {
    fn attempt(&self, _: &AttemptReport) {}

    fn event(&self, report: &EventReport) {
        if let Event::WentBack { .. } = report.event {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        if let Event::Left(_) | Event::Denied(_) = report.event {
            self.0.fetch_add(ENDED, Ordering::SeqCst);
        }
    }
}

/// Reports arrive in order: after the report of an end, all earlier ones have arrived.
const ENDED: usize = 1_000;

/// A long-running process, and the alarms that it reports.
async fn watched(world: &World) -> (tenure::Coordinator, Arc<Alarms>) {
    let alarms = Arc::new(Alarms::default());
    let builder = tenure::Coordinator::builder().clock(Arc::new(world.clock.clone()));
    let builder = builder.recorder(Arc::clone(&alarms) as Arc<dyn Recorder>);
    (builder.connect(world.memory.clone()).await.unwrap(), alarms)
}

/// Number of alarms, after this many leases have ended.
async fn alarms(alarms: &Alarms, ended: usize) -> usize {
    support::eventually("the end is reported", || alarms.0.load(Ordering::SeqCst) / ENDED >= ended).await;
    alarms.0.load(Ordering::SeqCst) % ENDED
}

#[tokio::test]
async fn a_forgotten_lease_is_no_alarm_for_a_process_that_saw_it_vacant() {
    let world = a_month_later();
    let (stays, told) = watched(&world).await;
    for round in 1..=3 {
        let first = stays.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        first.release().await.unwrap();
        world.clock.advance(DAY);
        // By another process, and by itself.
        let other = if round == 2 { stays.clone() } else { world.process("b").await };
        assert!(matches!(other.forget("k", DAY).await.unwrap(), Forgotten::Removed { .. }));
        // In the rounds without a read of its own, its last observation is still fresh. So the test covers both paths.
        let next = stays.lease("k").unwrap().ttl(2 * DAY / 3).acquire().await.unwrap();
        assert!(next.token() > first.token());
        next.release().await.unwrap();
        assert_eq!(alarms(&told, 2 * round).await, 0, "round {round}");
    }
}

#[tokio::test]
async fn a_forgotten_lease_is_no_alarm_for_a_process_that_saw_it_held_long_ago() {
    let world = a_month_later();
    let (stays, told) = watched(&world).await;
    let held = world.process("b").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    assert!(stays.lease("k").unwrap().try_acquire().await.is_err());
    held.release().await.unwrap();
    world.clock.advance(DAY);
    assert!(matches!(world.process("c").await.forget("k", DAY).await.unwrap(), Forgotten::Removed { .. }));
    let next = stays.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    assert!(next.token() > held.token());
    next.release().await.unwrap();
    assert_eq!(alarms(&told, 2).await, 0);
}

#[tokio::test]
async fn a_record_that_vanishes_while_it_may_be_held_or_goes_back_is_an_alarm() {
    let world = a_month_later();
    let (stays, told) = watched(&world).await;
    let held = world.process("b").await.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    assert!(stays.lease("k").unwrap().try_acquire().await.is_err());
    world.clock.advance(TTL / 2);
    world.memory.delete(&key("k"));
    let next = stays.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    assert!(next.token() > held.token());
    next.release().await.unwrap();
    let first = alarms(&told, 2).await;
    assert!(first >= 1, "another process may have held it");

    let early = world.memory.snapshot();
    world.clock.advance(Duration::from_secs(1));
    let later = stays.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    later.release().await.unwrap();
    world.clock.advance(Duration::from_secs(1));
    world.memory.restore(&early);
    stays.lease("k").unwrap().ttl(TTL).acquire().await.unwrap().release().await.unwrap();
    assert!(alarms(&told, 4).await > first, "an earlier record is back");
}

#[tokio::test]
async fn on_a_store_without_a_clock_a_record_that_vanishes_is_an_alarm() {
    let world = World::with_store_clock(StoreClock::Nothing);
    let (stays, told) = watched(&world).await;
    stays.lease("k").unwrap().ttl(TTL).acquire().await.unwrap().release().await.unwrap();
    world.memory.delete(&key("k"));
    let error = stays.lease("k").unwrap().ttl(TTL).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(alarms(&told, 2).await >= 1);
}
