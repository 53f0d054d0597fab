//! Plain keys on real stores: what each call answers, what it costs, and what happens when answers are lost.

mod support;

use std::sync::Arc;
use std::time::Duration;

use tenure::store::memory::{GetFault, PutFault};
use tenure::{
    AttemptOutcome, AttemptReport, Coordinator, Creation, ErrorKind, EventReport, Holder, Key, KeyEntry,
    Keys, Logbook, Operation, Prefix, Purpose, Reason, Recorder, Replacement, Revision, record,
};
use tenure_store::StoreClock;

use support::{World, poll_times, spawn};

const TTL: Duration = Duration::from_secs(10);
/// Time after which a process that has seen an entry of this ttl knows that it has run out.
const RUN_OUT: Duration = Duration::from_millis(10_100);
const SECOND: Duration = Duration::from_secs(1);

fn key() -> Key {
    Key::parse("k").unwrap()
}

fn created(creation: Creation) -> KeyEntry {
    match creation {
        Creation::Created(entry) => entry,
        Creation::Exists(entry) => panic!("it exists: {entry:?}"),
    }
}

fn existing(creation: Creation) -> KeyEntry {
    match creation {
        Creation::Exists(entry) => entry,
        Creation::Created(entry) => panic!("it was created: {entry:?}"),
    }
}

fn updated(replacement: Replacement) -> KeyEntry {
    match replacement {
        Replacement::Updated(entry) => entry,
        other => panic!("it was not updated: {other:?}"),
    }
}

async fn create(keys: &Keys, value: &str) -> KeyEntry {
    created(keys.create_if_absent("k", value, TTL).await.unwrap())
}

#[tokio::test]
async fn each_call_costs_what_is_promised() {
    let world = World::new();
    let keys = world.process("a").await.keys();
    let before = world.memory.calls();
    let first = create(&keys, "one").await;
    assert_eq!(world.calls_since(before), (1, 2), "a read, the plant and the entry");
    let before = world.memory.calls();
    let second = updated(keys.compare_and_set("k", first.revision, "two", TTL).await.unwrap());
    assert_eq!(world.calls_since(before), (0, 1), "a warm change is exactly one write");
    let before = world.memory.calls();
    assert_eq!(keys.renew("k").await.unwrap().revision, second.revision);
    assert_eq!(world.calls_since(before), (0, 1), "so is a renewal");
    let before = world.memory.calls();
    assert_eq!(&*keys.get("k").await.unwrap().unwrap().value, "two");
    assert_eq!(world.calls_since(before), (1, 0), "a get is one read");
    let other = world.process("b").await.keys();
    let before = world.memory.calls();
    let third = updated(other.compare_and_set("k", second.revision, "three", TTL).await.unwrap());
    assert_eq!(world.calls_since(before), (1, 1), "a cold change is one read and one write");
    let before = world.memory.calls();
    other.release("k").await.unwrap();
    assert_eq!(world.calls_since(before), (0, 1));
    let before = world.memory.calls();
    let fourth = create(&other, "four").await;
    assert_eq!(world.calls_since(before), (0, 1), "it knows that the key has no entry");
    let before = world.memory.calls();
    let conflict = keys.compare_and_set("k", second.revision, "mine", TTL).await.unwrap();
    assert_eq!(conflict, Replacement::Conflict(Some(keys.get("k").await.unwrap().unwrap())));
    assert_eq!(world.calls_since(before), (2, 1), "a warm conflict is one write and one read; then the get");
    assert!(first.revision < second.revision && second.revision < third.revision);
    assert!(third.revision < fourth.revision);
}

#[tokio::test]
async fn two_coordinators_agree_on_one_creation_and_on_one_change_per_revision() {
    let world = World::new();
    let (a, b) = (world.process("a").await.keys(), world.process("b").await.keys());
    let entry = create(&a, "one").await;
    assert_eq!(existing(b.create_if_absent("k", "two", TTL).await.unwrap()).value, entry.value);
    let change = updated(b.compare_and_set("k", entry.revision, "two", TTL).await.unwrap());
    assert_eq!(change.owner.as_ref().unwrap().id().as_ref(), "b");
    let Replacement::Conflict(Some(present)) =
        a.compare_and_set("k", entry.revision, "three", TTL).await.unwrap()
    else {
        panic!("a conflict")
    };
    assert_eq!((present.revision, &*present.value), (change.revision, "two"));
    let absent = a.compare_and_set("other", entry.revision, "x", TTL).await.unwrap();
    assert_eq!(absent, Replacement::Conflict(None));
    let made = a.compare_and_set("other", Revision::ABSENT, "x", None).await.unwrap();
    assert!(matches!(made, Replacement::Created(_)), "{made:?}");
}

#[tokio::test]
async fn many_processes_increment_one_counter_and_no_increment_is_lost() {
    let world = World::new();
    let first = world.process("first").await.keys();
    created(first.create_if_absent("k", "0", None).await.unwrap());
    let mut tasks = Vec::new();
    for name in 0..8 {
        let keys = world.process(&format!("p{name}")).await.keys();
        tasks.push(spawn(async move {
            for _ in 0..10 {
                let mut entry = keys.get("k").await.unwrap().unwrap();
                loop {
                    let next = (entry.value.parse::<u32>().unwrap() + 1).to_string();
                    match keys.compare_and_set("k", entry.revision, &next, None).await.unwrap() {
                        Replacement::Conflict(Some(present)) => entry = present,
                        Replacement::Updated(_) => break,
                        other => panic!("{other:?}"),
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(&*first.get("k").await.unwrap().unwrap().value, "80");
}

#[tokio::test]
async fn owners_with_the_same_name_are_two_owners_and_one_secret_is_one_owner() {
    let world = World::new();
    let process = world.process("twin").await;
    let (a, b) = (process.keys(), process.keys());
    let entry = create(&a, "one").await;
    assert!(a.owns(&entry) && a.clone().owns(&entry) && !b.owns(&entry));
    for refused in [b.renew("k").await.unwrap_err(), b.release("k").await.unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::Lost);
        let said = refused.to_string();
        assert!(said.contains("is an entry of twin") && said.contains("only its owner renews"), "{said}");
    }
    let named = |keys: Keys| keys.owner(Holder::new("service").unwrap(), b"secret of the service");
    let here = named(process.keys());
    let elsewhere = named(world.process("other").await.keys());
    created(here.create_if_absent("s", "one", TTL).await.unwrap());
    elsewhere.renew("s").await.unwrap();
    elsewhere.release("s").await.unwrap();
    assert_eq!(here.release("s").await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn on_a_store_with_ages_every_process_knows_when_an_entry_has_run_out() {
    let world = World::with_store_clock(StoreClock::Ages);
    let a = world.process("a").await.keys();
    let entry = create(&a, "one").await;
    world.clock.advance(RUN_OUT);
    let newcomer = world.process("b").await.keys();
    assert_eq!(newcomer.get("k").await.unwrap(), None);
    let conflict = newcomer.compare_and_set("k", entry.revision, "two", TTL).await.unwrap();
    assert_eq!(conflict, Replacement::Conflict(None));
    assert_eq!(a.renew("k").await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(create(&newcomer, "two").await.revision > entry.revision);
}

#[tokio::test]
async fn on_a_store_without_ages_a_newcomer_is_told_how_long_an_entry_lasts_at_most() {
    let world = World::new();
    let entry = create(&world.process("a").await.keys(), "one").await;
    world.clock.advance(3 * RUN_OUT);
    let newcomer = world.process("b").await.keys();
    let seen = existing(newcomer.create_if_absent("k", "two", TTL).await.unwrap());
    let remaining = seen.remaining.unwrap();
    assert_eq!((remaining.at_most, remaining.judged), (RUN_OUT, false));
    world.clock.advance(RUN_OUT / 2);
    assert!(newcomer.get("k").await.unwrap().unwrap().remaining.unwrap().judged);
    world.clock.advance(RUN_OUT / 2);
    assert_eq!(newcomer.get("k").await.unwrap(), None);
    assert!(create(&newcomer, "two").await.revision > entry.revision);
}

#[tokio::test]
async fn a_creation_waits_if_asked_to_and_reads_at_most_three_times_per_ttl() {
    let world = World::new();
    create(&world.process("a").await.keys(), "one").await;
    let b = world.process("b").await.keys();
    let before = world.memory.calls();
    let waiting = b.clone().waiting(Duration::from_secs(60));
    let waits = spawn(async move { waiting.create_if_absent("k", "two", TTL).await });
    world.pass(RUN_OUT - SECOND).await;
    assert!(!waits.is_finished());
    world.pass(2 * SECOND).await;
    created(waits.await.unwrap().unwrap());
    let (reads, writes) = world.calls_since(before);
    assert!(reads <= 4 && writes == 1, "{reads} reads, {writes} writes");
    let short = world.process("c").await.keys().waiting(SECOND);
    let waits = spawn(async move { short.create_if_absent("k", "three", TTL).await });
    world.pass(2 * SECOND).await;
    assert_eq!(&*existing(waits.await.unwrap().unwrap()).value, "two");
}

#[tokio::test]
async fn a_waiting_creation_follows_a_release_at_once_where_the_store_has_hints() {
    for hints in [true, false] {
        let world = World::built(|builder| builder.declare(|guarantees| guarantees.watch = hints));
        let a = world.process("a").await.keys();
        create(&a, "one").await;
        let waiting = world.process("b").await.keys().waiting(Duration::from_secs(60));
        let waits = spawn(async move { waiting.create_if_absent("k", "two", TTL).await });
        world.settle().await;
        a.renew("k").await.unwrap();
        world.pass(SECOND / 10).await;
        assert!(!waits.is_finished(), "a renewal is no release");
        a.release("k").await.unwrap();
        world.pass(SECOND / 10).await;
        world.settle().await;
        assert_eq!(waits.is_finished(), hints);
        world.pass(TTL).await;
        created(waits.await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn an_entry_without_a_ttl_outlives_its_owner_and_any_time() {
    let world = World::new();
    let entry = created(world.process("a").await.keys().create_if_absent("k", "4", None).await.unwrap());
    assert_eq!((entry.ttl, entry.remaining), (None, None));
    let b = world.process("b").await.keys();
    b.get("k").await.unwrap();
    world.clock.advance(Duration::from_secs(1_000_000));
    assert_eq!(&*existing(b.create_if_absent("k", "8", TTL).await.unwrap()).value, "4");
    updated(b.compare_and_set("k", entry.revision, "8", None).await.unwrap());
}

#[tokio::test]
async fn revisions_grow_across_release_and_deletion() {
    let world = World::new();
    let a = world.process("a").await.keys();
    let first = create(&a, "one").await;
    a.release("k").await.unwrap();
    assert_eq!(a.get("k").await.unwrap(), None);
    let record = record::decode(&world.memory.contents(&key()).unwrap()).unwrap();
    assert_eq!((&*record.value, record.holder, record.token.get()), ("", None, first.revision.get()));
    let second = create(&a, "two").await;
    world.memory.delete(&key());
    world.clock.advance(Duration::from_millis(1));
    let third = create(&world.process("b").await.keys(), "three").await;
    assert!(first.revision < second.revision && second.revision < third.revision);
}

#[tokio::test]
async fn a_lost_answer_is_read_back_and_a_change_happens_once() {
    for fault in [
        PutFault::LoseAnswer,
        PutFault::Twice,
        PutFault::LoseRequest,
        PutFault::ThrottleAfterApplying(None),
        PutFault::Throttle(None),
    ] {
        let world = World::new();
        let keys = world.process("a").await.keys();
        let first = create(&keys, "one").await;
        world.memory.faults().next_put(fault);
        let (change, ()) = tokio::join!(
            keys.compare_and_set("k", first.revision, "two", TTL),
            world.pass(Duration::from_secs(3))
        );
        let change = updated(change.unwrap());
        let record = record::decode(&world.memory.contents(&key()).unwrap()).unwrap();
        assert_eq!((record.token.get(), record.sequence), (change.revision.get(), 2), "{fault:?}");
    }
}

#[tokio::test]
async fn a_store_that_hangs_costs_a_timeout_and_then_the_outcome_is_found_out() {
    let world = World::new();
    let keys = world.process("a").await.keys();
    let first = create(&keys, "one").await;
    world.memory.faults().next_put(PutFault::HangAfterApplying);
    let changing = keys.clone();
    let change = spawn(async move { changing.compare_and_set("k", first.revision, "two", TTL).await });
    world.pass(Duration::from_secs(6)).await;
    updated(change.await.unwrap().unwrap());
    world.memory.faults().every_get(Some(GetFault::Hang));
    let read = spawn(async move { keys.get("k").await });
    world.pass(Duration::from_secs(60)).await;
    let error = read.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn a_change_in_doubt_is_an_error_that_says_so() {
    let world = World::new();
    let keys = world.process("a").await.keys();
    let first = create(&keys, "one").await;
    world.memory.faults().every_put(Some(PutFault::Late));
    let changing = keys.clone();
    let change = spawn(async move { changing.compare_and_set("k", first.revision, "two", TTL).await });
    world.pass(Duration::from_secs(30)).await;
    let error = change.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("may have been applied, or may still be"), "{error}");
    assert_eq!(world.memory.faults().deliver_late(), 1, "one of its attempts lands, and no other");
    world.memory.faults().clear();
    assert_eq!(&*keys.get("k").await.unwrap().unwrap().value, "two");
}

#[tokio::test]
async fn a_call_that_is_dropped_at_any_point_leaves_the_entry_old_or_new_and_writes_nothing_later() {
    for polls in 0..6 {
        let world = World::new();
        let keys = world.process("a").await.keys();
        let first = create(&keys, "one").await;
        let change = keys.compare_and_set("k", first.revision, "two", TTL);
        let answer = poll_times(&world, change, polls).await;
        world.settle().await;
        let left = world.memory.contents(&key());
        world.pass(Duration::from_secs(60)).await;
        assert_eq!(world.memory.contents(&key()), left, "{polls} polls");
        let value = record::decode(&left.unwrap()).unwrap().value;
        assert!(["one", "two"].contains(&&*value) && (answer.is_none() || &*value == "two"), "{value}");
    }
}

#[tokio::test]
async fn a_waiting_creation_that_is_dropped_never_creates() {
    let world = World::new();
    create(&world.process("a").await.keys(), "one").await;
    let waiting = world.process("b").await.keys().waiting(Duration::MAX);
    assert!(poll_times(&world, waiting.create_if_absent("k", "two", TTL), 3).await.is_none());
    let left = world.memory.contents(&key());
    let before = world.memory.calls();
    world.pass(3 * RUN_OUT).await;
    assert_eq!((world.memory.contents(&key()), world.calls_since(before)), (left, (0, 0)));
}

#[tokio::test]
async fn a_change_that_is_dropped_while_it_waits_for_its_turn_to_write_is_never_sent() {
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.write_interval = SECOND));
    let keys = world.process("a").await.keys();
    assert!(poll_times(&world, keys.create_if_absent("k", "one", TTL), 2).await.is_none(), "it is planted");
    let (left, before) = (world.memory.contents(&key()), world.memory.calls());
    assert!(left.is_some());
    world.pass(Duration::from_secs(60)).await;
    assert_eq!((world.memory.contents(&key()), world.calls_since(before)), (left, (0, 0)));
}

#[tokio::test]
async fn a_listing_that_is_dropped_reads_no_further_key() {
    const KEYS: u64 = 40;
    let world = World::new();
    let keys = world.process("a").await.keys();
    for at in 0..KEYS {
        created(keys.create_if_absent(format!("k{at}"), "x", None).await.unwrap());
    }
    world.memory.faults().every_get(Some(GetFault::SlowAnswer(SECOND)));
    let before = world.memory.calls();
    assert!(poll_times(&world, keys.list(&Prefix::all()), 2).await.is_none());
    world.pass(Duration::from_secs(60)).await;
    let reads = world.calls_since(before).0;
    assert!((1..KEYS).contains(&reads), "it read {reads} of {KEYS} keys");
}

#[tokio::test]
async fn a_lease_is_refused_as_a_key_and_a_key_as_a_lease_also_when_vacant() {
    let world = World::new();
    let a = world.process("a").await;
    let keys = a.keys();
    let lease = a.lease("lease").unwrap().acquire().await.unwrap();
    let refused = async |words: &str| {
        let revision = Revision::new(7).unwrap();
        for error in [
            keys.get("lease").await.unwrap_err(),
            keys.create_if_absent("lease", "x", None).await.unwrap_err(),
            keys.compare_and_set("lease", revision, "x", None).await.unwrap_err(),
            keys.renew("lease").await.unwrap_err(),
            keys.release("lease").await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(words), "{error}");
        }
    };
    refused("is a lease of a (token").await;
    lease.check().unwrap();
    lease.release().await.unwrap();
    refused("is a lease without a holder, not a plain key").await;
    create(&keys, "one").await;
    assert_eq!(a.lease("k").unwrap().acquire().await.unwrap_err().kind(), ErrorKind::Invalid);
    keys.release("k").await.unwrap();
    assert_eq!(a.lease("k").unwrap().acquire().await.unwrap_err().kind(), ErrorKind::Invalid);
    a.lease("lease").unwrap().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn bad_input_is_invalid_and_costs_no_call() {
    let world = World::new();
    let keys = world.process("a").await.keys();
    let before = world.memory.calls();
    let invalid = |error: tenure::Error| {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        error.to_string()
    };
    for name in ["", "/", "../etc/passwd", "a\0b", "a//b", ".tenure/slots/g/size", &"k".repeat(10_240)] {
        invalid(keys.get(name).await.unwrap_err());
        invalid(keys.create_if_absent(name, "x", None).await.unwrap_err());
        invalid(keys.compare_and_set(name, Revision::ABSENT, "x", None).await.unwrap_err());
        invalid(keys.renew(name).await.unwrap_err());
        invalid(keys.release(name).await.unwrap_err());
    }
    for ttl in [Duration::ZERO, Duration::from_millis(49), Duration::from_micros(100_500), Duration::MAX] {
        invalid(keys.create_if_absent("k", "x", ttl).await.unwrap_err());
    }
    let large = "x".repeat(4097);
    let said = invalid(keys.create_if_absent("k", &large, None).await.unwrap_err());
    assert_eq!(said, "the value of key k has at most 4096 bytes, not 4097: shorten it");
    assert_eq!(Revision::new(1 << 53), None);
    for text in ["", "-1", "1.0", "9007199254740992", "seven"] {
        let said = invalid(text.parse::<Revision>().unwrap_err());
        assert!(said.ends_with("a revision is a whole number up to 9007199254740991"), "{said}");
    }
    assert_eq!(world.calls_since(before), (0, 0));
    create(&keys, &large[1..]).await;
    let worst = "\0".repeat(4096);
    let entry = keys.get("k").await.unwrap().unwrap();
    updated(keys.compare_and_set("k", entry.revision, &worst, None).await.unwrap());
    assert_eq!(&*keys.get("k").await.unwrap().unwrap().value, worst);
}

#[tokio::test]
async fn a_foreign_value_is_reported_and_not_overwritten() {
    let world = World::new();
    world.memory.overwrite(&key(), "{\"hello\":1}");
    let keys = world.process("a").await.keys();
    let error = keys.create_if_absent("k", "x", None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(world.memory.contents(&key()).unwrap(), "{\"hello\":1}");
}

#[tokio::test]
async fn a_refusal_of_the_store_is_passed_on_with_its_kind() {
    let world = World::new();
    let keys = world.process("a").await.keys();
    world.memory.faults().next_get(GetFault::Refuse(Reason::Denied));
    let error = keys.get("k").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("the store denied access, check the credentials"), "{error}");
}

#[tokio::test]
async fn a_listing_has_the_entries_and_no_leases_and_names_what_it_cannot_read() {
    let world = World::new();
    let a = world.process("a").await;
    let keys = a.keys();
    for name in ["nodes/b", "nodes/a", "nodes/released", "nodes/forever", "other"] {
        let ttl = (name != "nodes/forever").then_some(TTL);
        created(keys.create_if_absent(name, name, ttl).await.unwrap());
    }
    keys.release("nodes/released").await.unwrap();
    let _lease = a.lease("nodes/lease").unwrap().acquire().await.unwrap();
    let holders = a.holders(&Prefix::parse("nodes/").unwrap()).await.unwrap();
    let holders: Vec<_> = holders.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(holders, ["nodes/lease"], "an owner is no holder");
    world.memory.overwrite(&Key::parse("nodes/foreign").unwrap(), "hello");
    let found = keys.list(&Prefix::parse("nodes/").unwrap()).await.unwrap();
    let names: Vec<_> =
        found.iter().map(|(key, entry)| (key.as_str(), entry.as_ref().map(|it| &*it.value).ok())).collect();
    let expected = [
        ("nodes/a", Some("nodes/a")),
        ("nodes/b", Some("nodes/b")),
        ("nodes/foreign", None),
        ("nodes/forever", Some("nodes/forever")),
    ];
    assert_eq!(names, expected);
    world.clock.advance(RUN_OUT);
    let left = keys.list(&Prefix::parse("nodes/").unwrap()).await.unwrap();
    assert_eq!(left.len(), 2, "those without a ttl stay: {left:?}");
}

#[tokio::test]
async fn a_short_lived_program_counts_from_what_this_machine_saw_before() {
    let world = World::new();
    let directory =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tenure-keys-{}", std::process::id()));
    let program = async || {
        Coordinator::builder()
            .clock(Arc::new(world.clock.clone()))
            .logbook(Logbook::in_directory(directory.clone()))
            .connect(world.memory.clone())
            .await
            .unwrap()
            .keys()
    };
    create(&program().await, "one").await;
    world.clock.advance(RUN_OUT - SECOND);
    existing(program().await.create_if_absent("k", "two", TTL).await.unwrap());
    world.clock.advance(SECOND);
    created(program().await.create_if_absent("k", "two", TTL).await.unwrap());
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_store_that_accepts_one_write_per_second_gets_no_more() {
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.write_interval = SECOND));
    let keys = world.process("a").await.keys();
    let before = world.memory.calls();
    let work = spawn(async move {
        let mut entry = created(keys.create_if_absent("k", "0", None).await.unwrap());
        for value in ["1", "2"] {
            entry = updated(keys.compare_and_set("k", entry.revision, value, None).await.unwrap());
        }
    });
    for second in 1..=4 {
        world.pass(Duration::ZERO).await;
        assert!(world.calls_since(before).1 <= second, "second {second}");
        world.pass(SECOND).await;
    }
    work.await.unwrap();
}

#[tokio::test]
async fn an_owner_counts_from_when_its_write_was_sent_and_a_renewal_that_waited_too_long_is_not_sent() {
    let interval = 4 * SECOND;
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.write_interval = interval));
    let keys = world.process("a").await.keys();
    let (other, ttl) = (keys.clone(), 3 * SECOND);
    let work = spawn(async move { created(other.create_if_absent("k", "0", ttl).await.unwrap()) });
    // The plant is sent now, the creation after the interval.
    world.pass(interval).await;
    let entry = work.await.unwrap();
    assert!(entry.remaining.unwrap().at_most >= ttl);
    world.pass(ttl - SECOND).await;
    let before = world.memory.calls();
    let other = keys.clone();
    let renewal = spawn(async move { other.renew("k").await });
    // It is in time for a decision, and its turn to write comes after the ttl.
    world.pass(2 * SECOND).await;
    world.pass(SECOND).await;
    let late = renewal.await.unwrap().unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Lost, "{late}");
    assert_eq!(world.calls_since(before).1, 0, "nothing was written");
    let long = 15 * SECOND;
    let other = keys.clone();
    let work = spawn(async move { other.create_if_absent("k", "1", long).await });
    while !work.is_finished() {
        world.pass(SECOND / 4).await;
    }
    created(work.await.unwrap().unwrap());
    world.pass(long - SECOND).await;
    keys.renew("k").await.expect("the time counts from when the creation was sent");
}

#[tokio::test]
async fn forgetting_a_released_key_is_no_alarm_and_its_revisions_still_grow() {
    let world = World::new();
    world.clock.advance(Duration::from_secs(86_400));
    let a = world.process("a").await;
    let keys = a.keys();
    let first = create(&keys, "one").await;
    keys.release("k").await.unwrap();
    world.clock.advance(SECOND);
    let removed = a.forget("k", Duration::ZERO).await.unwrap();
    assert!(matches!(removed, tenure::Forgotten::Removed { .. }), "{removed:?}");
    assert_eq!(keys.get("k").await.unwrap(), None);
    assert!(create(&keys, "two").await.revision > first.revision);
}

#[test]
fn threads_without_an_executor_have_the_same_calls() {
    let keys = tenure::blocking::Coordinator::connect(tenure::store::Memory::new()).unwrap().keys();
    let entry = created(keys.create_if_absent("k", "one", TTL).unwrap());
    let entry = updated(keys.compare_and_set("k", entry.revision, "two", TTL).unwrap());
    assert!(keys.owns(&entry));
    assert_eq!(keys.list(&Prefix::all()).unwrap().len(), 1);
    keys.renew("k").unwrap();
    keys.release("k").unwrap();
    assert_eq!(keys.get("k").unwrap(), None);
}

/// Collects the calls that are reported.
#[derive(Debug, Default)]
struct Attempts(std::sync::Mutex<Vec<(Operation, AttemptOutcome)>>);

impl Recorder for Attempts {
    fn attempt(&self, report: &AttemptReport) {
        self.0.lock().unwrap().push((report.operation, report.outcome));
    }

    fn event(&self, _: &EventReport) {}
}

#[tokio::test]
async fn every_call_is_reported_to_the_recorder() {
    let recorder = Arc::new(Attempts::default());
    let memory = tenure::store::Memory::new();
    let builder = Coordinator::builder().recorder(Arc::<Attempts>::clone(&recorder));
    let keys = builder.connect(memory.clone()).await.unwrap().keys();
    let entry = create(&keys, "one").await;
    memory.faults().next_put(PutFault::LoseAnswer);
    updated(keys.compare_and_set("k", entry.revision, "two", TTL).await.unwrap());
    support::eventually("five reports", || recorder.0.lock().unwrap().len() == 5).await;
    let write = |purpose, outcome| (Operation::Write(purpose), outcome);
    let expected = [
        (Operation::Read, AttemptOutcome::Answered),
        write(Purpose::Plant, AttemptOutcome::Applied),
        write(Purpose::Grant, AttemptOutcome::Applied),
        write(Purpose::Grant, AttemptOutcome::Unknown),
        (Operation::Read, AttemptOutcome::Answered),
    ];
    assert_eq!(*recorder.0.lock().unwrap(), expected);
}

mod on_disk {
    use super::*;
    use tenure::store::File;

    /// Two processes with their own store on one directory.
    #[tokio::test]
    async fn the_file_store_reports_ages_so_that_a_newcomer_knows_at_once() {
        let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("tenure-keys-f{}", std::process::id()));
        let connect = async || Coordinator::connect(File::open(&directory).unwrap()).await.unwrap().keys();
        let ttl = Duration::from_millis(200);
        let a = connect().await;
        let entry = created(a.create_if_absent("k", "one", ttl).await.unwrap());
        let seen = existing(connect().await.create_if_absent("k", "two", ttl).await.unwrap());
        assert_eq!((seen.revision, seen.remaining.unwrap().judged), (entry.revision, true));
        support::real_pause(Duration::from_millis(250)).await;
        let newcomer = connect().await;
        assert_eq!(newcomer.get("k").await.unwrap(), None);
        assert_eq!(a.renew("k").await.unwrap_err().kind(), ErrorKind::Lost);
        let next = created(newcomer.create_if_absent("k", "two", None).await.unwrap());
        assert!(next.revision > entry.revision);
        let change = updated(a.compare_and_set("k", next.revision, "three", None).await.unwrap());
        assert_eq!(newcomer.get("k").await.unwrap().unwrap().revision, change.revision);
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[tokio::test]
async fn a_plain_key_is_not_changed_on_a_store_that_may_forget_and_a_slot_is_granted_there() {
    let world = World::built(|builder| {
        builder.declare(|guarantees| {
            (guarantees.keeps_acknowledged, guarantees.quarantine) = (false, true);
            guarantees.ttl_max = Some(Duration::from_secs(60));
        })
    });
    let a = world.process("a").await;
    let before = world.memory.calls();
    let keys = a.keys();
    for refused in [
        keys.create_if_absent("k", "one", TTL).await.map(drop),
        keys.compare_and_set("k", Revision::ABSENT, "one", None).await.map(drop),
        keys.renew("k").await.map(drop),
        keys.release("k").await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(
            error.to_string().contains("may lose acknowledged writes when its server restarts"),
            "{error}"
        );
    }
    assert_eq!(world.calls_since(before), (0, 0), "nothing is sent");
    assert_eq!(keys.get("k").await.unwrap(), None, "a read changes nothing");
    drop(a.slots("group", 2).unwrap().acquire().await.unwrap());
    let error = a.lease("l").unwrap().ttl(Duration::from_secs(61)).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}
