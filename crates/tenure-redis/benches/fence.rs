//! Cost of a fenced write on Redis, next to the same write without a fence through the same client in the same run.
//!
//! Times depend on the machine; compare the ratios. A missed goal is printed, and does not fail the run.
//! `TENURE_BENCH_EFFORT=10` repeats everything ten times as often.

use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, Script};
use tenure_fence::{Fence, FencingToken, Seal};
use tenure_redis::{Redis, RedisFence};
use tenure_testkit::{
    Effort, Pace, RedisKind, RedisServer, RedisSetup, Samples, SlowLink, block_on, print_ratio,
};

fn main() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let effort = Effort::from_environment();
    println!("on Redis {}", server.info("redis_version"));
    block_on(async {
        let connection =
            Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
        let store = Redis::builder(&server.address().to_string()).accept_restart().open().unwrap();
        let fence = RedisFence::new(&store, "ledger").unwrap();
        let granted = RedisFence::new(&store, "granted").unwrap().checking_grants();
        let token: FencingToken = "billing=1762000000000001".parse().unwrap();
        server.command(&["HSET", "tenure:{billing}", "s", "x", "d", RECORD]);
        fence.seal(&token).await.unwrap();
        granted.seal(&token).await.unwrap();
        println!("{}", Samples::heading());
        for pace in [Pace::Lone, Pace::InARow] {
            println!("{pace:?}");
            one_by_one(connection.clone(), &fence, &granted, &token, pace, effort.rounds * 5).await;
            println!();
        }
        at_once(connection, &fence, &token, effort.rounds.div_ceil(10)).await;
        println!();
        behind_a_network(&server, &token, effort.rounds).await;
    });
}

/// One write after the other: each after a pause, from which processors and server have to wake up, or without one.
async fn one_by_one(
    mut bare: MultiplexedConnection,
    fence: &RedisFence,
    granted: &RedisFence,
    token: &FencingToken,
    pace: Pace,
    rounds: usize,
) {
    let value = vec![b'x'; 100];
    let script = Script::new(SCRIPT);
    let own = Script::new(include_str!("../src/scripts/fence.lua"));
    let mut set = Samples::new("a bare SET");
    let mut scripted = Samples::new("a bare script with the same SET");
    let mut fence_script = Samples::new("the script of the fence, through the bare client");
    let mut fenced = Samples::new("a fenced SET");
    let mut checked = Samples::new("a fenced SET that checks the grant too");
    let mut three = Samples::new("three SETs, in a bare transaction");
    let mut fenced_three = Samples::new("three SETs, fenced");
    for _ in 0..rounds {
        // Interleaved, so that other load on the machine affects all of them equally.
        let command = [Cmd::set("a", &value)];
        pace.take(&mut set, command[0].exec_async(&mut bare)).await.unwrap();
        let mut call = script.key("a");
        call.arg(&value);
        pace.take(&mut scripted, call.invoke_async::<()>(&mut bare)).await.unwrap();
        let mut call = own.key(fence.mark_key());
        call.key("a").arg(token.to_string()).arg(0).arg("").arg(3).arg("SET").arg("a").arg(&value);
        pace.take(&mut fence_script, call.invoke_async::<redis::Value>(&mut bare)).await.unwrap();
        pace.take(&mut fenced, fence.write(token, &command)).await.unwrap();
        pace.take(&mut checked, granted.write(token, &command)).await.unwrap();
        let commands = ["a", "b", "c"].map(|key| Cmd::set(key, &value));
        let mut transaction = redis::pipe();
        transaction.atomic();
        for command in &commands {
            transaction.add_command(command.clone());
        }
        pace.take(&mut three, transaction.exec_async(&mut bare)).await.unwrap();
        pace.take(&mut fenced_three, fence.write(token, &commands)).await.unwrap();
    }
    for samples in [&set, &scripted, &fence_script, &fenced, &checked, &three, &fenced_three] {
        println!("{samples}");
    }
    println!();
    print_ratio("a fenced SET, to the bare SET", fenced.at(50), set.at(50), Some(1.3));
    print_ratio("a fenced SET, to the bare script", fenced.at(50), scripted.at(50), Some(1.3));
    print_ratio("the script of the fence, to the bare script", fence_script.at(50), scripted.at(50), None);
    print_ratio("a fenced SET that checks the grant, to the bare SET", checked.at(50), set.at(50), None);
    print_ratio("three fenced SETs, to the bare transaction", fenced_three.at(50), three.at(50), Some(1.3));
}

/// Many writes at once, pipelined on one connection.
async fn at_once(bare: MultiplexedConnection, fence: &RedisFence, token: &FencingToken, rounds: usize) {
    let value = vec![b'x'; 100];
    let commands: Vec<[Cmd; 1]> =
        (0..AT_ONCE).map(|number| [Cmd::set(format!("many:{number}"), &value)]).collect();
    let mut set = Samples::new("1,000 bare SETs, pipelined");
    let mut fenced = Samples::new("1,000 fenced SETs");
    for _ in 0..rounds {
        let all = set.take_async(join_all(commands.iter().map(|command| {
            let mut bare = bare.clone();
            async move { command[0].exec_async(&mut bare).await }
        })));
        all.await.into_iter().for_each(|written| written.unwrap());
        let all = fenced.take_async(join_all(commands.iter().map(|command| fence.write(token, command))));
        all.await.into_iter().for_each(|written| drop(written.unwrap()));
    }
    println!("{set}\n{fenced}");
    print_ratio("time of 1,000 fenced SETs, to that of bare ones", fenced.at(50), set.at(50), None);
}

/// One write after the other, behind a network with a short round trip.
async fn behind_a_network(server: &RedisServer, token: &FencingToken, rounds: usize) {
    let link = SlowLink::to(server.address(), ROUND_TRIP).await;
    let client = Client::open(server.url_at(link.address())).unwrap();
    let mut bare = client.get_multiplexed_async_connection().await.unwrap();
    let store = Redis::builder(&link.address().to_string()).accept_restart().open().unwrap();
    let fence = RedisFence::new(&store, "ledger").unwrap();
    fence.seal(token).await.unwrap();
    let command = [Cmd::set("a", vec![b'x'; 100])];
    let mut set = Samples::new("a bare SET, on a network");
    let mut fenced = Samples::new("a fenced SET, on a network");
    for _ in 0..rounds {
        set.take_async(command[0].exec_async(&mut bare)).await.unwrap();
        fenced.take_async(fence.write(token, &command)).await.unwrap();
    }
    println!("{set}\n{fenced}");
    print_ratio("a fenced SET, to the bare SET, on a network", fenced.at(50), set.at(50), Some(1.3));
}

/// The same write as a script, without a check.
const SCRIPT: &str = "return redis.call('SET', KEYS[1], ARGV[1])";

/// A record as a holder writes it.
const RECORD: &str = r#"{"tenure":1,"state":"held","kept_by":"self","term":"8d3f6a5b1c2e4f708192a3b4c5d6e7f8","token":1762000000000001,"ttl_ms":15000,"nonce":"8d3f6a5b1c2e4f708192a3b4c5d6e7f8","sequence":1,"holder":{"id":"ann"},"granted_at":"2026-11-15T11:42:17.008Z","written_at":"2026-11-15T11:42:17.008Z"}"#;

const AT_ONCE: usize = 1000;
const ROUND_TRIP: Duration = Duration::from_millis(1);
