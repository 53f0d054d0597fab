//! From a crash to the next grant, in one run under two rules for the reads of a contender.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tenure::Coordinator;
use tenure::clock::{BootClock, Clock};
use tenure_testkit::{Samples, Server, print_ratio};

use super::mortal::Mortal;
use super::open;

/// Holders that renew by themselves crash at random times while one contender waits for each. Holders and contenders have
/// separate connections and no witness: they know as little about each other as on two machines.
pub(super) async fn measure(server: &Server) {
    let holders = Mortal::new(open(server), false);
    let holder = Coordinator::connect(Arc::clone(&holders)).await.unwrap();
    let mut rules = Vec::new();
    let [random, in_phase] = ["crash to grant, random phase", "crash to grant, in phase"];
    for (name, claims_ages) in [(random, true), (in_phase, false)] {
        let store = Mortal::new(open(server), claims_ages);
        let waiter = Coordinator::connect(Arc::clone(&store)).await.unwrap();
        rules.push((name, store, waiter, Samples::new(name)));
    }
    for round in 0..ROUNDS {
        let began = BootClock.now();
        let (holders, holder) = (&holders, &holder);
        let runs = rules.iter().enumerate().map(|(rule, (_, _, waiter, _))| {
            let keys = (0..KEYS).map(move |number| {
                let key = format!("takeover/{round}/{number}/{rule}");
                // At any time of a period, and of the ttls before.
                let waits = TTL * 4 + TTL * 2 * number / KEYS + TTL / 3 * (number * 7 % KEYS) / KEYS;
                take_over(holders, holder, waiter, key, waits)
            });
            join_all(keys)
        });
        let counted = async {
            BootClock.sleep_until(began + COUNTS_FROM).await;
            let from: Vec<_> = rules.iter().map(|(_, store, ..)| store.reads()).collect();
            BootClock.sleep_until(began + COUNTS_TO).await;
            let to: Vec<_> = rules.iter().map(|(_, store, ..)| store.reads()).collect();
            (from, to)
        };
        let (spans, (from, to)) = futures_util::join!(join_all(runs), counted);
        for (number, spans) in spans.into_iter().enumerate() {
            let reads = (to[number] - from[number]) as f64 / f64::from(KEYS);
            let ttls = (COUNTS_TO - COUNTS_FROM).as_secs_f64() / TTL.as_secs_f64();
            println!("{:<30} {:.2} reads per contender and ttl", rules[number].0, reads / ttls);
            spans.into_iter().for_each(|span| rules[number].3.add(span));
        }
    }
    for (name, _, _, samples) in &rules {
        println!("{samples}");
        let goals = (*name == in_phase).then_some((0.92, 1.08 + CALL.as_secs_f64() / TTL.as_secs_f64()));
        let median = format!("{name}, p50, to the ttl");
        print_ratio(&median, samples.at(50), TTL, goals.map(|goals| goals.0));
        let slow = format!("{name}, p99, to the ttl and one call");
        print_ratio(&slow, samples.at(99), TTL, goals.map(|goals| goals.1));
    }
}

/// Time from the crash of a holder until the contender, which has waited for this long, is granted the lease.
async fn take_over(
    holders: &Mortal,
    holder: &Coordinator,
    waiter: &Coordinator,
    key: String,
    waits: Duration,
) -> Duration {
    let request =
        |coordinator: &Coordinator| coordinator.lease(key.as_str()).unwrap().ttl(TTL).without_witness();
    let _held = request(holder).acquire().await.unwrap();
    let mut waiting = pin!(request(waiter).acquire());
    tokio::select! {
        _ = &mut waiting => unreachable!("it is held"),
        () = BootClock.sleep_until(BootClock.now() + waits) => {}
    }
    let crashed = BootClock.now();
    holders.kill(&key);
    let lease = waiting.await.unwrap();
    let span = BootClock.now().since(crashed);
    lease.release().await.unwrap();
    span
}

const TTL: Duration = Duration::from_secs(6);
const ROUNDS: usize = 2;

/// Number of leases at once under each rule.
const KEYS: u32 = 50;

/// No holder crashes before the end of this span, and every contender waits since before its beginning.
const COUNTS_FROM: Duration = Duration::from_secs(9);
const COUNTS_TO: Duration = Duration::from_secs(24);

/// Duration of a slow call on a busy machine.
const CALL: Duration = Duration::from_millis(100);
