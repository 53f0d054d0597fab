//! Cost of a slot in a group of 64, in calls and as a multiple of the cost of a lease.

use std::fmt;
use std::time::Duration;

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

/// Number of slots of a group.
const SLOTS: u32 = 64;
