//! Cost of a slot in a group of 64, in calls and as a multiple of the cost of a lease.

use std::fmt;
use std::time::Duration;

use futures_util::future::join;
use tenure::clock::{BootClock, Clock};
use tenure::store::Memory;
use tenure::store::memory::Calls;
use tenure::{Coordinator, Slot};
use tenure_testkit::{Samples, print_ratio};
use tokio::runtime::Runtime;

/// By contenders that have seen nothing of the group, next to contenders that have seen nothing of a lease.
pub(crate) fn slots(runtime: &Runtime) {
    let lease = Memory::new();
    let first = connect(runtime, &lease);
    drop(runtime.block_on(first.lease("k").unwrap().acquire()).unwrap());
    drop(first);
    for (name, held) in [("an empty", 0), ("a half-full", SLOTS / 2), ("an almost full", SLOTS - 1)] {
        let memory = Memory::new();
        let holder = connect(runtime, &memory);
        // Each slot was used before: the first use of a slot plants its record.
        let mut kept: Vec<_> = (0..SLOTS).map(|_| slot(runtime, &holder)).collect();
        for free in kept.split_off(held as usize) {
            runtime.block_on(free.release()).unwrap();
        }
        let mut one = Samples::new("a cold acquire of a lease");
        let mut cold = Samples::new("a cold acquire of a slot");
        let mut calls = Counted::default();
        for _ in 0..ROUNDS {
            let contender = connect(runtime, &lease);
            let request = contender.lease("k").unwrap().without_witness();
            let granted = one.take(|| runtime.block_on(request.acquire()).unwrap());
            runtime.block_on(granted.release()).unwrap();
            let contender = connect(runtime, &memory);
            calls.count(&memory, || acquire_and_release(runtime, &contender, &mut cold));
        }
        println!("\nin {name} group of {SLOTS} slots, in memory\n{one}\n{cold}");
        println!("a cold acquire and a release of a slot: {calls}");
        print_ratio("a cold acquire of a slot, to one of a lease", cold.at(50), one.at(50), None);
    }
    waiting(runtime);
}

/// A contender that waits in a full group of a store without hints, whose listings show stamps: its calls, and the time
/// until it is granted a released slot.
fn waiting(runtime: &Runtime) {
    let memory = Memory::builder().declare(|guarantees| guarantees.watch = false).build();
    let (holder, contender) = (connect(runtime, &memory), connect(runtime, &memory));
    let request = |of: &Coordinator| of.slots("g", SLOTS).unwrap().without_witness().ttl(WAIT_TTL);
    let mut held: Vec<_> =
        (0..SLOTS).map(|_| runtime.block_on(request(&holder).try_acquire()).unwrap()).collect();
    let (mut found, mut calls) = (Vec::new(), Counted::default());
    for round in 0..WAITS {
        let waits = request(&contender).acquire();
        let releases = async {
            BootClock.sleep_until(BootClock.now() + WAIT_TTL / 2).await;
            let before = memory.calls();
            BootClock.sleep_until(BootClock.now() + WAIT_TTL * 2).await;
            calls.pairs.push(memory.calls() - before);
            // At another phase of the listings each time.
            BootClock.sleep_until(BootClock.now() + WAIT_TTL * round / WAITS).await;
            let released = BootClock.now();
            held.swap_remove(round as usize).release().await.unwrap();
            released
        };
        let (granted, released) = runtime.block_on(join(waits, releases));
        found.push(BootClock.now().since(released).as_secs_f64() / WAIT_TTL.as_secs_f64());
        held.push(granted.unwrap());
    }
    found.sort_by(f64::total_cmp);
    let (median, most) = (found[found.len() / 2], found[found.len() - 1]);
    let mean = |of: fn(&Calls) -> u64| {
        calls.pairs.iter().map(of).sum::<u64>() as f64 / calls.pairs.len() as f64 / 2.0
    };
    println!("\na contender that waits in a full group of {SLOTS} slots, in memory without hints");
    println!("per ttl: {:.1} listings and {:.1} reads", mean(|calls| calls.lists), mean(|calls| calls.gets));
    println!("a released slot is granted after {median:.2} ttl (median), {most:.2} ttl (longest of {WAITS})");
}

fn connect(runtime: &Runtime, memory: &Memory) -> Coordinator {
    runtime.block_on(Coordinator::connect(memory.clone())).unwrap()
}

fn slot(runtime: &Runtime, coordinator: &Coordinator) -> Slot {
    let request = coordinator.slots("g", SLOTS).unwrap().without_witness().ttl(Duration::from_secs(3600));
    runtime.block_on(request.try_acquire()).unwrap()
}

/// Samples the acquire alone.
fn acquire_and_release(runtime: &Runtime, coordinator: &Coordinator, acquire: &mut Samples) {
    let slot = acquire.take(|| slot(runtime, coordinator));
    runtime.block_on(slot.release()).unwrap();
}

/// Calls of several pairs of an acquire and a release.
#[derive(Default)]
struct Counted {
    pairs: Vec<Calls>,
}

impl Counted {
    fn count(&mut self, memory: &Memory, pair: impl FnOnce()) {
        let before = memory.calls();
        pair();
        self.pairs.push(memory.calls() - before);
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean =
            |of: fn(&Calls) -> u64| self.pairs.iter().map(of).sum::<u64>() as f64 / self.pairs.len() as f64;
        let (gets, puts) = (mean(|pair| pair.gets), mean(|pair| pair.puts));
        let most = self.pairs.iter().map(|pair| pair.gets).max().unwrap_or_default();
        write!(f, "{gets:.1} reads (at most {most}) and {puts:.1} writes")
    }
}

const ROUNDS: usize = 100;

/// Number of waits in a full group.
const WAITS: u32 = 8;

/// The ttl of the holders during them.
const WAIT_TTL: Duration = Duration::from_secs(2);

/// Number of slots of a group.
const SLOTS: u32 = 64;
