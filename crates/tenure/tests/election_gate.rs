//! The gate in front of a service: requests pass on the leader, and followers name it.

mod support;

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::election::gate::{LeaderGateLayer, NotLeader};
use tenure::store::Memory;
use tenure::store::memory::GetFault;
use tenure::{Coordinator, Election, Holder, Term};
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service, ServiceExt, service_fn};

use support::{World, eventually, spawn};

const TTL: Duration = Duration::from_secs(16);
const MOMENT: Duration = Duration::from_millis(100);

fn election(process: &Coordinator, address: &str) -> Election {
    let holder = Holder::new("node").unwrap().at(address).unwrap();
    process.election("k").unwrap().ttl(TTL).holder(holder)
}

async fn lead(election: &Election) -> Term {
    election.campaign().unwrap().next().await.unwrap()
}

/// A service that counts its calls.
fn counter(
    calls: &Arc<AtomicUsize>,
) -> impl Service<u32, Response = String, Error = Infallible, Future: Send> + Clone + use<> {
    let calls = Arc::clone(calls);
    service_fn(move |request: u32| {
        calls.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, Infallible>(format!("served {request}")) }
    })
}

#[tokio::test]
async fn requests_pass_on_the_leader_and_a_follower_names_it() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let (one, other) = (election(&a, "http://a"), election(&b, "http://b"));
    let calls = Arc::new(AtomicUsize::new(0));
    let gates = [&one, &other].map(|election| LeaderGateLayer::new(election).unwrap().layer(counter(&calls)));
    world.pass(MOMENT).await;
    let refused = gates[0].clone().oneshot(1).await.unwrap_err();
    let not_leader = refused.downcast_ref::<NotLeader>().unwrap();
    assert_eq!((not_leader.leader.as_ref(), calls.load(Ordering::SeqCst)), (None, 0));
    assert_eq!(not_leader.to_string(), "not the leader of k, and no leader is known: try again later");

    let term = lead(&one).await;
    world.pass(MOMENT).await;
    assert_eq!(gates[0].clone().oneshot(2).await.unwrap(), "served 2");
    let refused = gates[1].clone().oneshot(3).await.unwrap_err();
    assert_eq!(refused.to_string(), "not the leader of k, it is at http://a");
    let refused = refused.downcast::<NotLeader>().unwrap();
    assert_eq!(refused.leader.unwrap().token, term.token());

    term.resign().await.unwrap();
    let itself = gates[0].clone().oneshot(4).await.unwrap_err().downcast::<NotLeader>().unwrap();
    assert_eq!(itself.leader, None, "a former leader does not send its callers to itself");
    let _next = lead(&other).await;
    world.pass(MOMENT).await;
    assert_eq!(gates[1].clone().oneshot(5).await.unwrap(), "served 5");
    let refused = gates[0].clone().oneshot(6).await.unwrap_err();
    assert_eq!(refused.to_string(), "not the leader of k, it is at http://b");
    assert_eq!(calls.load(Ordering::SeqCst), 2, "the service of a follower is never called");
}

#[tokio::test]
async fn a_follower_can_answer_instead_of_failing() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _term = lead(&election(&a, "http://a")).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let layer = LeaderGateLayer::new(&election(&b, "http://b"))
        .unwrap()
        .answering(|not_leader: NotLeader| format!("see {}", not_leader.address().unwrap_or("nothing")));
    let gate = layer.layer(counter(&calls));
    world.pass(MOMENT).await;
    assert_eq!(gate.oneshot(1).await.unwrap(), "see http://a");
}

#[tokio::test]
async fn a_running_request_is_dropped_when_the_term_is_over_and_the_release_waits_for_it() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a, "http://a");
    let term = lead(&election).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let slow = service_fn(move |()| {
        counted.fetch_add(1, Ordering::SeqCst);
        pending::<Result<(), Infallible>>()
    });
    let gate = LeaderGateLayer::new(&election).unwrap().layer(slow);
    let request = spawn(gate.oneshot(()));
    eventually("it is running", || calls.load(Ordering::SeqCst) == 1).await;
    let (resigned, dropped) = tokio::join!(term.resign(), request);
    resigned.unwrap();
    assert!(dropped.unwrap().unwrap_err().is::<NotLeader>());
}

#[tokio::test]
async fn knowledge_about_the_leader_that_is_too_old_names_none() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _term = lead(&election(&a, "http://a")).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let layer = LeaderGateLayer::new(&election(&b, "http://b")).unwrap();
    let gates = [TTL / 2, 100 * TTL].map(|age| layer.clone().max_age(age).layer(counter(&calls)));
    world.pass(2 * TTL).await;
    let refused = gates[0].clone().oneshot(1).await.unwrap_err().downcast::<NotLeader>().unwrap();
    assert_eq!(refused.address(), Some("http://a"), "it is read several times per ttl");
    world.memory.faults().every_get(Some(GetFault::Fail));
    world.pass(TTL).await;
    let refused = gates[0].clone().oneshot(2).await.unwrap_err().downcast::<NotLeader>().unwrap();
    assert!(refused.leader.is_none() && refused.age.unwrap() > TTL / 2, "{refused:?}");
    let refused = gates[1].clone().oneshot(3).await.unwrap_err().downcast::<NotLeader>().unwrap();
    assert_eq!(refused.address(), Some("http://a"));
}

#[tokio::test]
async fn a_node_that_becomes_the_leader_does_not_call_a_service_that_is_not_ready() {
    let world = World::new();
    let a = world.process("a").await;
    let election = election(&a, "http://a");
    let calls = Arc::new(AtomicUsize::new(0));
    let mut gate = LeaderGateLayer::new(&election).unwrap().layer(counter(&calls));
    let ready = gate.ready().await.unwrap();
    let _term = lead(&election).await;
    assert!(ready.call(1).await.unwrap_err().is::<NotLeader>());
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(gate.ready().await.unwrap().call(2).await.unwrap(), "served 2");
}

/// Requests that are being served, by node. Two nodes never serve at the same time.
#[derive(Debug, Default)]
struct Serving(Mutex<[usize; 2]>);

/// One request that is being served, until it ends or is dropped.
struct Served(Arc<Serving>, usize);

impl Serving {
    fn begin(self: &Arc<Self>, node: usize) -> Served {
        let mut running = self.0.lock().unwrap();
        running[node] += 1;
        assert_eq!(running[1 - node], 0, "two nodes serve at once");
        Served(Arc::clone(self), node)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.0.lock().unwrap()[self.1] -= 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_are_never_served_by_two_nodes_while_the_leader_changes() {
    let (store, serving) = (Memory::new(), Arc::new(Serving::default()));
    let served = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let over = CancellationToken::new();
    let mut tasks = Vec::new();
    for (node, address) in ["http://a", "http://b"].into_iter().enumerate() {
        let process = Coordinator::connect(store.clone()).await.unwrap();
        let election = election(&process, address).ttl(Duration::from_secs(1));
        let (serving, counted) = (Arc::clone(&serving), Arc::clone(&served));
        let service = service_fn(move |()| {
            let (serving, counted) = (Arc::clone(&serving), Arc::clone(&counted));
            async move {
                let _served = serving.begin(node);
                BootClock.sleep_until(BootClock.now() + Duration::from_millis(5)).await;
                counted[node].fetch_add(1, Ordering::SeqCst);
                Ok::<_, Infallible>(())
            }
        });
        let gate = LeaderGateLayer::new(&election).unwrap().layer(service);
        for _ in 0..8 {
            let (gate, over) = (gate.clone(), over.clone());
            tasks.push(spawn(async move {
                while !over.is_cancelled() {
                    if let Err(error) = gate.clone().oneshot(()).await {
                        assert!(error.is::<NotLeader>(), "{error}");
                        BootClock.sleep_until(BootClock.now() + Duration::from_millis(1)).await;
                    }
                }
            }));
        }
        let over = over.clone();
        tasks.push(spawn(async move {
            let mut campaign = election.campaign().unwrap();
            // Each node leads for a moment, and resigns while requests are being served.
            while let Some(Ok(term)) = over.run_until_cancelled(campaign.next()).await {
                BootClock.sleep_until(BootClock.now() + Duration::from_millis(40)).await;
                term.resign().await.unwrap();
            }
            process.shutdown().await.unwrap();
        }));
    }
    BootClock.sleep_until(BootClock.now() + Duration::from_secs(2)).await;
    over.cancel();
    for task in tasks {
        task.await.unwrap();
    }
    let counts = served.each_ref().map(|count| count.load(Ordering::SeqCst));
    assert!(counts.iter().all(|count| *count > 10), "both nodes have led and served: {counts:?}");
}
