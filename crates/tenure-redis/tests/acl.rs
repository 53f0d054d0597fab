//! The ACL rules of the documentation, applied to a real server.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use tenure::Coordinator;
use tenure_redis::Redis;
use tenure_store::{Key, Prefix, Reason, Store, StoreError};
use tenure_testkit::{RedisKind, RedisServer, RedisSetup, key};

/// The line with the rules on the page.
fn rules() -> String {
    let page = include_str!("../../../docs/stores/redis.md");
    page.lines().find(|line| line.starts_with("user tenure on")).expect("the page has rules").to_owned()
}

fn at(server: &RedisServer, user: &str) -> tenure_redis::RedisBuilder {
    Redis::builder(&server.address().to_string()).user(user).password("change-me")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_documented_rules_are_enough_for_everything() {
    for kind in RedisKind::ALL {
        let Some(server) = RedisServer::start_or_skip(kind, RedisSetup::new().users(&rules())) else {
            continue;
        };
        let second = Duration::from_secs(1);
        let store = at(&server, "tenure").quarantine(second).open().unwrap();
        let coordinator = Coordinator::connect(store.clone()).await.unwrap();
        let request = coordinator.lease("k").unwrap().ttl(second).without_witness();
        let lease = request.wait(second * 5).acquire().await.unwrap();
        lease.renew().await.unwrap();
        lease.release().await.unwrap();
        let listed: Vec<Key> = store.list(&Prefix::all()).try_collect().await.unwrap();
        assert!(listed.contains(&key("k")));
        store.scratch().unwrap().sweep(&Key::from_stored(".tenure/probe/1/a").unwrap()).await.unwrap();
        let mut hints = store.watch(&Prefix::of(&key("k"))).unwrap();
        let hint = tokio::time::timeout(second * 5, hints.next()).await;
        assert!(matches!(hint, Ok(Some(()))), "the subscription is allowed");

        // The same user can do nothing else.
        let elsewhere = at(&server, "tenure").quarantine(second).prefix("other:").open().unwrap();
        let error = elsewhere.get(&key("k")).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Refused(refused) if refused.reason == Reason::Denied),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_missing_permission_is_named() {
    let users = "user writer on >change-me ~tenure:* &tenure:* +@all -info -config\n\
                 user nobody on >change-me ~tenure:* +@all -@scripting";
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new().users(users)) else {
        return;
    };
    let refusal = async |builder: tenure_redis::RedisBuilder| {
        let Err(StoreError::Refused(refused)) = builder.open().unwrap().get(&key("k")).await else {
            panic!()
        };
        (refused.reason, refused.to_string())
    };
    let (reason, sentence) = refusal(at(&server, "writer")).await;
    assert_eq!(reason, Reason::Unsupported);
    assert!(
        sentence.contains("does not show its settings") && sentence.contains("accept=unknown-settings"),
        "{sentence}"
    );
    let (_, sentence) = refusal(at(&server, "writer").accept_unknown_settings()).await;
    assert!(
        sentence.contains("does not show its run id") && sentence.contains("accept=restart"),
        "{sentence}"
    );
    let accepted = at(&server, "writer").accept_unknown_settings().accept_restart().open().unwrap();
    accepted.get(&key("k")).await.unwrap();
    let (reason, sentence) = refusal(at(&server, "nobody").accept_restart()).await;
    assert_eq!(reason, Reason::Denied, "{sentence}");
    assert!(sentence.contains("NOPERM"), "{sentence}");
}
