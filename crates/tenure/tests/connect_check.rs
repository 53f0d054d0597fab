//! The guarantees that a store declares, and the check of its behaviour before the first grant.

#[path = "connect_check/wrapper.rs"]
mod wrapper;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{FutureExt, TryStreamExt};
use proptest::prelude::*;
use tenure::clock::{Clock, ManualClock};
use tenure::record::decode;
use tenure::store::Memory;
use tenure::store::memory::{Calls, GetFault, PutFault};
use tenure::{Error, ErrorKind};
use tenure_core::check::{check_declared, check_live, connect_check};
use tenure_core::record::RECORD_MAX;
use tenure_store::{BoxFuture, Expect, Guarantees, Key, Prefix, Put, Reach, Reason, Store};

use self::wrapper::{How, Wrapper};

const NONCE: u128 = 0xfeed_0000_1234_5678_9abc_def0_0000_beef;

/// Pauses that take no real time, but advance this clock.
fn leaps(clock: &ManualClock) -> impl Fn(Duration) -> BoxFuture<'static, ()> + Sync + use<> {
    let clock = clock.clone();
    move |span| {
        clock.advance(span);
        Box::pin(std::future::ready(()))
    }
}

/// Pauses that take no time.
fn leap(_: Duration) -> BoxFuture<'static, ()> {
    Box::pin(std::future::ready(()))
}

/// A memory store that declares itself to be on the network.
fn on_network() -> Memory {
    Memory::builder().name("x").reach(Reach::Network).build()
}

/// The same, after a check by another process.
fn checked_before() -> Memory {
    let memory = on_network();
    memory.overwrite(&Key::scratch(), "scratch of another process");
    memory
}

async fn check(store: &dyn Store) -> Result<(), Error> {
    check_live(store, &leap, NONCE).await
}

/// The message for a store that lies. It is the same whether or not the scratch key existed before.
async fn conviction(how: How) -> String {
    let mut messages = Vec::new();
    for memory in [on_network(), checked_before()] {
        let error = check(&Wrapper::new(memory, how)).await.expect_err("a liar was believed");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{how:?}: {error}");
        messages.push(error.to_string());
    }
    assert_eq!(messages[0], messages[1]);
    messages.swap_remove(0)
}

mod an_honest_store {
    use super::*;

    #[tokio::test]
    async fn is_trusted_and_the_scratch_key_is_created_once_and_then_left_alone() {
        let memory = on_network();
        check(&memory).await.unwrap();
        let first = memory.snapshot();
        let Calls { gets, puts, lists, .. } = memory.calls();
        assert_eq!((gets, puts, lists), (4, 3, 0));

        let before = memory.calls();
        check_live(&memory, &leap, NONCE + 1).await.unwrap();
        assert_eq!(memory.snapshot(), first, "a check of what exists changes nothing");
        let Calls { gets, puts, lists, .. } = memory.calls() - before;
        assert_eq!((gets, puts, lists), (3, 2, 0));
        let keys: Vec<Key> = memory.list(&Prefix::all()).try_collect().await.unwrap();
        assert_eq!(keys, [Key::scratch()]);
    }

    #[tokio::test]
    async fn holds_a_readable_note_that_names_its_writer() {
        let memory = on_network();
        check(&memory).await.unwrap();
        let bytes = memory.contents(&Key::scratch()).unwrap();
        assert!(decode(&bytes).is_err(), "it is no lease: {bytes:?}");
        let note: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(note["scratch"], true);
        assert_eq!(note["nonce"], "feed0000123456789abcdef00000beef");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[expect(clippy::disallowed_methods, reason = "the clients are to run in different threads")]
    async fn is_never_convicted_by_many_concurrent_checks() {
        for _round in 0..50 {
            let store = Arc::new(Wrapper::new(on_network(), How::Yields));
            let clients = (0..64).map(|n| {
                let store = store.clone();
                tokio::spawn(async move { check_live(&*store, &leap, NONCE + n).await })
            });
            for client in join_all(clients.collect::<Vec<_>>()).await {
                client.unwrap().unwrap();
            }
            let puts = store.inner.calls().puts;
            assert!(puts <= 3 * 64, "no check had to repeat: {puts}");
        }
    }

    #[tokio::test]
    async fn is_not_convicted_for_concurrent_changes_by_an_operator_or_a_foreign_program() {
        for nth in 1..=6 {
            let meddling =
                [How::DeletedBeforePut(nth), How::DeletedBeforeGet(nth), How::OverwrittenBeforePut(nth)];
            for how in meddling {
                for memory in [on_network(), checked_before()] {
                    let result = check(&Wrapper::new(memory, how)).await;
                    assert!(result.is_ok(), "{how:?}: {result:?}");
                }
            }
        }
    }

    #[tokio::test]
    async fn is_neither_convicted_nor_trusted_if_the_key_keeps_changing() {
        let error = check(&Wrapper::new(on_network(), How::KeepsBeingOverwritten)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("keeps changing the key .tenure/scratch"), "{error}");
    }

    /// `SlowAnswer(ZERO)` stands for a call that succeeds.
    fn put_faults() -> impl Strategy<Value = PutFault> {
        prop_oneof![
            Just(PutFault::SlowAnswer(Duration::ZERO)),
            Just(PutFault::LoseRequest),
            Just(PutFault::LoseAnswer),
            Just(PutFault::Late),
            Just(PutFault::Twice),
            Just(PutFault::Throttle(None)),
            Just(PutFault::ThrottleAfterApplying(None)),
            Just(PutFault::ThrottleLate(None)),
            Just(PutFault::Refuse(Reason::Unreachable)),
        ]
    }

    fn get_faults() -> impl Strategy<Value = GetFault> {
        prop_oneof![
            3 => Just(GetFault::SlowAnswer(Duration::ZERO)),
            1 => Just(GetFault::Fail),
            1 => Just(GetFault::Throttle(None)),
            1 => Just(GetFault::Refuse(Reason::Unreachable)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn is_trusted_or_not_reached_whatever_the_network_does(
            puts in prop::collection::vec(put_faults(), 0..12),
            gets in prop::collection::vec(get_faults(), 0..12),
            existed in any::<bool>(),
        ) {
            let memory = if existed { checked_before() } else { on_network() };
            puts.into_iter().for_each(|fault| memory.faults().next_put(fault));
            gets.into_iter().for_each(|fault| memory.faults().next_get(fault));
            let clock = ManualClock::new();
            for nonce in 0..3 {
                let result = check_live(&memory, &leaps(&clock), nonce).now_or_never().expect("nothing here waits");
                if let Err(error) = result {
                    prop_assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error);
                }
                memory.faults().deliver_late();
            }
            memory.faults().clear();
            prop_assert!(check_live(&memory, &leaps(&clock), NONCE).now_or_never().unwrap().is_ok());
        }
    }
}

mod a_liar {
    use super::*;

    #[tokio::test]
    async fn that_ignores_create_is_convicted_with_a_message_that_names_it_and_the_guarantee() {
        assert_eq!(
            conviction(How::IgnoresCreate).await,
            "memory:x promises atomic create, but it accepted a create over an existing entry \
             (.tenure/scratch), and this happened more than once. Two holders could act at once, so nothing is granted on it: use another store"
        );
    }

    #[tokio::test]
    async fn is_convicted_by_the_second_lie_and_not_called_again() {
        for (how, puts) in [(How::IgnoresCreate, 2), (How::IgnoresReplace, 3), (How::OkWithoutWriting, 2)] {
            let store = Wrapper::new(checked_before(), how);
            check(&store).await.unwrap_err();
            assert_eq!(store.puts(), puts, "{how:?}");
        }
    }

    #[tokio::test]
    async fn that_ignores_replace_is_convicted() {
        let message = conviction(How::IgnoresReplace).await;
        assert!(
            message.starts_with("memory:x promises atomic replace, but it accepted a replace of"),
            "{message}"
        );
    }

    #[tokio::test]
    async fn that_says_ok_and_writes_nothing_is_convicted() {
        for (memory, lie) in [
            (on_network(), "a read sent after a create was acknowledged did not show the entry"),
            (checked_before(), "it accepted a create over an existing entry"),
        ] {
            let error = check(&Wrapper::new(memory, How::OkWithoutWriting)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(lie), "{error}");
        }
    }

    #[tokio::test]
    async fn that_applies_a_write_and_answers_otherwise_is_convicted_by_our_own_bytes() {
        for how in [How::WritesAndRefuses, How::WritesAndSaysNothing] {
            let message = conviction(how).await;
            assert!(message.contains("it accepted a create over an existing entry"), "{how:?}: {message}");
        }
    }

    #[tokio::test]
    async fn that_never_shows_its_writes_is_convicted() {
        for how in [How::NeverShows, How::AlwaysConflicts] {
            let error = check(&Wrapper::new(on_network(), how)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{how:?}: {error}");
            assert!(error.to_string().contains("linearizable reads"), "{how:?}: {error}");
        }
    }

    #[tokio::test]
    async fn whose_versions_mean_nothing_is_convicted() {
        for (how, lie) in [
            (How::EmptyVersions, "an empty version"),
            (How::ImpossibleVersions, "the version that it declares impossible"),
            (How::UnsteadyVersions, "changed without a write"),
        ] {
            let message = conviction(how).await;
            assert!(message.contains(lie), "{how:?}: {message}");
        }
    }

    #[tokio::test]
    async fn that_is_one_server_of_three_behind_one_address_is_convicted() {
        for memory in [on_network(), checked_before()] {
            let error = check(&Wrapper::new(memory, How::OneBadServerOfThree)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("it accepted a "), "{error}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[expect(clippy::disallowed_methods, reason = "the clients are to run in different threads")]
    async fn is_trusted_by_none_of_many_concurrent_checks() {
        for how in [How::IgnoresCreate, How::IgnoresReplace, How::OkWithoutWriting, How::WritesAndRefuses] {
            let store = Arc::new(Wrapper::new(on_network(), how));
            let clients = (0..64).map(|n| {
                let store = store.clone();
                tokio::spawn(async move { check_live(&*store, &leap, NONCE + n).await })
            });
            for client in join_all(clients.collect::<Vec<_>>()).await {
                assert!(client.unwrap().is_err(), "{how:?}");
            }
        }
    }
}

mod a_store_that_does_not_answer {
    use super::*;

    #[tokio::test]
    async fn is_retried_a_bounded_number_of_times_with_pauses_and_is_then_unavailable() {
        let memory = on_network();
        memory.faults().every_get(Some(GetFault::Fail));
        let clock = ManualClock::new();
        let start = clock.now();
        let error = check_live(&memory, &leaps(&clock), NONCE).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().starts_with("memory:x could not be checked"), "{error}");
        assert!(std::error::Error::source(&error).is_some(), "what went wrong is kept");
        assert_eq!(memory.calls().gets, 8);
        let took = clock.now().since(start);
        assert!((Duration::from_secs(2)..Duration::from_secs(6)).contains(&took), "{took:?}");
    }

    #[tokio::test]
    async fn to_writes_is_unavailable_too() {
        for fault in [PutFault::LoseRequest, PutFault::Throttle(None), PutFault::Refuse(Reason::Unreachable)]
        {
            for memory in [on_network(), checked_before()] {
                memory.faults().every_put(Some(fault));
                let error = check(&memory).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}");
                assert_eq!(memory.calls().puts, 8, "{fault:?}");
            }
        }
    }

    #[tokio::test]
    async fn recovers_and_is_trusted() {
        let memory = on_network();
        for _ in 0..3 {
            memory.faults().next_get(GetFault::Fail);
            memory.faults().next_put(PutFault::LoseRequest);
        }
        check(&memory).await.unwrap();
    }

    #[tokio::test]
    async fn and_asks_for_more_time_is_given_it_within_bounds() {
        for (asked, at_least, at_most) in [(3, 3, 4), (3_600, 5, 6)] {
            let memory = checked_before();
            memory.faults().next_put(PutFault::Throttle(Some(Duration::from_secs(asked))));
            let clock = ManualClock::new();
            let start = clock.now();
            check_live(&memory, &leaps(&clock), NONCE).await.unwrap();
            let waited = clock.now().since(start).as_secs();
            assert!((at_least..at_most).contains(&waited), "asked for {asked} s, waited {waited} s");
        }
    }

    #[tokio::test]
    async fn is_not_retried_by_every_process_at_the_same_moment() {
        let mut pauses = Vec::new();
        for nonce in [0_u128, 0x4000, 0x8000, u128::MAX] {
            let memory = checked_before();
            memory.faults().next_put(PutFault::LoseRequest);
            let clock = ManualClock::new();
            let start = clock.now();
            check_live(&memory, &leaps(&clock), nonce).await.unwrap();
            pauses.push(clock.now().since(start).as_millis());
        }
        assert_eq!((pauses[0], pauses[3]), (25, 50));
        assert!(pauses.is_sorted() && pauses[0] < pauses[1] && pauses[1] < pauses[2], "{pauses:?}");
    }

    #[tokio::test]
    async fn because_of_the_credentials_fails_at_once() {
        let memory = on_network();
        memory.faults().every_get(Some(GetFault::Refuse(Reason::Denied)));
        let error = check(&memory).await.unwrap_err();
        assert_eq!((error.kind(), memory.calls().total()), (ErrorKind::Unavailable, 1));
        assert!(error.to_string().contains("allow these credentials to read and write that key"), "{error}");

        let read_only = on_network();
        read_only.faults().every_put(Some(PutFault::Refuse(Reason::Denied)));
        assert!(
            check(&read_only)
                .await
                .unwrap_err()
                .to_string()
                .contains("allow these credentials to read and write that key")
        );
    }

    #[tokio::test]
    async fn because_it_lacks_the_operation_is_unsupported_at_once() {
        for reason in [Reason::Unsupported, Reason::Invalid] {
            let memory = checked_before();
            memory.faults().every_put(Some(PutFault::Refuse(reason)));
            let error = check(&memory).await.unwrap_err();
            assert_eq!((error.kind(), memory.calls().puts), (ErrorKind::Unsupported, 1));
        }
    }

    #[tokio::test]
    async fn because_it_does_not_exist_is_a_matter_of_configuration_at_once() {
        let memory = checked_before();
        memory.faults().every_get(Some(GetFault::Refuse(Reason::Missing)));
        let error = check(&memory).await.unwrap_err();
        assert_eq!((error.kind(), memory.calls().gets), (ErrorKind::Misconfigured, 1));
        assert!(error.to_string().contains("cannot be used: the store does not exist"), "{error}");
    }

    #[tokio::test]
    async fn at_all_blocks_the_check_which_can_then_be_dropped() {
        let memory = checked_before();
        memory.faults().next_put(PutFault::Hang);
        assert!(check(&memory).now_or_never().is_none());
        check(&memory).await.unwrap();
    }
}

mod connecting {
    use super::*;

    #[tokio::test]
    async fn sends_nothing_to_a_store_within_one_machine() {
        for reach in [Reach::Process, Reach::Machine] {
            let memory = Memory::builder().reach(reach).build();
            connect_check(&memory, &leap, NONCE).await.unwrap();
            assert_eq!(memory.calls().total(), 0);
        }
    }

    #[tokio::test]
    async fn checks_the_behaviour_of_a_networked_store() {
        let memory = on_network();
        connect_check(&memory, &leap, NONCE).await.unwrap();
        assert!(memory.contents(&Key::scratch()).is_some());
        let liar = Wrapper::new(on_network(), How::IgnoresCreate);
        let error = connect_check(&liar, &leap, NONCE).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[tokio::test]
    async fn sends_nothing_to_a_store_that_lacks_a_guarantee() {
        let memory = Memory::builder()
            .reach(Reach::Network)
            .declare(|guarantees| guarantees.atomic_replace = false)
            .build();
        let error = connect_check(&memory, &leap, NONCE).await.unwrap_err();
        assert_eq!((error.kind(), memory.calls().total()), (ErrorKind::Unsupported, 0));
    }

    #[tokio::test]
    async fn leaves_the_keys_of_users_alone() {
        let memory = on_network();
        let key = Key::parse("billing/nightly").unwrap();
        assert!(matches!(memory.put(&key, "theirs".into(), Expect::Absent).await, Ok(Put::Applied(_))));
        let before = memory.get(&key).await.unwrap().entry.unwrap();
        connect_check(&memory, &leap, NONCE).await.unwrap();
        let after = memory.get(&key).await.unwrap().entry.unwrap();
        assert_eq!((before.value, before.version), (after.value, after.version));
    }
}

mod declared_guarantees {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Guarantees)) -> Error {
        let store = Memory::builder().name("x").declare(change).build();
        check_declared(&store).expect_err("it declares too little")
    }

    #[test]
    fn a_store_that_declares_every_guarantee_is_accepted() {
        check_declared(&Memory::new()).unwrap();
    }

    #[test]
    fn a_forgotten_declaration_is_refused_and_every_gap_is_named() {
        let error = refusal(|guarantees| *guarantees = Guarantees::default());
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(
            error.to_string(),
            format!(
                "memory:x does not promise atomic create, atomic replace, linearizable reads, keeping acknowledged \
                 writes, a reach, how often a key may be written and values of {RECORD_MAX} bytes (it takes 0): \
                 nothing is granted on it. Use another store, or set this one up so that it can"
            )
        );
    }

    #[test]
    fn each_single_gap_is_enough_to_be_refused() {
        type Gap = fn(&mut Guarantees);
        let gaps: [(Gap, &str); 5] = [
            (|guarantees| guarantees.atomic_create = false, "atomic create"),
            (|guarantees| guarantees.atomic_replace = false, "atomic replace"),
            (|guarantees| guarantees.linearizable_reads = false, "linearizable reads"),
            (|guarantees| guarantees.keeps_acknowledged = false, "keeping acknowledged writes"),
            (|guarantees| guarantees.write_interval = Duration::MAX, "how often a key may be written"),
        ];
        for (gap, name) in gaps {
            let message = refusal(gap).to_string();
            assert!(message.starts_with(&format!("memory:x does not promise {name}: ")), "{message}");
        }
    }

    #[test]
    fn a_value_limit_of_exactly_one_record_is_enough_and_a_byte_less_is_not() {
        let with = |max| Memory::builder().declare(|guarantees| guarantees.value_max = max).build();
        check_declared(&with(RECORD_MAX)).unwrap();
        let error = check_declared(&with(RECORD_MAX - 1)).unwrap_err();
        assert!(error.to_string().contains(&format!("(it takes {})", RECORD_MAX - 1)), "{error}");
    }
}
