//! What a lease costs, beside the bare operation in the same run.
//!
//! Times are shown and never asserted: they belong to the machine. The ratios are what to look at.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use divan::{Bencher, black_box};
use tenure::store::Memory;
use tenure::{Coordinator, Lease};
use tenure_store::{Applied, Expect, Key, Put, Store};
use tokio::runtime::Runtime;

fn main() {
    divan::main();
}

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());

fn coordinator() -> Coordinator {
    RUNTIME.block_on(Coordinator::connect(Memory::new())).unwrap()
}

fn held() -> Lease {
    RUNTIME.block_on(coordinator().lease("k").unwrap().ttl(Duration::from_secs(3600)).acquire()).unwrap()
}

/// Goal: at most one and a half times the bare clock.
mod check {
    use super::*;

    #[divan::bench]
    fn a_bare_clock_gettime() -> rustix::time::Timespec {
        rustix::time::clock_gettime(rustix::time::ClockId::Boottime)
    }

    #[divan::bench]
    fn check(bencher: Bencher<'_, '_>) {
        let lease = held();
        bencher.bench_local(|| black_box(&lease).check().is_ok());
    }

    #[divan::bench]
    fn remaining(bencher: Bencher<'_, '_>) {
        let lease = held();
        bencher.bench_local(|| black_box(&lease).remaining());
    }
}

/// A renewal is one write, an encoded record, and two hops between threads.
mod renew {
    use super::*;

    #[divan::bench]
    fn a_bare_replace(bencher: Bencher<'_, '_>) {
        let (memory, key) = (Memory::new(), Key::parse("k").unwrap());
        let mut expect = Expect::Absent;
        bencher.bench_local(|| expect = Expect::Version(put(&memory, &key, expect.clone())));
    }

    #[divan::bench]
    fn renew(bencher: Bencher<'_, '_>) {
        let lease = held();
        bencher.bench_local(|| RUNTIME.block_on(lease.renew()).unwrap());
    }
}

/// A warm acquire and a release are one write each.
mod acquire_and_release {
    use super::*;

    #[divan::bench]
    fn a_bare_pair_of_replaces(bencher: Bencher<'_, '_>) {
        let (memory, key) = (Memory::new(), Key::parse("k").unwrap());
        let mut expect = Expect::Absent;
        bencher.bench_local(|| {
            for _ in 0..2 {
                expect = Expect::Version(put(&memory, &key, expect.clone()));
            }
        });
    }

    #[divan::bench]
    fn warm(bencher: Bencher<'_, '_>) {
        let coordinator = coordinator();
        bencher.bench_local(|| {
            RUNTIME.block_on(async {
                let lease = coordinator.lease("k").unwrap().acquire().await.unwrap();
                lease.release().await.unwrap();
            });
        });
    }
}

/// On a disk: two writes that are on it when they return, and the witness. Goal: at most 1.3 times the bare pair.
mod acquire_and_release_on_a_disk {
    use std::fs;
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use tenure::store::File;

    use super::*;

    /// Goes when it is dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Write, sync, rename, sync: what it takes to replace a file so that it stays replaced.
    #[divan::bench]
    fn a_bare_pair_of_synced_replaces(bencher: Bencher<'_, '_>) {
        let folder = Folder::new("bare");
        let (from, to, above) =
            (folder.0.join("from"), folder.0.join("to"), fs::File::open(&folder.0).unwrap());
        bencher.bench_local(|| {
            for _ in 0..2 {
                let mut file = fs::File::create(&from).unwrap();
                file.write_all(&[b'x'; 700]).unwrap();
                file.sync_all().unwrap();
                fs::rename(&from, &to).unwrap();
                above.sync_all().unwrap();
            }
        });
    }

    /// The store alone: what is left is the keeper's.
    #[divan::bench]
    fn a_pair_of_puts(bencher: Bencher<'_, '_>) {
        let folder = Folder::new("puts");
        let (store, key) = (File::open(folder.0.join("store")).unwrap(), Key::parse("k").unwrap());
        let mut expect = Expect::Absent;
        bencher.bench_local(|| {
            for _ in 0..2 {
                expect = Expect::Version(put(&store, &key, expect.clone()));
            }
        });
    }

    #[divan::bench(args = [false, true])]
    fn warm(bencher: Bencher<'_, '_>, witness: bool) {
        let folder = Folder::new("store");
        let store = File::open(folder.0.join("store")).unwrap();
        let coordinator = RUNTIME.block_on(Coordinator::connect(store)).unwrap();
        bencher.bench_local(|| {
            RUNTIME.block_on(async {
                let request = coordinator.lease("k").unwrap();
                let request = if witness { request } else { request.without_witness() };
                let lease = request.acquire().await.unwrap();
                lease.release().await.unwrap();
            });
        });
    }

    /// What a program pays that takes one lease and ends.
    #[divan::bench]
    fn opened_and_connected(bencher: Bencher<'_, '_>) {
        let folder = Folder::new("connect");
        let path = folder.0.join("store");
        File::open(&path).unwrap();
        bencher.bench_local(|| RUNTIME.block_on(Coordinator::connect(File::open(&path).unwrap())).unwrap());
    }

    #[divan::bench]
    fn cold(bencher: Bencher<'_, '_>) {
        let folder = Folder::new("cold");
        let path = folder.0.join("store");
        let connect = || RUNTIME.block_on(Coordinator::connect(File::open(&path).unwrap())).unwrap();
        bencher.with_inputs(connect).bench_local_values(|coordinator| {
            RUNTIME.block_on(async {
                let lease = coordinator.lease("k").unwrap().acquire().await.unwrap();
                lease.release().await.unwrap();
            });
        });
    }
}

/// As many bytes as a record has.
fn put(store: &impl Store, key: &Key, expect: Expect) -> tenure_store::Version {
    match RUNTIME.block_on(store.put(key, Bytes::from_static(&[b'x'; 500]), expect)) {
        Ok(Put::Applied(Applied { version, .. })) => version,
        other => panic!("{other:?}"),
    }
}
