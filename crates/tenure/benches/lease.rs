//! Cost of a lease, next to the bare operation in the same run.
//!
//! Times are printed and never asserted, because they depend on the machine. Compare the ratios.

mod gate;
mod many;
mod slots;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tenure::store::{File, Memory};
use tenure::{Coordinator, Creation, Election, KeyEntry, Keys, Lease, Replacement, Term};
use tenure_store::{Applied, Expect, Key, Put, Store, Version};
use tenure_testkit::{Samples, key, print_ratio};
use tokio::runtime::Runtime;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("{}", Samples::heading());
    check(&runtime);
    gate::gate();
    in_memory(&runtime);
    on_a_disk(&runtime);
    plain_key(&runtime);
    slots::slots(&runtime);
    many::many(&runtime);
}

fn check(runtime: &Runtime) {
    let lease = held(runtime);
    let (leading, _term) = led(runtime);
    let mut clock = Samples::new("a bare clock_gettime");
    let mut check = Samples::new("check");
    let mut remaining = Samples::new("remaining");
    let mut is_leader = Samples::new("is_leader");
    for _ in 0..ROUNDS {
        // Interleaved, so that other load on the machine affects all of them.
        clock.take_thousand(|| rustix::time::clock_gettime(rustix::time::ClockId::Boottime));
        check.take_thousand(|| lease.check().is_ok());
        remaining.take_thousand(|| lease.remaining());
        is_leader.take_thousand(|| leading.is_leader());
    }
    println!("{clock}\n{check}\n{remaining}\n{is_leader}");
    print_ratio("check, to a bare clock", check.at(50), clock.at(50), Some(1.5));
    print_ratio("remaining, to a bare clock", remaining.at(50), clock.at(50), Some(1.5));
    print_ratio("is_leader, to a bare clock", is_leader.at(50), clock.at(50), Some(1.5));
}

/// A renewal is one write, an encoded record, and two hops between threads. A warm acquire and a release are one write
/// each.
fn in_memory(runtime: &Runtime) {
    let mut bare = Bare::on(Memory::new(), runtime);
    let lease = held(runtime);
    let coordinator = runtime.block_on(Coordinator::connect(Memory::new())).unwrap();
    let mut replace = Samples::new("a bare replace in memory");
    let mut renew = Samples::new("renew in memory");
    let mut pair = Samples::new("a warm acquire and a release in memory");
    for _ in 0..ROUNDS {
        replace.take(|| bare.replace());
        renew.take(|| runtime.block_on(lease.renew()).unwrap());
        pair.take(|| acquire_and_release(runtime, &coordinator, true));
    }
    println!("\n{replace}\n{renew}\n{pair}");
    print_ratio("renew, to a bare replace", renew.at(50), replace.at(50), None);
    print_ratio("acquire and release, to two bare replaces", pair.at(50), replace.at(50) * 2, None);
}

/// Two writes that are on disk when they return, and the witness.
fn on_a_disk(runtime: &Runtime) {
    let directory = Directory::new();
    let connect = |name: &str| {
        let store = File::open(directory.0.join(name)).unwrap();
        runtime.block_on(Coordinator::connect(store)).unwrap()
    };
    let mut puts = Bare::on(File::open(directory.0.join("puts")).unwrap(), runtime);
    let coordinator = connect("warm");
    let mut chains = Samples::new("a bare pair of synced replaces");
    let mut store = Samples::new("a pair of puts on the file store");
    let mut unseen = Samples::new("a warm acquire and a release, without a witness");
    let mut warm = Samples::new("a warm acquire and a release");
    let mut opened = Samples::new("opened and connected");
    let mut cold = Samples::new("a cold acquire and a release");
    for _ in 0..ROUNDS_ON_A_DISK {
        chains.take(|| (0..2).for_each(|_| bare_chain(&directory.0)));
        store.take(|| (0..2).for_each(|_| puts.replace()));
        unseen.take(|| acquire_and_release(runtime, &coordinator, false));
        warm.take(|| acquire_and_release(runtime, &coordinator, true));
        let stranger = opened.take(|| connect("cold"));
        cold.take(|| acquire_and_release(runtime, &stranger, true));
    }
    println!("\n{chains}\n{store}\n{unseen}\n{warm}\n{opened}\n{cold}");
    print_ratio("acquire and release, to two bare chains", warm.at(50), chains.at(50), Some(1.3));
}

/// A warm compare-and-set is one write, an encoded record, and two hops between threads.
fn plain_key(runtime: &Runtime) {
    let directory = Directory::new();
    let mut puts = Bare::on(File::open(directory.0.join("puts")).unwrap(), runtime);
    let mut counter = Counter::on(File::open(directory.0.join("keys")).unwrap(), runtime);
    let mut replaced_in_memory = Bare::on(Memory::new(), runtime);
    let mut counter_in_memory = Counter::on(Memory::new(), runtime);
    let mut put = Samples::new("a put on the file store");
    let mut change = Samples::new("a warm compare_and_set");
    let mut get = Samples::new("a get of a plain key");
    let mut put_in_memory = Samples::new("a bare replace in memory");
    let mut change_in_memory = Samples::new("a warm compare_and_set in memory");
    for round in 0..ROUNDS_ON_A_DISK {
        // In turns, because a sync also writes what an earlier one has left to the file system.
        if round % 2 == 0 {
            put.take(|| puts.replace());
            change.take(|| counter.change());
        } else {
            change.take(|| counter.change());
            put.take(|| puts.replace());
        }
        get.take(|| counter.get());
        put_in_memory.take(|| replaced_in_memory.replace());
        change_in_memory.take(|| counter_in_memory.change());
    }
    println!("\n{put}\n{change}\n{get}\n{put_in_memory}\n{change_in_memory}");
    print_ratio("compare_and_set, to a put", change.at(50), put.at(50), Some(1.1));
    print_ratio("compare_and_set in memory, to a put", change_in_memory.at(50), put_in_memory.at(50), None);
}

/// A plain key whose revision is known.
struct Counter<'a> {
    keys: Keys,
    entry: KeyEntry,
    runtime: &'a Runtime,
}

impl<'a> Counter<'a> {
    fn on(store: impl Store, runtime: &'a Runtime) -> Self {
        let keys = runtime.block_on(Coordinator::connect(store)).unwrap().keys();
        match runtime.block_on(keys.create_if_absent("k", &"x".repeat(200), None)).unwrap() {
            Creation::Created(entry) => Self { keys, entry, runtime },
            Creation::Exists(entry) => panic!("{entry:?}"),
        }
    }

    fn change(&mut self) {
        let change = self.keys.compare_and_set("k", self.entry.revision, &self.entry.value, None);
        match self.runtime.block_on(change) {
            Ok(Replacement::Updated(entry)) => self.entry = entry,
            other => panic!("{other:?}"),
        }
    }

    fn get(&self) -> Option<KeyEntry> {
        self.runtime.block_on(self.keys.get("k")).unwrap()
    }
}

fn held(runtime: &Runtime) -> Lease {
    runtime.block_on(async {
        let coordinator = Coordinator::connect(Memory::new()).await.unwrap();
        coordinator.lease("k").unwrap().ttl(Duration::from_secs(3600)).acquire().await.unwrap()
    })
}

/// An election whose leader is this process.
fn led(runtime: &Runtime) -> (Election, Term) {
    runtime.block_on(async {
        let coordinator = Coordinator::connect(Memory::new()).await.unwrap();
        let election = coordinator.election("k").unwrap().ttl(Duration::from_secs(3600));
        let term = election.campaign().unwrap().next().await.unwrap();
        (election, term)
    })
}

fn acquire_and_release(runtime: &Runtime, coordinator: &Coordinator, witness: bool) {
    runtime.block_on(async {
        let request = coordinator.lease("k").unwrap();
        let request = if witness { request } else { request.without_witness() };
        request.acquire().await.unwrap().release().await.unwrap();
    });
}

/// Write, sync, rename, sync: the calls that replace a file durably.
fn bare_chain(directory: &Path) {
    let from = directory.join("from");
    let mut file = fs::File::create(&from).unwrap();
    file.write_all(&[b'x'; 700]).unwrap();
    file.sync_all().unwrap();
    fs::rename(&from, directory.join("to")).unwrap();
    fs::File::open(directory).unwrap().sync_all().unwrap();
}

/// A store with no lease layer on top.
struct Bare<'a, S> {
    store: S,
    runtime: &'a Runtime,
    key: Key,
    version: Option<Version>,
}

impl<'a, S: Store> Bare<'a, S> {
    fn on(store: S, runtime: &'a Runtime) -> Self {
        Self { store, runtime, key: key("k"), version: None }
    }

    /// Writes as many bytes as a record has.
    fn replace(&mut self) {
        let expect = self.version.take().map_or(Expect::Absent, Expect::Version);
        match self.runtime.block_on(self.store.put(&self.key, Bytes::from_static(&[b'x'; 500]), expect)) {
            Ok(Put::Applied(Applied { version, .. })) => self.version = Some(version),
            other => panic!("{other:?}"),
        }
    }
}

/// A directory on the disk of the target directory; deleted when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ROUNDS: usize = 1000;
const ROUNDS_ON_A_DISK: usize = 200;
