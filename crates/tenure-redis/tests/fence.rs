//! Fenced writes to the keys of a program, on real servers.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

mod support;

use std::time::Duration;

use support::Place;
use tenure::{Coordinator, ErrorKind, Token};
use tenure_fence::{Fence, FenceError, FencingToken, Seal};
use tenure_redis::redis::{Cmd, Value, cmd};
use tenure_redis::{PartlyWritten, Redis, RedisBuilder, RedisFence};
use tenure_store::Reason;
use tenure_testkit::{Fault, RedisKind, RedisServer, RedisSetup, Rule, wait_until};

fn plain(builder: RedisBuilder) -> RedisBuilder {
    builder.accept_restart()
}

fn place(kind: RedisKind) -> Option<Place> {
    Place::start(kind, RedisSetup::new(), plain)
}

fn fence(place: &Place) -> RedisFence {
    RedisFence::new(&place.store(), "ledger").unwrap()
}

fn token(number: u64) -> FencingToken {
    of("billing", number)
}

fn of(name: &str, number: u64) -> FencingToken {
    format!("{name}={number}").parse().unwrap()
}

fn text(value: &str) -> Value {
    Value::BulkString(value.as_bytes().to_vec())
}

fn mark(server: &RedisServer) -> String {
    server.command(&["HGETALL", "tenure:fence:{ledger}"]).replace('\n', " ")
}

/// The names of the commands since the last call.
fn sent(place: &Place) -> Vec<String> {
    let log = place.proxy.log();
    place.proxy.clear_log();
    log.into_iter().map(|exchange| exchange.method).collect()
}

#[tokio::test]
async fn an_equal_token_is_the_same_holder_writing_again_and_a_smaller_one_is_refused() {
    for kind in RedisKind::ALL {
        let Some(place) = place(kind) else { return };
        let fence = fence(&place);
        let replies = fence.write(&token(7), &[Cmd::set("a", "one"), Cmd::incr("n", 5)]).await.unwrap();
        assert_eq!(replies, [Value::Okay, Value::Int(5)]);
        let replies = fence.write(&token(7), &[Cmd::get("a"), Cmd::get("none")]).await.unwrap();
        assert_eq!(replies, [text("one"), Value::Nil]);
        fence.seal(&token(9)).await.unwrap();
        assert_eq!(mark(&place.server), "mark billing=9");
        for refused in [
            fence.write(&token(7), &[Cmd::set("a", "late")]).await.unwrap_err(),
            fence.seal(&token(8)).await.unwrap_err(),
        ] {
            assert!(refused.is_stale(), "{refused}");
            let words = refused.to_string();
            for part in ["ledger on redis://", "lease billing", "token 9 has been there"] {
                assert!(words.contains(part), "{words}");
            }
        }
        let error = fence.write(&of("payroll", 99), &[Cmd::set("a", "late")]).await.unwrap_err();
        assert!(matches!(error, FenceError::OtherLease { .. }), "{error}");
        let newcomer = self::fence(&place);
        let error = newcomer.write(&of("payroll", 99), &[Cmd::set("a", "late")]).await.unwrap_err();
        assert!(matches!(error, FenceError::OtherLease { .. }), "the server refuses it too: {error}");
        assert_eq!(place.server.command(&["GET", "a"]), "one");
        // The greatest token is exact, and so is the one below it.
        newcomer.seal(&token(Token::MAX.get())).await.unwrap();
        assert!(newcomer.seal(&token(Token::MAX.get() - 1)).await.unwrap_err().is_stale());
        assert_eq!(mark(&place.server), format!("mark billing={}", Token::MAX));
    }
}

#[tokio::test]
async fn a_fenced_write_is_one_command_and_nothing_else() {
    let Some(place) = place(RedisKind::Redis) else { return };
    let fence = fence(&place);
    fence.seal(&token(1)).await.unwrap();
    sent(&place);
    fence.write(&token(1), &[Cmd::set("a", 1), Cmd::set("b", 2)]).await.unwrap();
    fence.seal(&token(2)).await.unwrap();
    assert!(fence.write(&token(1), &[Cmd::set("a", 3)]).await.unwrap_err().is_stale());
    assert_eq!(sent(&place), ["EVALSHA"; 3]);
    place.server.command(&["SCRIPT", "FLUSH"]);
    fence.write(&token(2), &[Cmd::incr("n", 1)]).await.unwrap();
    assert_eq!(sent(&place), ["EVALSHA", "EVAL"]);
    assert_eq!(place.server.command(&["GET", "n"]), "1");
}

#[tokio::test]
async fn words_are_binary_safe_and_a_command_may_be_long() {
    let Some(place) = place(RedisKind::Valkey) else { return };
    let fence = fence(&place);
    let bytes: Vec<u8> = (0..=255).collect();
    fence.write(&token(1), &[Cmd::set(&bytes, &bytes), Cmd::set("", "")]).await.unwrap();
    let replies = fence.write(&token(1), &[Cmd::get(&bytes), Cmd::get("")]).await.unwrap();
    assert_eq!(replies, [Value::BulkString(bytes), text("")]);
    let members: Vec<String> = (0..6_998).map(|number| number.to_string()).collect();
    let replies = fence.write(&token(1), &[Cmd::sadd("set", &members), Cmd::scard("set")]).await.unwrap();
    assert_eq!(replies, [Value::Int(6_998), Value::Int(6_998)]);
    let large = vec![b'x'; 5_000_000];
    fence.write(&token(1), &[Cmd::set("large", &large)]).await.unwrap();
    assert_eq!(place.server.command(&["STRLEN", "large"]), "5000000");
}

#[tokio::test]
async fn what_can_be_known_to_fail_is_refused_before_anything_is_sent() {
    let Some(place) = place(RedisKind::Redis) else { return };
    let fence = fence(&place);
    fence.seal(&token(1)).await.unwrap();
    sent(&place);
    for command in [
        cmd("BLPOP").arg("a").arg(0),
        &mut cmd("MULTI"),
        &mut cmd("FLUSHALL"),
        cmd("EVAL").arg("return 1").arg(0),
        cmd("SET").arg("a"),
        cmd("DEL").arg(fence.mark_key()),
        cmd("HSET").arg("tenure:{billing}").arg("d").arg("{}"),
    ] {
        let error = fence.write(&token(1), &[Cmd::set("a", 1), command.clone()]).await.unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
        assert!(error.to_string().contains("ledger on redis://") && error.to_string().contains("command 2"));
    }
    assert_eq!(sent(&place), [""; 0]);
    for name in ["", "a}b", "{}", "a\u{7}"] {
        let error = RedisFence::new(&place.store(), name).unwrap_err();
        assert!(error.to_string().contains("is not the name of a resource"), "{error}");
    }
}

#[tokio::test]
async fn a_command_that_fails_first_leaves_no_effect_and_a_later_one_is_reported_with_what_was_applied() {
    for kind in RedisKind::ALL {
        let Some(place) = place(kind) else { return };
        let fence = fence(&place);
        place.server.command(&["SET", "text", "x"]);
        let error = fence.write(&token(3), &[Cmd::incr("text", 1), Cmd::set("a", 1)]).await.unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
        assert!(error.to_string().contains("command 1 of 2 (INCRBY) failed, and no command had an effect"));
        assert_eq!(place.server.command(&["EXISTS", "a"]), "0");
        assert_eq!(mark(&place.server), "mark billing=3", "the fence is raised");
        let commands = [Cmd::set("a", 1), Cmd::lpush("text", "y"), Cmd::set("b", 1)];
        let error = fence.write(&token(3), &commands).await.unwrap_err();
        let FenceError::Unknown { source, .. } = &error else { panic!("{error}") };
        let partly = source.downcast_ref::<PartlyWritten>().expect("it says what was applied");
        assert_eq!((partly.failed(), partly.commands, partly.replies.len()), (2, 3, 1));
        assert!(partly.error.starts_with("WRONGTYPE"), "{}", partly.error);
        let words = error.to_string();
        assert!(words.contains("command 2 of 3 (LPUSH) failed"), "{words}");
        assert!(words.contains("The 1 before it were applied, and the 1 behind it did not run"), "{words}");
        assert_eq!(place.server.command(&["EXISTS", "a", "b"]), "1");
    }
}

#[tokio::test]
async fn a_write_without_an_answer_is_unknown_and_not_sent_again() {
    let Some(place) = place(RedisKind::Redis) else { return };
    let fence = fence(&place);
    fence.seal(&token(1)).await.unwrap();
    for (fault, total) in [(Fault::CutAfter, "1"), (Fault::CutMidAnswer, "2"), (Fault::CutBefore, "2")] {
        sent(&place);
        place.proxy.install(Rule::new(fault).containing("total").times(1));
        let error = fence.write(&token(1), &[Cmd::incr("total", 1)]).await.unwrap_err();
        assert!(matches!(error, FenceError::Unknown { .. }), "{fault:?}: {error}");
        assert_eq!(sent(&place).iter().filter(|name| name.starts_with("EVAL")).count(), 1);
        assert_eq!(place.server.command(&["GET", "total"]), total, "{fault:?}");
    }
    fence.write(&token(1), &[Cmd::incr("total", 1)]).await.expect("the next call connects again");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_was_certainly_not_written() {
    let Some(place) = place(RedisKind::Redis) else { return };
    let fence = fence(&place);
    place.proxy.refuse_connections();
    let error = fence.seal(&token(1)).await.unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Unreachable, .. }), "{error}");
    place.proxy.accept_connections();
    fence.seal(&token(1)).await.unwrap();
}

/// The holder saw its loss and stopped. Its write was already sent, and arrives after the next holder has sealed.
#[tokio::test]
async fn a_write_that_was_sent_before_the_takeover_and_arrives_after_it_is_refused() {
    let Some(place) = place(RedisKind::Redis) else { return };
    let (old, new) = (fence(&place), fence(&place));
    old.write(&token(1), &[Cmd::set("a", "first")]).await.unwrap();
    new.write(&token(1), &[Cmd::exists("a")]).await.unwrap();
    place
        .proxy
        .install(Rule::new(Fault::CutThenDeliver(Duration::from_millis(300))).containing("late").times(1));
    let error = old.write(&token(1), &[Cmd::set("a", "late")]).await.unwrap_err();
    assert!(matches!(error, FenceError::Unknown { .. }), "{error}");
    new.seal(&token(2)).await.unwrap();
    wait_until("the late write has arrived", || {
        place
            .proxy
            .log()
            .iter()
            .any(|exchange| exchange.target.contains("late") && !exchange.served.is_empty())
    });
    assert_eq!(place.server.command(&["GET", "a"]), "first");
}

#[tokio::test]
async fn what_is_not_a_mark_is_never_overwritten() {
    for kind in RedisKind::ALL {
        let Some(place) = place(kind) else { return };
        let fence = fence(&place);
        let key = fence.mark_key().to_owned();
        for set in [
            &["SET", &key, "x"][..],
            &["HSET", &key, "other", "7"],
            &["HSET", &key, "mark", ""],
            &["HSET", &key, "mark", "7"],
            &["HSET", &key, "mark", "billing=0"],
            &["HSET", &key, "mark", "billing=0x7"],
            &["HSET", &key, "mark", "billing=7e3"],
            &["HSET", &key, "mark", "billing=-1"],
            &["HSET", &key, "mark", "billing=07"],
            &["HSET", &key, "mark", "billing=99999999999999999"],
            &["HSET", &key, "mark", "billing=9007199254740993"],
            &["HSET", &key, "mark", "=7"],
        ] {
            place.server.command(&["DEL", &key]);
            place.server.command(set);
            let before = place.server.command(&["DUMP", &key]);
            let error = fence.write(&token(8), &[Cmd::set("a", 1)]).await.unwrap_err();
            let words = error.to_string();
            assert!(matches!(error, FenceError::Foreign { .. }), "{set:?}: {error}");
            assert!(words.contains(&format!("{key:?}")) && words.contains("Inspect"), "{words}");
            assert_eq!(place.server.command(&["DUMP", &key]), before);
            assert_eq!(place.server.command(&["EXISTS", "a"]), "0");
        }
    }
}

#[tokio::test]
async fn a_mark_that_went_back_is_refused_until_it_is_acknowledged() {
    for kind in RedisKind::ALL {
        let Some(place) = place(kind) else { return };
        let fence = fence(&place);
        fence.write(&token(3), &[Cmd::set("a", "three")]).await.unwrap();
        let old = place.server.snapshot();
        fence.write(&token(5), &[Cmd::set("a", "five")]).await.unwrap();
        let lose: [(&dyn Fn(), u64); 4] = [
            (&|| place.server.restart_from(&old), 3),
            (&|| drop(place.server.command(&["FLUSHALL"])), 0),
            (&|| drop(place.server.command(&["DEL", "tenure:fence:{ledger}"])), 0),
            (&|| place.server.restart_without_data(), 0),
        ];
        for (lose, left) in lose {
            lose();
            for offered in [3, 4, 5, 6] {
                let write =
                    async || fence.write(&token(offered), &[Cmd::set("a", "late")]).await.unwrap_err();
                let mut error = write().await;
                if matches!(error, FenceError::Unknown { .. }) {
                    // The connection broke with the restart.
                    error = write().await;
                }
                let FenceError::WentBack { seen, shown, .. } = error else { panic!("{kind:?} {error}") };
                assert_eq!((seen.get(), shown.get()), (5, left));
            }
            fence.acknowledge(Token::new(left).unwrap());
            fence.write(&token(5), &[Cmd::set("a", "five")]).await.unwrap();
            assert!(fence.write(&token(4), &[Cmd::set("a", "late")]).await.unwrap_err().is_stale());
        }
    }
}

#[tokio::test]
async fn kill_and_restart_of_a_server_that_syncs_every_write_keep_the_fence() {
    for kind in RedisKind::ALL {
        let Some(place) = Place::start(kind, RedisSetup::new().durable(), plain) else { return };
        for round in 1..=8 {
            fence(&place).write(&token(round * 10), &[Cmd::set("a", round)]).await.unwrap();
            place.server.restart();
            let error =
                fence(&place).write(&token(round * 10 - 1), &[Cmd::set("a", "late")]).await.unwrap_err();
            assert!(error.is_stale(), "{error}");
            assert_eq!(place.server.command(&["GET", "a"]), round.to_string());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_the_lease_on_the_same_server_a_token_is_stale_from_the_grant_of_the_next_one() {
    for kind in RedisKind::ALL {
        let Some(place) = place(kind) else { return };
        let fence = RedisFence::new(&place.store(), "ledger").unwrap().checking_grants();
        let error = fence.write(&token(7), &[Cmd::set("a", 1)]).await.unwrap_err();
        assert!(
            matches!(&error, FenceError::NotGranted { granted, .. } if *granted == Token::ZERO),
            "the server does not know the lease: {error}"
        );
        let (one, two) = (
            Coordinator::connect(place.store()).await.unwrap(),
            Coordinator::connect(place.store()).await.unwrap(),
        );
        let mut refused = 0;
        for round in 0..50 {
            let holder = if round % 2 == 0 { &one } else { &two };
            let successor = if round % 2 == 0 { &two } else { &one };
            let request = |of: &Coordinator| of.lease("billing").unwrap().without_witness().manual();
            let lease = request(holder).wait(Duration::from_secs(5)).acquire().await.unwrap();
            let old = lease.fencing_token().clone();
            lease.fenced(&fence).write(&[Cmd::set("a", round)]).await.unwrap();
            let greater = of("billing", old.token().get() + 1);
            let error = fence.write(&greater, &[Cmd::set("a", "late")]).await.unwrap_err();
            assert!(matches!(error, FenceError::NotGranted { .. }), "{error}");
            lease.renew().await.unwrap();
            lease.fenced(&fence).write(&[Cmd::set("a", round)]).await.unwrap();
            lease.release().await.unwrap();
            let next = request(successor).wait(Duration::from_secs(5)).acquire().await.unwrap();
            // The successor has written nothing yet, and the mark has the old token.
            assert!(mark(&place.server).ends_with(&old.token().to_string()));
            let error = fence.write(&old, &[Cmd::set("a", "late")]).await.unwrap_err();
            let FenceError::Stale { highest, .. } = error else { panic!("{error}") };
            assert_eq!(highest, next.token());
            refused += 1;
            next.release().await.unwrap();
        }
        assert_eq!(refused, 50);
        assert_eq!(place.server.command(&["GET", "a"]), "49");
    }
}

#[tokio::test]
async fn a_record_that_is_no_lease_grants_no_write() {
    let Some(place) = place(RedisKind::Redis) else { return };
    let fence = RedisFence::new(&place.store(), "ledger").unwrap().checking_grants();
    for data in [
        "",
        "{",
        "[]",
        "7",
        r#"{"tenure":2,"token":7,"term":"x"}"#,
        r#"{"tenure":1,"crit":["key"],"token":7,"term":"x"}"#,
        r#"{"tenure":1,"token":"7","term":"x"}"#,
    ] {
        place.server.command(&["HSET", "tenure:{billing}", "s", "x", "d", data]);
        let error = fence.write(&token(7), &[Cmd::set("a", 1)]).await.unwrap_err();
        assert!(matches!(error, FenceError::Foreign { .. }), "{data}: {error}");
    }
    place.server.command(&["HSET", "tenure:{billing}", "d", r#"{"tenure":1,"token":7}"#]);
    let error = fence.write(&token(7), &[Cmd::set("a", 1)]).await.unwrap_err();
    assert!(matches!(error, FenceError::NotGranted { .. }), "planted, and never granted: {error}");
    place.server.command(&["DEL", "tenure:{billing}"]);
    place.server.command(&["SET", "tenure:{billing}", "x"]);
    let error = fence.write(&token(7), &[Cmd::set("a", 1)]).await.unwrap_err();
    assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
    assert_eq!(place.server.command(&["EXISTS", "a", fence.mark_key()]), "0");
}

#[tokio::test]
async fn a_server_without_memory_or_that_became_a_replica_was_not_written() {
    for kind in RedisKind::ALL {
        let Some(place) = place(kind) else { return };
        let fence = fence(&place);
        fence.write(&token(1), &[Cmd::set("a", "one")]).await.unwrap();
        place.server.command(&["CONFIG", "SET", "maxmemory", "1"]);
        for offered in [1, 2] {
            let error = fence.write(&token(offered), &[Cmd::set("a", "late")]).await.unwrap_err();
            assert!(matches!(error, FenceError::Refused { reason: Reason::Unreachable, .. }), "{error}");
        }
        place.server.command(&["CONFIG", "SET", "maxmemory", "0"]);
        place.server.command(&["REPLICAOF", "127.0.0.1", "1"]);
        let error = fence.write(&token(1), &[Cmd::set("a", "late")]).await.unwrap_err();
        assert!(error.to_string().contains("READONLY"), "{error}");
        let error = fence.write(&token(1), &[Cmd::set("a", "late")]).await.unwrap_err();
        assert!(error.to_string().contains("replica"), "it connects again, and is refused: {error}");
        assert!(matches!(error, FenceError::Refused { .. }));
        assert_eq!(place.server.command(&["GET", "a"]), "one");
    }
}

#[tokio::test]
async fn a_missing_permission_is_found_before_the_first_command_or_reported_with_what_was_applied() {
    let users = "user writer on >change-me ~tenure:* ~a ~b &* +@all -incrby";
    for kind in RedisKind::ALL {
        let Some(server) = RedisServer::start_or_skip(kind, RedisSetup::new().users(users)) else { return };
        let builder = Redis::builder(&server.address().to_string()).user("writer").password("change-me");
        let fence = RedisFence::new(&builder.accept_restart().open().unwrap(), "ledger").unwrap();
        let commands = [Cmd::set("a", 1), Cmd::set("c", 1)];
        let error = fence.write(&token(1), &commands).await.unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Denied, .. }), "a key: {error}");
        assert_eq!(server.command(&["DBSIZE"]), "0");
        let error = fence.write(&token(1), &[Cmd::incr("a", 1)]).await.unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Denied, .. }), "a command: {error}");
        let commands = [Cmd::set("a", 1), Cmd::incr("a", 1)];
        let error = fence.write(&token(1), &commands).await.unwrap_err();
        let FenceError::Unknown { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.downcast_ref::<PartlyWritten>().unwrap().failed(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_of_any_store_writes_through_it() {
    let Some(place) = place(RedisKind::Valkey) else { return };
    let fence = fence(&place);
    let tenure = Coordinator::connect(tenure::store::Memory::new()).await.unwrap();
    let lease = tenure.lease("billing").unwrap().acquire().await.unwrap();
    lease.fenced(&fence).seal().await.unwrap();
    assert_eq!(lease.fenced(&fence).write(&[Cmd::incr("n", 2)]).await.unwrap(), [Value::Int(2)]);
    fence.seal(&of("billing", lease.token().get() + 1)).await.unwrap();
    let error = lease.fenced(&fence).write(&[Cmd::incr("n", 2)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
}

#[tokio::test]
async fn a_write_that_no_replica_confirms_is_unknown_also_if_the_mark_does_not_change() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let replica = server.replica();
    wait_until("the replica confirms writes", || server.info("slave0").contains("state=online"));
    let builder = Redis::builder(&server.address().to_string()).accept_failover();
    let store = builder.wait_for_replicas(1, false).open().unwrap();
    let fence = RedisFence::new(&store, "ledger").unwrap();
    fence.write(&token(3), &[Cmd::set("a", 1)]).await.unwrap();
    assert_eq!(mark(&replica), "mark billing=3", "the write waited for the replica");
    replica.pause();
    for _ in 0..2 {
        let error = fence.seal(&token(3)).await.unwrap_err();
        assert!(matches!(error, FenceError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains("0 of 1 replicas confirmed"), "{error}");
    }
    assert!(fence.seal(&token(2)).await.unwrap_err().is_stale());
    replica.resume();
    fence.seal(&token(3)).await.unwrap();
}
