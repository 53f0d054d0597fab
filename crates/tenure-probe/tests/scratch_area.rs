//! The effects of a probe on a store, and the entries that remain.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tenure::store::Memory;
use tenure::store::memory::{GetFault, PutFault};
use tenure_probe::{Plan, Probe, ProbeError};
use tenure_store::{Expect, Key, Prefix, Put, Reason, Store};

fn probe(memory: &Memory, plan: Plan) -> Probe {
    Probe::open(plan, 7, || Ok::<_, ProbeError>(Arc::new(memory.clone()) as Arc<dyn Store>)).unwrap()
}

fn small() -> Plan {
    Plan::default().racers(8).unwrap().rounds(2).unwrap().samples(10).unwrap()
}

async fn keys(memory: &Memory) -> Vec<String> {
    memory.list(&Prefix::all()).map(|key| key.unwrap().to_string()).collect().await
}

async fn plant(memory: &Memory, name: &str) {
    let put = memory.put(&Key::from_stored(name).unwrap(), "x".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Applied(_)));
}

#[tokio::test]
async fn a_probe_writes_only_in_its_scratch_area_and_leaves_nothing_there() {
    let memory = Memory::new();
    for name in ["backup", ".tenure/scratch", ".tenure/other/a"] {
        plant(&memory, name).await;
    }
    let probe = probe(&memory, small());
    probe.run(&|_| ()).await.unwrap();
    let scratch_area = format!("{}/", probe.scratch_area());
    let written: Vec<_> =
        keys(&memory).await.into_iter().filter(|key| key.starts_with(&scratch_area)).collect();
    assert!(written.len() > 100, "{}", written.len());
    assert!(written.iter().all(|key| Key::from_stored(key).unwrap().is_reserved()));
    let cleaned = probe.clean_up(Duration::from_secs(60)).await;
    assert!(cleaned.removed >= written.len() && cleaned.left == 0, "{cleaned:?}");
    assert_eq!(keys(&memory).await, [".tenure/other/a", ".tenure/scratch", "backup"]);
}

#[tokio::test]
async fn a_later_probe_removes_the_remains_of_a_killed_one_and_spares_a_running_one() {
    let memory = Memory::new();
    let now = now_in_seconds();
    let running = format!(".tenure/probe/{}-00000001/a", now - 60);
    for name in [&format!(".tenure/probe/{}-00000002/a", now - 90_000), &running, ".tenure/probe/mine"] {
        plant(&memory, name).await;
    }
    let cleaned = probe(&memory, small()).clean_up(Duration::from_secs(60)).await;
    assert_eq!((cleaned.removed, cleaned.older, cleaned.left), (0, 1, 0), "{cleaned:?}");
    assert_eq!(keys(&memory).await, [running.as_str(), ".tenure/probe/mine"]);
}

fn now_in_seconds() -> u64 {
    use tenure::clock::{BootClock, Clock};
    BootClock::new().wall().as_millis() / 1_000
}

#[tokio::test]
async fn a_store_that_disappears_during_a_probe_is_unavailable_and_not_refused() {
    let memory = Memory::new();
    let probe = probe(&memory, small());
    let gone = probe
        .run(&|progress| {
            if progress.done == 10 {
                memory.faults().every_put(Some(PutFault::Refuse(Reason::Unreachable)));
                memory.faults().every_get(Some(GetFault::Fail));
            }
        })
        .await
        .unwrap_err();
    assert!(matches!(gone, ProbeError::Unavailable { .. }), "{gone}");
}

#[tokio::test]
async fn a_store_that_denies_access_is_unavailable_and_one_that_cannot_is_refused() {
    for (reason, unavailable) in [(Reason::Denied, true), (Reason::Unsupported, false)] {
        let memory = Memory::new();
        memory.faults().every_put(Some(PutFault::Refuse(reason)));
        let error = probe(&memory, small()).run(&|_| ()).await.unwrap_err();
        assert_eq!(matches!(error, ProbeError::Unavailable { .. }), unavailable, "{error}");
    }
}

/// Users pay per call and read this number.
#[tokio::test]
async fn the_expected_number_of_calls_is_about_right() {
    for plan in [small(), Plan::default(), Plan::default().racers(64).unwrap().rounds(20).unwrap()] {
        let memory = Memory::builder().name("counted").build();
        let probe = probe(&memory, plan);
        probe.run(&|_| ()).await.unwrap();
        probe.clean_up(Duration::from_secs(60)).await;
        let (expected, made) = (probe.calls_expected(), probe.calls().total());
        println!("{plan:?}: {expected} expected, {made} made, {:?}", probe.calls());
        // Calls on a memory store never overlap, so its chains need fewer of them.
        assert!(expected / 2 <= made && made <= expected * 3 / 2, "{expected} expected, {made} made");
    }
}
