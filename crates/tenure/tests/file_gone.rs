//! The directory under a held lease is deleted, moved or mounted over: the holder loses the lease at once, not at its
//! deadline.

mod file_support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::store::File;
use tenure::{Coordinator, ErrorKind, Lost};

use file_support::{DIRECTORY, Puppet, Scratch, block_on, shell, skipped, sleep_ms};

/// Long enough that no automatic renewal happens during a test.
const TTL: Duration = Duration::from_secs(3_600);

/// Limit for an immediate action, on a machine that is busy with other tests.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Unmounts everything below this path when dropped.
struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        shell(&format!("umount -l {}", self.0.display()));
    }
}

/// The output of a future; `None` if it takes longer than `limit`.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let clock = BootClock::new();
    tokio::select! {
        output = future => Some(output),
        () = clock.sleep_until(clock.now() + limit) => None,
    }
}

/// Holds a lease in `PARENT/store` below a directory of the test, and runs `harm` on it. Returns why the lease was
/// lost, and how long that took.
async fn lost_by(scratch: &Scratch, harm: &str) -> (Lost, Duration) {
    let parent = scratch.0.join("parent");
    let directory = parent.join("store");
    let coordinator = Coordinator::connect(File::open(&directory).unwrap()).await.unwrap();
    let lease = coordinator.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let _unmount = Unmount(directory.clone());
    let harm =
        harm.replace("DIRECTORY", directory.to_str().unwrap()).replace("PARENT", parent.to_str().unwrap());
    let clock = BootClock::new();
    assert!(shell(&harm), "{harm}");
    let began = clock.now();
    let lost = within(AT_ONCE, lease.lost()).await;
    let why =
        lost.unwrap_or_else(|| panic!("{harm}: held after {AT_ONCE:?}, for {:?} more", lease.remaining()));
    assert!(lease.check().is_err());
    (why, clock.now().since(began))
}

#[test]
fn a_holder_whose_directory_is_deleted_moved_or_mounted_over_stops_at_once_whatever_its_ttl() {
    let mounts = shell("unshare --mount true");
    if !mounts {
        skipped("nothing can be mounted here");
    }
    let harms = [
        ("rm -rf DIRECTORY", None),
        ("mv DIRECTORY DIRECTORY.away", Some(Lost::StoreGone)),
        ("mv DIRECTORY DIRECTORY.away && mkdir -m 700 DIRECTORY", Some(Lost::StoreGone)),
        ("mv PARENT PARENT.away", Some(Lost::StoreGone)),
        ("mount -t tmpfs tenure DIRECTORY", Some(Lost::StoreGone)),
        ("rm DIRECTORY/k.entry", Some(Lost::Deleted)),
        ("mv DIRECTORY/k.entry DIRECTORY/k.entry.away", Some(Lost::Deleted)),
    ];
    for (harm, expected) in harms.into_iter().filter(|(harm, _)| mounts || !harm.starts_with("mount")) {
        let scratch = Scratch::new("gone-held");
        let (why, took) = block_on(lost_by(&scratch, harm));
        println!("{harm}: {why} after {took:?}");
        match expected {
            Some(expected) => assert_eq!(why, expected, "{harm}"),
            // `rm` deletes the entry first, and the directory after it.
            None => assert!(matches!(why, Lost::Deleted | Lost::StoreGone), "{harm}: {why}"),
        }
    }
}

#[test]
fn a_lease_in_a_directory_that_returns_is_granted_at_once_since_its_holder_has_stopped() {
    let scratch = Scratch::new("gone-back");
    let directory = scratch.0.join("parent/store");
    block_on(async {
        lost_by(&scratch, "mv DIRECTORY DIRECTORY.away").await;
        std::fs::rename(directory.with_extension("away"), &directory).unwrap();
        let next = Coordinator::connect(File::open(&directory).unwrap()).await.unwrap();
        let request = next.lease("k").unwrap();
        let lease = within(AT_ONCE, request.acquire()).await.expect("it waits for no holder").unwrap();
        lease.release().await.unwrap();
    });
}

#[test]
fn a_mount_over_a_parent_directory_is_noticed_too() {
    if !shell("unshare --mount true") {
        return skipped("nothing can be mounted here");
    }
    let scratch = Scratch::new("gone-above");
    let _unmount = Unmount(scratch.0.join("parent"));
    let (why, took) = block_on(lost_by(&scratch, "mount -t tmpfs tenure PARENT"));
    println!("{why} after {took:?}");
    assert_eq!(why, Lost::StoreGone);
}

#[test]
fn changes_of_other_directories_and_mounts_cost_no_renewal_and_no_lease() {
    let scratch = Scratch::new("gone-others");
    block_on(async {
        let store = File::open(scratch.0.join("parent/store")).unwrap();
        let entry = scratch.0.join("parent/store/k.entry");
        let coordinator = Coordinator::connect(store).await.unwrap();
        let lease = coordinator.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        let before = std::fs::read(&entry).unwrap();
        let other = scratch.0.join("other");
        std::fs::create_dir(&other).unwrap();
        let _unmount = Unmount(other.clone());
        shell(&format!("mount -t tmpfs tenure {}", other.display()));
        std::fs::write(scratch.0.join("parent/store/other.tmp"), "").unwrap();
        std::fs::remove_file(scratch.0.join("parent/store/other.tmp")).unwrap();
        // After a manual renewal, every earlier reaction of the keeper would be visible.
        sleep_ms(100);
        assert_eq!(std::fs::read(&entry).unwrap(), before, "it was renewed");
        lease.renew().await.unwrap();
        lease.check().unwrap();
        // The keeper also watches the entry that replaced the old one by the renewal.
        std::fs::remove_file(&entry).unwrap();
        let why = within(AT_ONCE, lease.lost()).await.expect("it stops at once");
        assert_eq!(why, Lost::Deleted);
    });
}

#[test]
fn a_contender_in_a_deleted_directory_gets_an_error_and_does_not_wait_for_ever() {
    let scratch = Scratch::new("gone-wait");
    block_on(async {
        let [one, two] = [scratch.store(), scratch.store()];
        let holder = Coordinator::connect(one).await.unwrap();
        let _lease = holder.lease("k").unwrap().ttl(Duration::from_secs(3)).acquire().await.unwrap();
        let contender = Coordinator::connect(two).await.unwrap();
        let request = contender.lease("k").unwrap();
        let mut waiting = Box::pin(request.acquire());
        let soon = within(Duration::from_millis(100), &mut waiting).await;
        assert!(soon.is_none(), "{soon:?}");
        assert!(shell(&format!("mv {0} {0}.away", scratch.0.display())));
        let denied = within(4 * AT_ONCE, waiting).await.expect("the wait ends").unwrap_err();
        assert!(shell(&format!("rm -r {0}.away", scratch.0.display())));
        println!("{denied}");
        assert_eq!(denied.kind(), ErrorKind::Unavailable, "{denied}");
        assert!(denied.to_string().contains("connect again"), "{denied}");
    });
}

// ── without inotify ─────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    block_on(async {
        let coordinator = Coordinator::connect(File::open(directory).unwrap()).await.unwrap();
        let lease = coordinator.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        println!("> ready {}", std::process::id());
        println!("> {}", lease.lost().await);
    });
}

/// Limits are per user namespace.
#[test]
fn a_holder_without_inotify_checks_once_a_second() {
    let none = "echo 0 >/proc/sys/user/max_inotify_instances";
    if !shell(&format!("unshare --user --map-root-user sh -c '{none}'")) {
        return skipped("no user namespaces with limits of their own here");
    }
    for (harm, expected) in
        [("mv DIRECTORY DIRECTORY.away", Lost::StoreGone), ("rm DIRECTORY/k.entry", Lost::Deleted)]
    {
        let scratch = Scratch::new("gone-untold");
        let mut command = Command::new("unshare");
        let script = format!("{none}; exec \"$0\" \"$@\"");
        command
            .args(["--user", "--map-root-user", "sh", "-c", &script])
            .arg(std::env::current_exe().unwrap());
        let mut puppet = Puppet::start_with(command, &scratch.0);
        assert!(!has_inotify(puppet.id()), "the limit does not hold");
        assert!(shell(&harm.replace("DIRECTORY", scratch.0.to_str().unwrap())));
        // The usual limit for an answer. Without the check once a second, the next read is an hour away.
        let why = puppet.answer().expect("it says why");
        assert_eq!(why, expected.to_string(), "{harm}");
        shell(&format!("rm -rf {}.away", scratch.0.display()));
    }
}

fn has_inotify(process: u32) -> bool {
    let descriptors = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("fd")).unwrap();
    descriptors
        .filter_map(|link| std::fs::read_link(link.unwrap().path()).ok())
        .any(|to| to.ends_with("anon_inode:inotify"))
}
