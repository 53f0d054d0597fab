//! Hints arrive soon, at the right watches, over one inotify instance for the whole process.

mod file_support;

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tenure::clock::{BootClock, Clock};
use tenure_store::{BoxStream, Expect, Prefix, Store};

use file_support::{Puppet, Scratch, be_a_puppet, block_on, key, look, sleep_ms, write};

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    be_a_puppet();
}

async fn hint(watch: &mut BoxStream<'static, ()>) -> bool {
    tokio::select! {
        hint = watch.next() => hint.is_some(),
        () = BootClock.sleep_until(BootClock.now() + Duration::from_secs(5)) => panic!("no hint came"),
    }
}

/// The inotify instances of this process.
fn instances() -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.unwrap().path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("inotify")).count()
}

/// Waits until `seen` returns `wanted`.
#[track_caller]
fn soon<T: PartialEq + std::fmt::Debug>(seen: impl Fn() -> T, wanted: T) {
    for _ in 0..500 {
        if seen() == wanted {
            return;
        }
        sleep_ms(10);
    }
    assert_eq!(seen(), wanted);
}

/// One test, because it counts resources of the whole process.
#[test]
fn a_thousand_waiters_in_three_directories_share_one_instance_and_one_thread_until_they_end() {
    let threads = || {
        std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter(|thread| {
                let comm = thread.as_ref().unwrap().path().join("comm");
                std::fs::read_to_string(comm).is_ok_and(|name| name.trim() == "tenure-watch")
            })
            .count()
    };
    let directories = [Scratch::new("watch"), Scratch::new("watch"), Scratch::new("watch")];
    let stores = directories.each_ref().map(|directory| directory.store());
    block_on(async {
        let mut waiters: Vec<_> = (0..1_000)
            .map(|number| stores[number % 3].watch(&Prefix::of(&key(&format!("k{number}")))).unwrap())
            .collect();
        // A thread sets its name when it starts to run.
        soon(|| (instances(), threads()), (1, 1));
        for number in [0, 1, 2, 500, 999] {
            write(&stores[number % 3], &key(&format!("k{number}")), "value", Expect::Absent).await;
            assert!(hint(&mut waiters[number]).await);
        }
        // In the same directory, but for another key.
        assert!(waiters[3].next().now_or_never().is_none());
        drop(waiters);
        soon(|| (instances(), threads()), (0, 0));

        // The same again, with a new instance.
        let mut watch = stores[0].watch(&Prefix::all()).unwrap();
        write(&stores[0], &key("again"), "value", Expect::Absent).await;
        assert!(hint(&mut watch).await);

        long_keys_and_deletions_are_hinted(&directories[0]).await;
        another_process_wakes_a_waiter_soon(&directories[1]).await;
        a_directory_that_goes_ends_its_streams().await;
        drop(watch);
        soon(|| (instances(), threads()), (0, 0));
        a_lease_that_is_held_for_a_moment_is_not_watched(&directories[2]).await;
    });
}

/// A process that has watched a file ends late: the kernel makes it wait.
async fn a_lease_that_is_held_for_a_moment_is_not_watched(directory: &Scratch) {
    let store = directory.store();
    write(&store, &key("held"), "value", Expect::Absent).await;
    let mut held = store.watch_held(&key("held")).unwrap();
    assert!(held.next().now_or_never().is_none());
    sleep_ms(200);
    assert_eq!(instances(), 0, "nothing is watched before the first look");
    std::fs::remove_file(store.path_of(&key("held"))).unwrap();
    assert!(hint(&mut held).await, "what happened before the first look is seen by it");
}

async fn long_keys_and_deletions_are_hinted(directory: &Scratch) {
    let (store, long) = (directory.store(), key(&"É".repeat(100)));
    let mut watch = store.watch(&Prefix::of(&long)).unwrap();
    write(&store, &long, "value", Expect::Absent).await;
    assert!(hint(&mut watch).await);
    std::fs::remove_file(store.path_of(&long)).unwrap();
    assert!(hint(&mut watch).await);
}

async fn another_process_wakes_a_waiter_soon(directory: &Scratch) {
    let (store, mut puppet) = (directory.store(), Puppet::start(&directory.0));
    let mut watch = store.watch(&Prefix::of(&key("woken"))).unwrap();
    let mut version = "-".to_owned();
    let mut late = Vec::new();
    for round in 0..20 {
        puppet.order_put("woken", &round.to_string(), &version);
        assert!(hint(&mut watch).await);
        // The age counts from before the sync, so this measures the complete path and not only the hint.
        let (value, seen) = look(&store, &key("woken")).await.unwrap();
        assert_eq!(value, round.to_string());
        late.push(store.get(&key("woken")).await.unwrap().entry.unwrap().age.unwrap());
        version = seen.to_string();
        assert!(puppet.answer().unwrap().starts_with("applied"));
    }
    late.sort();
    println!(
        "from the beginning of a write to a waiter's look: median {:?}, longest {:?}",
        late[10], late[19]
    );
}

async fn a_directory_that_goes_ends_its_streams() {
    let directory = Scratch::new("goes");
    let store = directory.store();
    let mut watch = store.watch(&Prefix::all()).unwrap();
    std::fs::remove_dir_all(&directory.0).unwrap();
    // The kernel keeps the directory while a process has it open.
    drop(store);
    assert!(hint(&mut watch).await, "a last hint");
    while watch.next().await.is_some() {}
}
