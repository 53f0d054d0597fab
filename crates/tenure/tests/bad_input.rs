//! Bad input returns an error of a documented kind with an explanation, and overwrites nothing.

mod support;

use std::time::Duration;

use bytes::Bytes;
use tenure::record::{self, Record, State};
use tenure::store::memory::{GetFault, PutFault};
use tenure::{Coordinator, Error, ErrorKind, Key, Token};
use tenure_store::{Reach, Reason, StoreClock};

use support::World;

fn key() -> Key {
    Key::parse("k").unwrap()
}

async fn refused_on(world: &World) -> Error {
    world.process("a").await.lease("k").unwrap().wait(Duration::from_secs(60)).acquire().await.unwrap_err()
}

#[tokio::test]
async fn hostile_keys_are_invalid() {
    let a = World::new().process("a").await;
    let long = "k".repeat(10_240);
    for name in ["", "/", "../etc/passwd", "a/../b", "a\0b", "a/", "a//b", ".", ".tenure/scratch", &long] {
        assert_eq!(a.lease(name).unwrap_err().kind(), ErrorKind::Invalid, "{name:?}");
        assert_eq!(a.record(name).await.unwrap_err().kind(), ErrorKind::Invalid, "{name:?}");
    }
    assert!(a.lease("键/ключ").is_ok());
}

#[tokio::test]
async fn absurd_durations_are_invalid_and_cost_no_call() {
    let world = World::new();
    let a = world.process("a").await;
    let before = world.memory.calls();
    for ttl in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(49), Duration::MAX] {
        assert_eq!(
            a.lease("k").unwrap().ttl(ttl).acquire().await.unwrap_err().kind(),
            ErrorKind::Invalid,
            "{ttl:?}"
        );
    }
    assert_eq!(world.calls_since(before), (0, 0));
}

#[tokio::test]
async fn a_wait_of_zero_and_an_endless_wait_are_both_valid() {
    let world = World::new();
    let _held = world.process("a").await.lease("k").unwrap().acquire().await.unwrap();
    let b = world.process("b").await;
    let none = b.lease("k").unwrap().wait(Duration::ZERO).acquire().await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Held, "{none}");
    assert!(b.lease("free at once").unwrap().wait(Duration::ZERO).acquire().await.is_ok());
    let free = b.lease("free").unwrap().wait(Duration::MAX).acquire().await;
    assert!(free.is_ok());
}

#[tokio::test]
async fn values_and_reasons_beyond_their_limits_are_invalid() {
    let a = World::new().process("a").await;
    let request = || a.lease("k").unwrap();
    let long = "v".repeat(Record::VALUE_MAX + 1);
    let error = request().value(&long).acquire().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Invalid, "the value of lease k has at most 4096 bytes, not 4097".into())
    );
    for reason in ["", "  ", "two\nlines", &"r".repeat(201)] {
        assert_eq!(
            request().revoke(reason).acquire().await.unwrap_err().kind(),
            ErrorKind::Invalid,
            "{reason:?}"
        );
    }
    let error = request().revoke("maintenance").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    for id in ["", "a\0b", &"h".repeat(201)] {
        assert_eq!(Error::from(tenure::Holder::new(id).unwrap_err()).kind(), ErrorKind::Invalid, "{id:?}");
    }
    // The longest value, of the characters with the longest encoding, still fits into a record.
    let worst = "\u{1}".repeat(Record::VALUE_MAX);
    let lease = request().value(&worst).acquire().await.unwrap();
    assert_eq!(*a.record("k").await.unwrap().unwrap().value, *worst);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_value_that_is_not_a_tenure_record_is_corrupt_and_never_overwritten() {
    let world = World::new();
    world.process("x").await.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    let ours = world.memory.contents(&key()).unwrap();
    let text = String::from_utf8(ours.to_vec()).unwrap();
    let foreign: [(&str, Bytes); 9] = [
        ("truncated", ours.slice(..ours.len() - 2)),
        ("empty", Bytes::new()),
        ("binary", Bytes::from_static(&[0xff, 0, 0x80, 7])),
        ("huge", Bytes::from(vec![b' '; 1 << 20])),
        ("of another program", Bytes::from_static(b"{\"owner\":\"another\",\"until\":1234}")),
        ("of a newer version", Bytes::from(text.replacen("\"tenure\":1", "\"tenure\":2", 1))),
        (
            "with an unknown feature",
            Bytes::from(text.replacen("\"tenure\":1", "\"tenure\":1,\"crit\":[\"quorum\"]", 1)),
        ),
        ("with a token beyond its range", Bytes::from(text.replace("\"token\":", "\"token\":9"))),
        ("deeply nested", Bytes::from("[".repeat(100_000))),
    ];
    for (what, bytes) in foreign {
        world.memory.overwrite(&key(), bytes.clone());
        let error = refused_on(&world).await;
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        assert!(
            error
                .to_string()
                .starts_with("lease k on memory: has a value that this version does not overwrite"),
            "{error}"
        );
        assert!(error.to_string().len() < 400, "{what}: {error}");
        assert_eq!(world.memory.contents(&key()), Some(bytes), "{what}: nothing was overwritten");
        assert_eq!(
            world.process("b").await.record("k").await.unwrap_err().kind(),
            ErrorKind::Corrupt,
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_holder_whose_record_is_replaced_by_a_foreign_value_stops_and_does_not_overwrite_it() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().acquire().await.unwrap();
    world.memory.overwrite(&key(), "foreign");
    let (lost, ()) = tokio::join!(lease.lost(), world.pass(Duration::from_secs(15)));
    assert!(matches!(lost, tenure::Lost::Replaced { .. }), "{lost}");
    assert_eq!(world.memory.contents(&key()).unwrap(), "foreign");
}

#[tokio::test]
async fn a_token_at_the_top_of_its_range_allows_no_further_grant() {
    let world = World::with_store_clock(StoreClock::Nothing);
    world.process("x").await.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    let mut record = record::decode(&world.memory.contents(&key()).unwrap()).unwrap();
    record.token = Token::MAX;
    world.memory.overwrite(&key(), record::encode(&record));
    let error = refused_on(&world).await;
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("top of its token range"), "{error}");
    assert_eq!(record::decode(&world.memory.contents(&key()).unwrap()).unwrap(), record);
}

#[tokio::test]
async fn a_store_time_of_1970_or_9999_is_ignored_rather_than_believed() {
    for millis in [0, 1_000, 253_402_300_799_000] {
        let world = World::with_store_clock(StoreClock::Floors);
        world.clock.set_wall(tenure::clock::WallTime::from_millis(millis));
        let lease = world.process("a").await.lease("k").unwrap().acquire().await.unwrap();
        assert_eq!(lease.token().get(), 1, "wall clock {millis}");
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn wrong_credentials_and_a_missing_store_fail_an_acquire_at_once() {
    let world = World::new();
    for (reason, kind) in [
        (Reason::Denied, ErrorKind::Unavailable),
        (Reason::Unsupported, ErrorKind::Unsupported),
        (Reason::Missing, ErrorKind::Misconfigured),
    ] {
        world.memory.faults().next_get(GetFault::Refuse(reason));
        let error = refused_on(&world).await;
        assert_eq!(error.kind(), kind, "{error}");
        assert!(std::error::Error::source(&error).is_some(), "what the store said is kept");
        world.memory.faults().next_get(GetFault::Refuse(reason));
        assert_eq!(
            world.process("b").await.record("k").await.unwrap_err().kind(),
            kind,
            "an observer gets the same error"
        );
    }
}

/// A networked store, and a process that is connected to it.
async fn networked() -> (World, Coordinator) {
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.reach = Reach::Network));
    let coordinator = world.process("a").await;
    (world, coordinator)
}

#[tokio::test]
async fn a_waiting_acquire_survives_denied_answers_while_credentials_are_rotated() {
    for denials in 1..=6 {
        let (world, a) = networked().await;
        for _ in 0..denials {
            world.memory.faults().next_get(GetFault::Refuse(Reason::Denied));
        }
        let (granted, ()) =
            tokio::join!(a.lease("k").unwrap().acquire(), world.pass(Duration::from_secs(64)));
        drop(granted.unwrap_or_else(|error| panic!("{denials}: {error}")));

        // A write is denied after a read that was allowed.
        let (world, a) = networked().await;
        world.memory.faults().next_put(PutFault::Refuse(Reason::Denied));
        let (granted, ()) = tokio::join!(a.lease("k").unwrap().acquire(), world.pass(Duration::from_secs(2)));
        drop(granted.unwrap());
    }
}

#[tokio::test]
async fn credentials_that_stay_wrong_end_a_waiting_acquire_within_a_minute() {
    let (world, a) = networked().await;
    world.memory.faults().every_get(Some(GetFault::Refuse(Reason::Denied)));
    let (refused, ()) = tokio::join!(a.lease("k").unwrap().acquire(), world.pass(Duration::from_secs(64)));
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().ends_with("the store denied access, check the credentials"), "{error}");
    let once = a.lease("k").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(once.to_string(), error.to_string(), "at once, without a wait");
}

#[tokio::test]
async fn a_store_that_forgets_to_declare_a_guarantee_is_refused_by_name() {
    let world =
        World::built(|builder| builder.name("shy").declare(|guarantees| guarantees.atomic_replace = false));
    let error = Coordinator::connect(world.memory).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("memory:shy") && text.contains("atomic replace"), "{text}");
}

#[tokio::test]
async fn a_closed_key_is_never_granted_and_a_reserved_one_only_to_its_successor() {
    let world = World::new();
    world.process("x").await.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    let vacant = record::decode(&world.memory.contents(&key()).unwrap()).unwrap();
    let mut reserved = vacant.clone();
    reserved.state = State::Reserved("heir".into());
    world.memory.overwrite(&key(), record::encode(&reserved));
    let other = world.process("other").await.lease("k").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Held, "{other}");
    assert!(other.to_string().contains("is reserved for heir"), "{other}");
    world.process("heir").await.lease("k").unwrap().try_acquire().await.unwrap().release().await.unwrap();
    let mut closed = vacant;
    closed.state = State::Closed(record::Closure::new("ops", "moved to another key").into());
    world.memory.overwrite(&key(), record::encode(&closed));
    let error = refused_on(&world).await;
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("was closed by ops"), "{error}");
}

#[tokio::test]
async fn a_plain_key_is_never_taken_for_a_lease_with_an_entry_or_without() {
    for (name, words) in [
        ("key", "is a plain key of host-a (revision 1794720600250000), not a lease: use another name"),
        (
            "key-without-ttl",
            "is a plain key of host-a (revision 1794720600250000), not a lease: use another name",
        ),
        ("key-released", "is a plain key without an entry, not a lease: use another name"),
        ("key-planted", "is a plain key without an entry, not a lease: use another name"),
    ] {
        let world = World::new();
        let path =
            format!("{}/../tenure-core/tests/fixtures/records/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read(path).unwrap();
        world.memory.overwrite(&key(), text.clone());
        let a = world.process("a").await;
        world.clock.advance(Duration::from_secs(3600));
        let before = world.memory.calls();
        for error in [
            a.lease("k").unwrap().wait(Duration::from_secs(60)).acquire().await.unwrap_err(),
            a.lease("k").unwrap().revoke("mine").acquire().await.unwrap_err(),
            a.lease("k").unwrap().take_now("mine").acquire().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.to_string().ends_with(words), "{error}");
        }
        assert_eq!(world.calls_since(before), (3, 0), "each acquire reads once");
        assert_eq!(world.memory.contents(&key()), Some(Bytes::from(text)), "{name}: nothing was overwritten");
    }
}
