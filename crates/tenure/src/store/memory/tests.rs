use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use tenure_store::{
    Applied, Conflict, Expect, Key, Prefix, Put, Reach, Reason, Store, StoreClock, StoreError, StoreTime,
    Version,
};

use super::{Calls, GetFault, Memory, PutFault};
use crate::clock::{Clock, ManualClock, WallTime};

const SECOND: Duration = Duration::from_secs(1);
const CONFLICT: Put = Put::Conflict(Conflict);

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

/// A store on a clock that the test moves.
fn on_manual_clock() -> (Memory, ManualClock) {
    let clock = ManualClock::new();
    (Memory::builder().clock(Arc::new(clock.clone())).build(), clock)
}

/// Writes, and asserts that the store applied the write.
async fn write(memory: &Memory, key: &Key, value: &'static str, expect: Expect) -> Version {
    match memory.put(key, value.into(), expect).await {
        Ok(Put::Applied(Applied { version, .. })) => version,
        other => panic!("{other:?}"),
    }
}

async fn create(memory: &Memory, key: &Key, value: &'static str) -> Version {
    write(memory, key, value, Expect::Absent).await
}

fn is_unknown<T>(answer: Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unknown(_)))
}

mod contract {
    use super::*;

    #[tokio::test]
    async fn a_written_value_is_read_with_its_version() {
        let memory = Memory::new();
        let key = key("a");
        assert_eq!(memory.get(&key).await.unwrap().entry, None);
        let version = create(&memory, &key, "one").await;
        let entry = memory.get(&key).await.unwrap().entry.unwrap();
        assert_eq!((entry.value, entry.version), ("one".into(), version));
    }

    #[tokio::test]
    async fn a_write_is_applied_only_if_the_entry_is_as_expected() {
        let memory = Memory::new();
        let key = key("a");
        let gone = Expect::Version(Version::new("1"));
        assert_eq!(
            memory.put(&key, "x".into(), gone).await.unwrap(),
            CONFLICT,
            "replacing what is not there"
        );
        let first = create(&memory, &key, "one").await;
        assert_eq!(memory.put(&key, "x".into(), Expect::Absent).await.unwrap(), CONFLICT);
        let second = write(&memory, &key, "two", Expect::Version(first.clone())).await;
        assert_ne!(first, second);
        assert_eq!(memory.put(&key, "x".into(), Expect::Version(first)).await.unwrap(), CONFLICT);
        let impossible = Expect::Version(memory.identity().impossible_version);
        assert_eq!(memory.put(&key, "x".into(), impossible).await.unwrap(), CONFLICT);
        assert_eq!(memory.contents(&key).unwrap(), "two");
    }

    #[tokio::test]
    async fn equal_bytes_get_different_versions() {
        let memory = Memory::new();
        let first = create(&memory, &key("a"), "same").await;
        let second = write(&memory, &key("a"), "same", Expect::Version(first.clone())).await;
        let other = create(&memory, &key("b"), "same").await;
        assert!(first != second && second != other && first != other);
    }

    #[tokio::test]
    async fn a_version_is_never_reused_even_after_deletion_or_restore() {
        let memory = Memory::new();
        let key = key("a");
        let first = create(&memory, &key, "one").await;
        let backup = memory.snapshot();
        assert!(memory.delete(&key));
        let second = create(&memory, &key, "two").await;
        memory.restore(&backup);
        let third = write(&memory, &key, "three", Expect::Version(first.clone())).await;
        assert!(first != second && second != third && first != third);
    }

    #[tokio::test]
    async fn nothing_happens_until_a_future_is_polled() {
        let memory = Memory::new();
        let (key, all) = (key("a"), Prefix::all());
        memory.faults().next_put(PutFault::LoseRequest);
        drop(memory.put(&key, "one".into(), Expect::Absent));
        drop(memory.get(&key));
        drop(memory.list(&all));
        assert_eq!(memory.calls(), Calls::default());
        assert_eq!(memory.contents(&key), None);
        assert!(
            is_unknown(memory.put(&key, "one".into(), Expect::Absent).await),
            "the fault is still queued"
        );
    }

    #[tokio::test]
    async fn a_value_may_be_as_large_as_declared_and_not_a_byte_larger() {
        let memory = Memory::builder().declare(|guarantees| guarantees.value_max = 4).build();
        assert!(matches!(memory.put(&key("a"), "four".into(), Expect::Absent).await, Ok(Put::Applied(_))));
        memory.faults().next_put(PutFault::LoseAnswer);
        match memory.put(&key("b"), "fives".into(), Expect::Absent).await {
            Err(StoreError::Refused(refused)) => {
                assert_eq!(refused.reason, Reason::Invalid);
                assert!(refused.to_string().contains("at most 4 bytes, not 5"), "{refused}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(memory.contents(&key("b")), None);
    }

    #[tokio::test]
    async fn clones_are_the_same_store_and_two_stores_are_not() {
        let (memory, other) = (Memory::new(), Memory::new());
        create(&memory.clone(), &key("a"), "one").await;
        assert!(memory.contents(&key("a")).is_some());
        assert!(other.contents(&key("a")).is_none());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[expect(clippy::disallowed_methods, reason = "the racers are to run in different threads")]
    async fn of_racing_writes_exactly_one_is_applied() {
        let memory = Memory::new();
        let key = key("a");
        let mut expect = Expect::Absent;
        for _round in 0..200 {
            let racers = (0..64).map(|n| {
                let (memory, key, expect) = (memory.clone(), key.clone(), expect.clone());
                tokio::spawn(
                    async move { memory.put(&key, format!("racer {n}").into(), expect).await.unwrap() },
                )
            });
            let answers = join_all(racers.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap);
            let mut won: Vec<_> = answers.filter(|answer| *answer != CONFLICT).collect();
            let Some(Put::Applied(Applied { version, .. })) = won.pop() else { panic!("no write won") };
            assert_eq!(won, [], "more than one won");
            assert_eq!(memory.get(&key).await.unwrap().entry.unwrap().version, version);
            expect = Expect::Version(version);
        }
    }

    #[test]
    fn a_panic_under_the_lock_does_not_break_the_store() {
        let memory = Memory::new();
        let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let _guard = memory.lock();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert!(memory.get(&key("a")).now_or_never().unwrap().is_ok());
    }

    #[test]
    fn its_name_is_displayed() {
        assert_eq!(Memory::new().to_string(), "memory:");
        let named = Memory::builder().name("x").build();
        assert_eq!(named.to_string(), "memory:x");
        assert_eq!(format!("{named:?}"), "Memory { name: \"x\", keys: 0, .. }");
    }

    #[test]
    fn it_declares_every_guarantee_that_leases_need() {
        let guarantees = Memory::new().guarantees();
        assert!(guarantees.missing_for_leases().is_empty());
        assert!(guarantees.unique_versions && guarantees.watch);
        assert_eq!((guarantees.reach, guarantees.clock), (Reach::Process, StoreClock::Ages));
        assert_eq!(Memory::builder().reach(Reach::Network).build().guarantees().reach, Reach::Network);
    }
}

mod clocks {
    use super::*;

    #[tokio::test]
    async fn ages_and_time_come_from_the_given_clock() {
        let (memory, clock) = on_manual_clock();
        clock.set_wall(WallTime::from_millis(5));
        let key = key("a");
        let Put::Applied(applied) = memory.put(&key, "one".into(), Expect::Absent).await.unwrap() else {
            panic!()
        };
        assert_eq!(applied.time, Some(StoreTime::from_micros(5_000)));
        clock.advance(3 * SECOND);
        let reading = memory.get(&key).await.unwrap();
        assert_eq!(reading.time, Some(StoreTime::from_micros(3_005_000)));
        assert_eq!(reading.entry.unwrap().age, Some(3 * SECOND));
        assert_eq!(
            memory.get(&super::key("none")).await.unwrap().time,
            reading.time,
            "absence has a time too"
        );
    }

    #[tokio::test]
    async fn an_age_is_that_of_the_latest_write_whatever_the_wall_clock_does() {
        let (memory, clock) = on_manual_clock();
        let version = create(&memory, &key("a"), "one").await;
        clock.advance(9 * SECOND);
        write(&memory, &key("a"), "two", Expect::Version(version)).await;
        clock.set_wall(WallTime::from_millis(0));
        clock.advance(SECOND);
        assert_eq!(memory.get(&key("a")).await.unwrap().entry.unwrap().age, Some(SECOND));
    }

    #[tokio::test]
    async fn answers_contain_no_more_than_the_declared_clock_allows() {
        for (good_for, has_time, has_age) in [
            (StoreClock::Nothing, false, false),
            (StoreClock::Floors, true, false),
            (StoreClock::Ages, true, true),
        ] {
            let memory = Memory::builder().store_clock(good_for).build();
            assert_eq!(memory.guarantees().clock, good_for);
            let answer = memory.put(&key("a"), "one".into(), Expect::Absent).await.unwrap();
            let Put::Applied(applied) = answer else { panic!() };
            let reading = memory.get(&key("a")).await.unwrap();
            assert_eq!(
                (applied.time.is_some(), reading.time.is_some()),
                (has_time, has_time),
                "{good_for:?}"
            );
            assert_eq!(reading.entry.unwrap().age.is_some(), has_age, "{good_for:?}");
        }
    }

    #[tokio::test]
    async fn the_real_clock_gives_a_plausible_time_and_age() {
        let memory = Memory::new();
        create(&memory, &key("a"), "one").await;
        let reading = memory.get(&key("a")).await.unwrap();
        assert!(reading.time.unwrap() > StoreTime::from_micros(1_577_836_800_000_000));
        assert!(reading.entry.unwrap().age.unwrap() < 60 * SECOND);
    }
}

mod listing {
    use super::*;

    async fn list(memory: &Memory, prefix: &str) -> Vec<String> {
        let prefix = Prefix::parse(prefix).unwrap();
        let keys: Vec<Key> = memory.list(&prefix).try_collect().await.unwrap();
        keys.iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn keys_are_listed_in_order_each_once_by_whole_segments() {
        let memory = Memory::new();
        for name in ["jobs/b", "jobs-old", "jobs", "other", "jobs/a"] {
            create(&memory, &key(name), "x").await;
        }
        assert_eq!(list(&memory, "jobs").await, ["jobs", "jobs/a", "jobs/b"]);
        assert_eq!(list(&memory, "").await, ["jobs", "jobs-old", "jobs/a", "jobs/b", "other"]);
        assert!(list(&memory, "none").await.is_empty());
        assert_eq!(memory.calls().lists, 3);
    }

    #[tokio::test]
    async fn a_listing_is_of_one_moment() {
        let memory = Memory::new();
        for name in ["a", "b"] {
            create(&memory, &key(name), "x").await;
        }
        let all = Prefix::all();
        let mut listing = memory.list(&all);
        assert_eq!(listing.next().await.unwrap().unwrap(), key("a"));
        memory.delete(&key("b"));
        create(&memory, &key("c"), "x").await;
        assert_eq!(listing.next().await.unwrap().unwrap(), key("b"));
        assert!(listing.next().await.is_none());
    }
}

mod watching {
    use super::*;

    fn watch(memory: &Memory, prefix: &str) -> tenure_store::BoxStream<'static, ()> {
        memory.watch(&Prefix::parse(prefix).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn every_change_gives_a_hint_and_a_refused_write_does_not() {
        let memory = Memory::new();
        let key = key("jobs/a");
        let mut hints = watch(&memory, "jobs");
        assert!(hints.next().now_or_never().is_none(), "nothing happened yet");

        create(&memory, &key, "one").await;
        assert_eq!(hints.next().now_or_never(), Some(Some(())));
        assert!(hints.next().now_or_never().is_none());

        assert_eq!(memory.put(&key, "x".into(), Expect::Absent).await.unwrap(), CONFLICT);
        assert!(hints.next().now_or_never().is_none());

        let backup = memory.snapshot();
        let version = memory.overwrite(&key, "foreign");
        assert!(hints.next().now_or_never().is_some());
        memory.delete(&key);
        assert!(hints.next().now_or_never().is_some());
        assert!(!memory.delete(&key));
        assert!(hints.next().now_or_never().is_none());
        memory.restore(&backup);
        assert!(hints.next().now_or_never().is_some());
        memory.restore(&backup);
        assert!(hints.next().now_or_never().is_none(), "nothing was changed by that");

        memory.faults().next_put(PutFault::Late);
        assert!(is_unknown(memory.put(&super::key("jobs/b"), "late".into(), Expect::Absent).await));
        assert!(hints.next().now_or_never().is_none());
        assert_eq!(memory.faults().deliver_late(), 1);
        assert!(hints.next().now_or_never().is_some());
        assert_ne!(memory.get(&key).await.unwrap().entry.unwrap().version, version);
    }

    #[tokio::test]
    async fn hints_are_merged_and_one_before_the_first_poll_is_not_missed() {
        let memory = Memory::new();
        let mut hints = watch(&memory, "");
        for name in ["a", "b", "c"] {
            create(&memory, &key(name), "x").await;
        }
        assert!(hints.next().now_or_never().is_some());
        assert!(hints.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn every_watcher_gets_hints_for_its_prefix_only() {
        let memory = Memory::new();
        let mut jobs = [watch(&memory, "jobs"), watch(&memory, "jobs")];
        let mut other = watch(&memory, "other");
        create(&memory, &key("jobs-old"), "x").await;
        create(&memory, &key("jobs/a"), "x").await;
        for hints in &mut jobs {
            assert!(hints.next().now_or_never().is_some());
        }
        assert!(other.next().now_or_never().is_none());
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the watcher is to wait in a task of its own")]
    async fn a_waiting_watcher_wakes_and_ends_when_the_store_is_dropped() {
        let memory = Memory::new();
        let hints = watch(&memory, "");
        let watcher = tokio::spawn(hints.count());
        for n in 0..3 {
            tokio::task::yield_now().await;
            memory.overwrite(&key("a"), format!("{n}"));
        }
        tokio::task::yield_now().await;
        drop(memory);
        assert_eq!(watcher.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn dropped_watchers_are_forgotten() {
        let memory = Memory::new();
        for _ in 0..100 {
            drop(watch(&memory, ""));
        }
        let _kept = watch(&memory, "");
        assert_eq!(memory.lock().watchers(), 1);
    }

    #[test]
    fn a_store_that_declares_no_watch_has_none() {
        let memory = Memory::builder().declare(|guarantees| guarantees.watch = false).build();
        assert!(memory.watch(&Prefix::all()).is_none());
    }
}

mod faults {
    use super::*;

    /// Answer to a create with this fault, and whether the store applied it.
    async fn create_with(fault: PutFault) -> (Result<Put, StoreError>, bool) {
        let memory = Memory::new();
        memory.faults().next_put(fault);
        let answer = memory.put(&key("a"), "one".into(), Expect::Absent).await;
        (answer, memory.contents(&key("a")).is_some())
    }

    fn throttled(answer: Result<Put, StoreError>) -> Option<Duration> {
        match answer {
            Err(StoreError::Throttled(throttled)) => throttled.after,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn each_fault_is_answered_and_applied_as_its_name_says() {
        let (answer, applied) = create_with(PutFault::LoseRequest).await;
        assert!(is_unknown(answer) && !applied);
        let (answer, applied) = create_with(PutFault::LoseAnswer).await;
        assert!(is_unknown(answer) && applied);
        let (answer, applied) = create_with(PutFault::Late).await;
        assert!(is_unknown(answer) && !applied);
        let (answer, applied) = create_with(PutFault::Twice).await;
        assert!(answer.unwrap() == CONFLICT && applied, "a win that is reported as a loss");
        let (answer, applied) = create_with(PutFault::Refuse(Reason::Denied)).await;
        assert!(matches!(answer, Err(StoreError::Refused(refused)) if refused.reason == Reason::Denied));
        assert!(!applied);
        let (answer, applied) = create_with(PutFault::Throttle(Some(SECOND))).await;
        assert_eq!((throttled(answer), applied), (Some(SECOND), false));
        let (answer, applied) = create_with(PutFault::ThrottleAfterApplying(None)).await;
        assert_eq!((throttled(answer), applied), (None, true));
        let (answer, applied) = create_with(PutFault::ThrottleLate(None)).await;
        assert_eq!((throttled(answer), applied), (None, false));
    }

    #[tokio::test]
    async fn a_fault_does_not_bypass_the_condition() {
        for fault in [
            PutFault::LoseAnswer,
            PutFault::Late,
            PutFault::Twice,
            PutFault::ThrottleAfterApplying(None),
            PutFault::ThrottleLate(None),
        ] {
            let memory = Memory::new();
            create(&memory, &key("a"), "one").await;
            memory.faults().next_put(fault);
            let answer = memory.put(&key("a"), "two".into(), Expect::Absent).await;
            assert!(!matches!(answer, Ok(Put::Applied(_))), "{fault:?}");
            assert_eq!(memory.faults().deliver_late(), 0, "{fault:?}");
            assert_eq!(memory.contents(&key("a")).unwrap(), "one", "{fault:?}");
        }
    }

    #[tokio::test]
    async fn a_late_request_lands_after_its_sender_gave_up_under_its_own_condition() {
        let memory = Memory::new();
        let (a, b, faults) = (key("a"), key("b"), memory.faults());
        let version = create(&memory, &a, "one").await;
        faults.every_put(Some(PutFault::Late));
        for (key, expect) in [(&a, Expect::Version(version.clone())), (&b, Expect::Absent)] {
            assert!(is_unknown(memory.put(key, "late".into(), expect).await));
        }
        faults.clear();
        assert_eq!(memory.lock().plan.held_back.len(), 2, "what is on its way stays on its way");

        write(&memory, &a, "two", Expect::Version(version)).await;
        assert_eq!(faults.deliver_late(), 1);
        assert_eq!(memory.contents(&a).unwrap(), "two", "its version had gone");
        assert_eq!(memory.contents(&b).unwrap(), "late");
        assert_eq!(faults.deliver_late(), 0, "each lands once");
    }

    #[tokio::test]
    async fn late_requests_land_in_the_order_in_which_they_were_sent() {
        let memory = Memory::new();
        memory.faults().every_put(Some(PutFault::Late));
        for value in ["first", "second"] {
            assert!(is_unknown(memory.put(&key("a"), value.into(), Expect::Absent).await));
        }
        assert_eq!(memory.faults().deliver_late(), 1);
        assert_eq!(memory.contents(&key("a")).unwrap(), "first");
    }

    #[tokio::test]
    async fn a_hanging_call_never_completes_and_can_be_dropped() {
        let memory = Memory::new();
        let (hangs, applied) = (key("hangs"), key("applied"));
        let faults = memory.faults();
        faults.next_put(PutFault::Hang);
        faults.next_put(PutFault::HangAfterApplying);
        faults.next_get(GetFault::Hang);
        assert!(memory.put(&hangs, "x".into(), Expect::Absent).now_or_never().is_none());
        assert!(memory.put(&applied, "x".into(), Expect::Absent).now_or_never().is_none());
        assert!(memory.get(&hangs).now_or_never().is_none());
        assert_eq!((memory.contents(&hangs), memory.contents(&applied)), (None, Some("x".into())));
        assert_eq!(
            memory.calls(),
            Calls { gets: 1, puts: 2, lists: 0 },
            "they were counted when they started"
        );
        create(&memory, &hangs, "the store still works").await;
    }

    #[tokio::test]
    async fn a_slow_answer_is_true_when_it_is_given_and_old_when_it_arrives() {
        let (memory, clock) = on_manual_clock();
        let key = key("a");
        memory.faults().next_put(PutFault::SlowAnswer(2 * SECOND));
        let mut put = memory.put(&key, "one".into(), Expect::Absent);
        assert!((&mut put).now_or_never().is_none());
        assert_eq!(memory.contents(&key).unwrap(), "one", "applied at once");

        memory.faults().next_get(GetFault::SlowAnswer(SECOND));
        let mut get = memory.get(&key);
        assert!((&mut get).now_or_never().is_none());
        memory.overwrite(&key, "two");
        clock.advance(SECOND);
        assert_eq!(get.await.unwrap().entry.unwrap().value, "one");
        assert!((&mut put).now_or_never().is_none());
        clock.advance(SECOND);
        assert!(matches!(put.await, Ok(Put::Applied(_))));
    }

    #[tokio::test]
    async fn reads_fail_as_the_fault_says() {
        let memory = Memory::new();
        let faults = memory.faults();
        faults.next_get(GetFault::Fail);
        faults.next_get(GetFault::Refuse(Reason::Unreachable));
        faults.next_get(GetFault::Throttle(Some(SECOND)));
        assert!(is_unknown(memory.get(&key("a")).await));
        assert!(matches!(memory.get(&key("a")).await, Err(StoreError::Refused(_))));
        assert!(matches!(memory.get(&key("a")).await, Err(StoreError::Throttled(_))));
        assert!(memory.get(&key("a")).await.is_ok());
        assert_eq!(memory.calls().gets, 4);
    }

    #[tokio::test]
    async fn queued_faults_come_in_order_before_the_standing_one_until_cleared() {
        let memory = Memory::new();
        let faults = memory.faults().clone();
        faults.every_put(Some(PutFault::Refuse(Reason::Denied)));
        faults.every_get(Some(GetFault::Fail));
        faults.next_put(PutFault::LoseRequest);
        faults.next_put(PutFault::Throttle(None));
        let put = async || memory.put(&key("a"), "x".into(), Expect::Absent).await;
        assert!(is_unknown(put().await));
        assert!(matches!(put().await, Err(StoreError::Throttled(_))));
        for _ in 0..3 {
            assert!(matches!(put().await, Err(StoreError::Refused(_))));
            assert!(is_unknown(memory.get(&key("a")).await));
        }
        faults.next_put(PutFault::Hang);
        faults.clear();
        assert!(matches!(put().await, Ok(Put::Applied(_))));
        assert!(memory.get(&key("a")).await.is_ok());

        faults.every_put(Some(PutFault::LoseRequest));
        faults.every_put(None);
        assert_eq!(put().await.unwrap(), CONFLICT);
    }
}

mod administration {
    use super::*;

    #[tokio::test]
    async fn a_restore_brings_back_values_and_versions_and_removes_later_ones() {
        let (memory, clock) = on_manual_clock();
        let (a, b) = (key("a"), key("b"));
        let version = create(&memory, &a, "one").await;
        let backup = memory.snapshot();
        assert_eq!(backup.entries.len(), 1);

        clock.advance(SECOND);
        write(&memory, &a, "two", Expect::Version(version.clone())).await;
        create(&memory, &b, "x").await;
        memory.restore(&backup);
        let entry = memory.get(&a).await.unwrap().entry.unwrap();
        assert_eq!((entry.value, entry.version), ("one".into(), version.clone()));
        assert_eq!(entry.age, Some(SECOND), "it is as old as the write that it was");
        assert_eq!(memory.contents(&b), None);
        assert_eq!(memory.snapshot().entries, backup.entries);
        write(&memory, &a, "three", Expect::Version(version)).await;
    }

    #[tokio::test]
    async fn a_backup_can_be_restored_into_another_store_which_then_gives_newer_versions() {
        let (memory, fresh) = (Memory::new(), Memory::new());
        let version = create(&memory, &key("a"), "one").await;
        fresh.restore(&memory.snapshot());
        assert_eq!(fresh.get(&key("a")).await.unwrap().entry.unwrap().version, version);
        assert_ne!(create(&fresh, &key("b"), "x").await, version);
    }

    #[tokio::test]
    async fn a_foreign_write_replaces_any_entry_under_a_new_version() {
        let memory = Memory::new();
        let version = create(&memory, &key("a"), "one").await;
        let foreign = memory.overwrite(&key("a"), "garbage");
        assert_ne!(version, foreign);
        assert_eq!(memory.contents(&key("a")).unwrap(), "garbage");
        let put = memory.put(&key("a"), "two".into(), Expect::Version(version)).await;
        assert_eq!(put.unwrap(), CONFLICT);
        memory.overwrite(&key("b"), vec![0xff; 3]);
        assert_eq!(memory.contents(&key("b")).unwrap().len(), 3);
    }

    #[tokio::test]
    async fn administration_is_not_counted_and_meets_no_faults() {
        let memory = Memory::new();
        memory.faults().every_put(Some(PutFault::LoseRequest));
        memory.faults().every_get(Some(GetFault::Fail));
        memory.overwrite(&key("a"), "x");
        assert!(memory.contents(&key("a")).is_some());
        assert!(memory.delete(&key("a")));
        memory.restore(&memory.snapshot());
        assert_eq!(memory.calls().total(), 0);
    }
}

#[tokio::test]
async fn a_sweep_removes_a_probe_key_and_no_other() {
    let memory = Memory::new();
    let swept = Key::from_stored(".tenure/probe/1/a").unwrap();
    for key in [&swept, &key("a"), &Key::scratch()] {
        create(&memory, key, "x").await;
    }
    memory.scratch().unwrap().sweep(&swept).await.unwrap();
    assert!(memory.get(&swept).await.unwrap().entry.is_none());
    for kept in [key("a"), Key::scratch()] {
        assert!(
            matches!(memory.scratch().unwrap().sweep(&kept).await, Err(StoreError::Refused(_))),
            "{kept}"
        );
        assert!(memory.get(&kept).await.unwrap().entry.is_some(), "{kept}");
    }
}

#[tokio::test]
async fn calls_are_counted_by_kind_and_can_be_subtracted() {
    let memory = Memory::new();
    let _ = memory.get(&key("a")).await;
    let before = memory.calls();
    create(&memory, &key("a"), "x").await;
    let _ = memory.get(&key("a")).await;
    let _ = memory.get(&key("b")).await;
    let used = memory.clone().calls() - before;
    assert_eq!(used, Calls { gets: 2, puts: 1, lists: 0 });
    assert_eq!(used.total(), 3);
}

#[tokio::test]
async fn a_slow_answer_waits_until_the_manual_clock_moves() {
    let (memory, clock) = on_manual_clock();
    memory.faults().next_get(GetFault::SlowAnswer(SECOND));
    let key = key("a");
    let mut get = memory.get(&key);
    assert!((&mut get).now_or_never().is_none());
    assert_eq!(clock.next_wake(), Some(clock.now() + SECOND));
    drop(get);
    assert_eq!(clock.sleepers(), 0);
}
