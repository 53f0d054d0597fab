//! Cost of 10,000 held leases of one process: memory, and processor time for their renewals.

mod live_bytes;

use std::time::Duration;

use futures_util::future::join_all;
use rustix::time::{ClockId, clock_gettime};
use tenure::clock::{BootClock, Clock};
use tenure::store::Memory;
use tenure::{Coordinator, Lease};
use tenure_store::{Prefix, Store};
use tenure_testkit::print_ratio;
use tokio::runtime::Runtime;

use live_bytes::LiveBytes;

#[global_allocator]
static LIVE: LiveBytes = LiveBytes::new();

/// Leases in memory, which start one after the other within a renewal period.
pub(crate) fn many(runtime: &Runtime) {
    let memory = Memory::new();
    let coordinator = runtime.block_on(Coordinator::connect(memory.clone())).unwrap();
    let before = LIVE.get();
    let leases: Vec<Lease> = runtime.block_on(async {
        let start = BootClock.now();
        let acquire = async |number: u32| {
            BootClock.sleep_until(start + PERIOD * number / LEASES).await;
            coordinator.lease(format!("lease-{number}")).unwrap().ttl(TTL).acquire().await.unwrap()
        };
        join_all((0..LEASES).map(acquire)).await
    });
    let calls = memory.calls();
    let (cpu, used) = runtime.block_on(async {
        // Every lease has been renewed by then.
        BootClock.sleep_until(BootClock.now() + PERIOD).await;
        let cpu = cpu_time();
        BootClock.sleep_until(BootClock.now() + MEASURED).await;
        (cpu_time() - cpu, LIVE.get() - before)
    });
    assert!(leases.iter().all(|lease| lease.check().is_ok()));
    let renewals = (memory.calls() - calls).puts;
    let stored = runtime.block_on(stored_bytes(&memory));
    let per_lease = used as u64 / u64::from(LEASES);
    let per_minute = cpu * (Duration::from_secs(60).as_millis() / MEASURED.as_millis()) as u32;
    println!(
        "\n{LEASES} held leases with a ttl of {TTL:?}, in memory: {renewals} renewals in {:?}",
        PERIOD + MEASURED
    );
    println!(
        "{per_lease} bytes per lease, {stored} of them the record in the store, which other stores keep elsewhere"
    );
    println!("{per_minute:?} of processor time per minute");
    let bytes = |count: u64| Duration::from_nanos(count);
    print_ratio("bytes per held lease, to 2 KiB", bytes(per_lease), bytes(2048), Some(1.0));
    print_ratio("processor time per minute, to 1 s", per_minute, Duration::from_secs(1), Some(1.0));
    runtime.block_on(coordinator.shutdown()).unwrap();
}

/// Average size of the values in the store.
async fn stored_bytes(memory: &Memory) -> usize {
    use futures_util::TryStreamExt;
    let keys: Vec<_> = memory.list(&Prefix::all()).try_collect().await.unwrap();
    let mut bytes = 0;
    for key in &keys {
        bytes += memory.get(key).await.unwrap().entry.map_or(0, |entry| entry.value.len());
    }
    bytes / keys.len()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

const LEASES: u32 = 10_000;
const TTL: Duration = Duration::from_secs(15);
const PERIOD: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(20);
