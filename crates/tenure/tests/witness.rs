//! The witness: a dead holder is replaced at once, and a live one never is. With real processes.
#![expect(unsafe_code, reason = "there is no safe fork, and no safe way to hand a descriptor to a child")]

mod file_support;

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tenure::clock::{BootClock, Clock, Instant};
use tenure::record::State;
use tenure::{Coordinator, Error, ErrorKind, Lease, Request, WitnessPart};
use tenure_testkit::{FileSystem, Mounted, is_alive, wait_until};

use file_support::{
    DIRECTORY, Puppet, Scratch, Strace, block_on, kill, machine_witnesses, open, shell, skipped, sleep_ms,
};

/// So long that no contender gets a lease here by waiting until it runs out.
const TTL: Duration = Duration::from_secs(60);

/// Limit for an immediate action, on a machine that is busy with other tests.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Time limit of a contender that must not get the lease.
const LONG_ENOUGH: Duration = Duration::from_millis(700);

// ── a process that holds a lease ────────────────────────────────────────────────────────────────────────────────────

#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let coordinator = runtime.block_on(Coordinator::connect(open(directory))).unwrap();
    println!("> ready {}", std::process::id());
    let mut leases: Vec<Lease> = Vec::new();
    let mut shared: Vec<OwnedFd> = Vec::new();
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        let answer = match *order.split(' ').collect::<Vec<_>>() {
            ["acquire", name] => {
                let lease = runtime.block_on(request(&coordinator, name).acquire());
                let answer = at(&lease);
                leases.extend(lease);
                answer
            }
            ["unwitnessed", name] => {
                leases
                    .push(runtime.block_on(request(&coordinator, name).without_witness().acquire()).unwrap());
                "granted".to_owned()
            }
            ["renew"] => format!("{:?}", runtime.block_on(leases[0].renew()).is_ok()),
            ["release"] => {
                let lease = leases.remove(0);
                let began = BootClock::new().now().as_nanos();
                runtime.block_on(lease.release()).unwrap();
                began.to_string()
            }
            ["fork"] => fork_and_sleep().to_string(),
            ["spawn"] => sleeper().spawn().unwrap().id().to_string(),
            ["inherit"] => {
                let witness = leases[0].witness(WitnessPart::Tree).unwrap().expect("there is one");
                // SAFETY: no descriptor here has this number; the child inherits the copy.
                assert_eq!(unsafe { libc::dup2(witness.as_raw_fd(), 150) }, 150);
                let child = sleeper().spawn().unwrap().id();
                // SAFETY: closes the copy just made.
                unsafe { libc::close(150) };
                child.to_string()
            }
            ["unlock"] => {
                let witness = leases[0].witness(WitnessPart::Tree).unwrap().expect("there is one");
                // SAFETY: all zeroes is a lock of the whole file; only its kind is missing.
                let mut lock: libc::flock = unsafe { std::mem::zeroed() };
                lock.l_type = libc::F_UNLCK as _;
                // SAFETY: the descriptor is open and the lock lives.
                assert_eq!(
                    unsafe { libc::fcntl(witness.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) },
                    0
                );
                shared.push(witness);
                "unlocked".to_owned()
            }
            _ => panic!("{order}"),
        };
        println!("> {answer}");
    }
    std::mem::forget(leases);
}

fn at(lease: &Result<Lease, Error>) -> String {
    match lease {
        Ok(_) => BootClock::new().now().as_nanos().to_string(),
        Err(error) => format!("{error}"),
    }
}

/// Sleeps for longer than any test; the test kills it.
fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("30");
    command
}

fn fork_and_sleep() -> i32 {
    // SAFETY: the child only sleeps and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: see above.
        unsafe {
            libc::sleep(30);
            libc::_exit(0);
        }
    }
    child
}

// ── shared by the tests ─────────────────────────────────────────────────────────────────────────────────────────────

fn request(coordinator: &Coordinator, name: &str) -> Request {
    coordinator.lease(name).unwrap().ttl(TTL)
}

async fn connect(scratch: &Scratch) -> Coordinator {
    Coordinator::connect(scratch.store()).await.unwrap()
}

/// Another process that holds `k`.
fn holder(scratch: &Scratch) -> Puppet {
    let mut holder = Puppet::start(&scratch.0);
    granted_at(&holder.ask("acquire k"));
    holder
}

fn granted_at(answer: &str) -> Instant {
    Instant::from_nanos(answer.parse().unwrap_or_else(|_| panic!("not granted: {answer}")))
}

/// Asserts that a contender does not get the lease.
fn stays_held(scratch: &Scratch) {
    block_on(async {
        let contender = connect(scratch).await;
        let error = request(&contender, "k").wait(LONG_ENOUGH).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Held, "{error}");
        contender.shutdown().await.unwrap();
    });
}

/// Asserts that a new contender gets the lease at once.
fn is_free(scratch: &Scratch) -> Coordinator {
    block_on(async {
        let contender = connect(scratch).await;
        let lease = request(&contender, "k").wait(AT_ONCE).acquire().await.expect("its holder is dead");
        lease.release().await.unwrap();
        contender
    })
}

/// Time from `event` until a contender that already waits, in this process, is granted the lease.
fn latency(scratch: &Scratch, event: impl FnOnce() -> Instant) -> Duration {
    block_on(async {
        let contender = connect(scratch).await;
        let acquired = request(&contender, "k").acquire();
        tokio::pin!(acquired);
        let waiting = poll_for(Duration::from_millis(60), acquired.as_mut()).await;
        assert!(waiting.is_none(), "granted before anything happened");
        let happened = event();
        let lease = acquired.await.unwrap();
        let latency = BootClock::new().now().since(happened);
        lease.release().await.unwrap();
        contender.shutdown().await.unwrap();
        latency
    })
}

async fn poll_for<T>(span: Duration, future: impl Future<Output = T>) -> Option<T> {
    let clock = BootClock::new();
    tokio::select! {
        done = future => Some(done),
        () = clock.sleep_until(clock.now() + span) => None,
    }
}

fn witnesses(scratch: &Scratch) -> usize {
    witness_paths(scratch).len()
}

/// The name of the witness in the record of a held lease.
async fn named_witness(coordinator: &Coordinator, name: &str) -> String {
    let record = coordinator.record(name).await.unwrap().expect("it is held");
    record.witness.as_ref().expect("it names a witness").name.clone()
}

fn exists(scratch: &Scratch, witness: &str) -> bool {
    witness_paths(scratch).iter().any(|path| path.file_name().is_some_and(|name| name == witness))
}

/// The witnesses in the store's directory and in the machine's.
fn witness_paths(scratch: &Scratch) -> Vec<PathBuf> {
    let directories = [Some(scratch.0.clone()), machine_witnesses()].into_iter().flatten();
    let files = directories.filter_map(|directory| std::fs::read_dir(directory).ok()).flatten();
    let paths = files.map(|file| file.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "witness")).collect()
}

// ── dead holders ────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_killed_holder_is_replaced_at_once_again_and_again() {
    let scratch = Scratch::new("witness-kill");
    let mut latencies: Vec<_> = (0..20)
        .map(|_| {
            let holder = holder(&scratch);
            latency(&scratch, || holder.kill())
        })
        .collect();
    latencies.sort();
    println!("from kill to grant, of 20: median {:?}, most {:?}", latencies[10], latencies[19]);
    assert!(latencies[19] < AT_ONCE, "{latencies:?}");
    assert_eq!(witnesses(&scratch), 0, "successors clean up, and so do those who leave");
    let record = block_on(async { connect(&scratch).await.record("k").await.unwrap().unwrap() });
    let died = record.history.iter().filter(|past| past.end == tenure::record::End::Died).count();
    assert!(died > 0, "{:?}", record.history);
}

#[test]
fn contenders_in_other_processes_wake_too_and_only_one_of_them_gets_the_lease() {
    let scratch = Scratch::new("witness-others");
    let holder = holder(&scratch);
    let mut waiters: Vec<_> = (0..3).map(|_| Puppet::start(&scratch.0)).collect();
    waiters.iter_mut().for_each(|waiter| waiter.order("acquire k"));
    sleep_ms(300);
    let (mut before, mut killed) = (holder.kill(), holder.id());
    // Each of them gets the lease in turn, and is killed.
    for _ in 0..3 {
        let id = successor_of(killed, &scratch);
        let winner = waiters.iter().position(|waiter| waiter.id() == id).expect("one of those who wait");
        let mut winner = waiters.remove(winner);
        let got = granted_at(&winner.answer().unwrap());
        assert!(got.since(before) < AT_ONCE, "{:?}", got.since(before));
        println!("another process was granted it after {:?}", got.since(before));
        (before, killed) = (winner.kill(), winner.id());
    }
}

/// The process that holds `k` after the killed one.
fn successor_of(killed: u32, scratch: &Scratch) -> u32 {
    let mut found = 0;
    block_on(async {
        let observer = connect(scratch).await;
        for _ in 0..2_000 {
            let record = observer.record("k").await.unwrap().unwrap();
            let holder = record.holder.as_ref().map(|holder| holder.id().rsplit(':').next().unwrap().parse());
            found = holder.map_or(0, Result::unwrap);
            if ![0, killed].contains(&found) {
                return;
            }
            sleep_ms(1);
        }
        panic!("no other process holds it");
    });
    found
}

#[test]
fn one_read_is_enough_if_the_holder_is_already_dead() {
    let scratch = Scratch::new("witness-once");
    let holder = holder(&scratch);
    holder.kill();
    drop(holder);
    // As after a reboot: all processes have exited, and no contender waited.
    block_on(async {
        let contender = connect(&scratch).await;
        let lease = request(&contender, "k").try_acquire().await.expect("its holder is dead");
        wait_until("the dead one's witness is removed", || witnesses(&scratch) == 1);
        lease.release().await.unwrap();
        assert_eq!(witnesses(&scratch), 0);
    });
}

#[test]
fn a_holder_that_died_in_another_pid_namespace_is_replaced_at_once() {
    if !shell("unshare --pid --fork --kill-child true") {
        return skipped("no pid namespaces here: run as root, or allow them to users");
    }
    let scratch = Scratch::new("witness-namespace");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(std::env::current_exe().unwrap());
    let mut holder = Puppet::start_with(command, &scratch.0);
    assert_eq!(holder.worker, "1", "its process id is that of another process here");
    granted_at(&holder.ask("acquire k"));
    stays_held(&scratch);
    let latency = latency(&scratch, || holder.kill());
    assert!(latency < AT_ONCE, "{latency:?}");
}

// ── live holders ────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_stopped_holder_is_not_mistaken_for_dead() {
    let scratch = Scratch::new("witness-stop");
    let mut holder = holder(&scratch);
    holder.signal("STOP");
    stays_held(&scratch);
    holder.signal("CONT");
    assert_eq!(holder.ask("renew"), "true");
}

/// The kernel keeps separate locks for the file in the overlay and for the same file in the directory below.
#[test]
fn a_holder_in_an_overlay_is_not_judged_dead_from_the_directory_below_it() {
    let scratch = Scratch::new("witness-overlay");
    let at = |name: &str| scratch.0.join(name);
    for name in ["lower", "upper/leases", "work", "merged"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    shell(&format!("chmod 700 {}", at("upper/leases").display()));
    let [lower, upper, work, merged] =
        ["lower", "upper", "work", "merged"].map(|name| at(name).display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    if !shell(&format!("mount -t overlay -o {options} overlay {merged}")) {
        return skipped("no overlay can be mounted here");
    }
    let mut holder = Puppet::start(&at("merged/leases"));
    granted_at(&holder.ask("acquire k"));
    stays_held(&Scratch(at("upper/leases")));
    drop(holder);
    assert!(shell(&format!("umount -l {merged}")));
}

#[test]
fn a_release_wakes_a_contender_within_milliseconds() {
    let scratch = Scratch::new("witness-release");
    let mut latencies: Vec<_> = (0..10)
        .map(|_| {
            let mut holder = holder(&scratch);
            latency(&scratch, || granted_at(&holder.ask("release")))
        })
        .collect();
    latencies.sort();
    println!("from release to grant, of 10: median {:?}, most {:?}", latencies[5], latencies[9]);
    assert!(latencies[5] < Duration::from_millis(200), "{latencies:?}");
}

#[test]
fn children_do_not_keep_the_witness_with_and_without_exec() {
    for order in ["fork", "spawn"] {
        let scratch = Scratch::new("witness-children");
        let mut holder = holder(&scratch);
        let child: u32 = holder.ask(order).parse().unwrap();
        holder.kill();
        drop(holder);
        is_free(&scratch);
        assert!(is_alive(child as i32), "the child was to outlive the holder");
        kill(child);
    }
}

#[test]
fn a_child_that_was_given_the_witness_keeps_it_as_long_as_it_lives() {
    let scratch = Scratch::new("witness-inherit");
    let mut holder = holder(&scratch);
    let child: u32 = holder.ask("inherit").parse().unwrap();
    holder.kill();
    drop(holder);
    stays_held(&scratch);
    let latency = latency(&scratch, || {
        kill(child);
        BootClock::new().now()
    });
    assert!(latency < AT_ONCE, "{latency:?}");
}

#[test]
fn unlocking_another_descriptor_of_the_witness_does_not_free_it() {
    let scratch = Scratch::new("witness-unlock");
    let mut holder = holder(&scratch);
    holder.ask("unlock");
    stays_held(&scratch);
    holder.kill();
    drop(holder);
    is_free(&scratch);
}

#[test]
fn a_lease_that_is_meant_to_outlive_its_process_does() {
    let scratch = Scratch::new("witness-without");
    let mut holder = Puppet::start(&scratch.0);
    assert_eq!(holder.ask("unwitnessed k"), "granted");
    assert_eq!(witnesses(&scratch), 0);
    holder.kill();
    drop(holder);
    stays_held(&scratch);
}

// ── failures ────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_nonce_that_cannot_be_listed_does_not_stop_a_renewal_and_proves_nothing() {
    let scratch = Scratch::new("witness-unlisted");
    let mut holder = holder(&scratch);
    let path = witness_paths(&scratch).remove(0);
    // Another file under its name: the holder does not write to it, and no contender trusts it.
    let copy = path.with_extension("tmp");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    assert_eq!(holder.ask("renew"), "true");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    stays_held(&scratch);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(holder.ask("renew"), "true");
    holder.kill();
    drop(holder);
    stays_held(&scratch);
}

/// More renewals than the ring has slots.
#[test]
fn the_nonce_of_every_acknowledged_renewal_is_listed() {
    let scratch = Scratch::new("witness-listed");
    block_on(async {
        let coordinator = connect(&scratch).await;
        let lease = request(&coordinator, "k").acquire().await.unwrap();
        for round in 0..150 {
            let record = coordinator.record("k").await.unwrap().unwrap();
            let path = witness_paths(&scratch).remove(0);
            assert_eq!(path.file_name().unwrap().to_str(), Some(&*record.witness.as_ref().unwrap().name));
            let ring = std::fs::read(path).unwrap();
            let nonce = record.nonce.to_bits().to_le_bytes();
            assert!(ring.chunks(24).any(|slot| slot.starts_with(&nonce)), "round {round}");
            lease.renew().await.unwrap();
        }
        lease.release().await.unwrap();
    });
}

#[test]
fn a_renewal_does_not_wait_for_a_hanging_nonce_list() {
    if !Strace::is_there() {
        return;
    }
    let scratch = Scratch::new("witness-slow-list");
    let mut holder = holder(&scratch);
    // Only code that opens a witness calls `geteuid`.
    let strace = Strace::attach_to_all(&holder, &["geteuid:delay_enter=20000000".to_owned()]);
    for _ in 0..2 {
        let asked = BootClock::new().now();
        assert_eq!(holder.ask("renew"), "true");
        let took = BootClock::new().now().since(asked);
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
    drop(strace);
}

#[test]
fn a_lease_is_granted_without_a_witness_if_none_can_be_created() {
    if !Strace::is_there() {
        return;
    }
    for inject in [
        "linkat:error=ENOSPC",
        "pwrite64:error=ENOSPC:when=1",
        "openat:error=EMFILE:when=1",
        "mmap:error=ENOMEM",
    ] {
        let scratch = Scratch::new("witness-none");
        let mut holder = Puppet::start(&scratch.0);
        // The first lease creates the other resources, so that only the witness fails.
        holder.ask("acquire other");
        let strace = Strace::attach_to_all(&holder, &[inject.to_owned()]);
        granted_at(&holder.ask("acquire k"));
        drop(strace);
        let record = block_on(async { connect(&scratch).await.record("k").await.unwrap().unwrap() });
        assert_eq!(record.state, State::Held);
        println!("{inject}: {:?}", record.witness);
        assert!(record.witness.is_none() || !inject.starts_with("linkat"), "{inject}: {:?}", record.witness);
        assert_eq!(holder.ask("renew"), "true", "{inject}");
    }
}

#[test]
fn a_grant_does_not_wait_for_a_hanging_witness() {
    if !Strace::is_there() {
        return;
    }
    let scratch = Scratch::new("witness-slow");
    let mut holder = Puppet::start(&scratch.0);
    let strace = Strace::attach_to_all(&holder, &["linkat:delay_enter=2500000".to_owned()]);
    let asked = BootClock::new().now();
    let granted = granted_at(&holder.ask("acquire k"));
    assert!(granted.since(asked) < Duration::from_secs(2), "{:?}", granted.since(asked));
    // The hanging call does not block the keeper, and the lease stays.
    assert_eq!(holder.ask("renew"), "true");
    sleep_ms(2_000);
    drop(strace);
    let record = block_on(async { connect(&scratch).await.record("k").await.unwrap().unwrap() });
    assert!(record.state == State::Held && record.witness.is_none());
    sleep_ms(50);
    assert_eq!(witnesses(&scratch), 0, "what came too late is taken away again");
}

// ── cost ────────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn holders_and_unsuccessful_contenders_leave_no_file_behind() {
    let scratch = Scratch::new("witness-files");
    block_on(async {
        let (a, b) = (connect(&scratch).await, connect(&scratch).await);
        for _ in 0..50 {
            let lease = request(&a, "k").acquire().await.unwrap();
            assert_eq!(request(&b, "k").try_acquire().await.unwrap_err().kind(), ErrorKind::Held);
            let named = named_witness(&a, "k").await;
            assert!(exists(&scratch, &named), "that of the holder");
            lease.release().await.unwrap();
            assert!(!exists(&scratch, &named), "it is deleted when the release returns");
            assert!(witnesses(&scratch) <= 1, "only the spare one of {a:?} is left");
        }
        // Nor does a contender that gives up midway, or a dropped lease.
        for _ in 0..10 {
            drop(poll_for(Duration::ZERO, request(&a, "k").acquire()).await);
        }
        a.shutdown().await.unwrap();
        assert_eq!(witnesses(&scratch), 0);
    });
}

#[test]
fn a_coordinator_that_acquires_again_keeps_a_spare_witness_and_leaves_none_behind() {
    let scratch = Scratch::new("witness-spare");
    block_on(async {
        let coordinator = connect(&scratch).await;
        for _ in 0..2 {
            request(&coordinator, "k").acquire().await.unwrap().release().await.unwrap();
            assert_eq!(witnesses(&scratch), 0, "most commands acquire one lease, or it again");
        }
        let third = request(&coordinator, "k").acquire().await.unwrap();
        wait_until("there is a spare one", || witnesses(&scratch) == 2);
        third.release().await.unwrap();
        let spare = witness_paths(&scratch).remove(0);
        let ring = std::fs::read(&spare).unwrap();
        assert!(ring[24..].iter().all(|byte| *byte == 0), "it lists at most the nonce of its trial");
        let fourth = request(&coordinator, "k").acquire().await.unwrap();
        assert_eq!(spare.file_name().unwrap().to_str(), Some(&*named_witness(&coordinator, "k").await));
        drop(fourth);
        coordinator.shutdown().await.unwrap();
        assert_eq!(witnesses(&scratch), 0);
    });
}

#[test]
fn a_spare_witness_is_removed_when_the_last_coordinator_is_dropped() {
    let scratch = Scratch::new("witness-spare-drop");
    block_on(async {
        let coordinator = connect(&scratch).await;
        for _ in 0..3 {
            request(&coordinator, "k").acquire().await.unwrap().release().await.unwrap();
        }
        wait_until("there is a spare one", || witnesses(&scratch) == 1);
    });
    wait_until("it is removed", || witnesses(&scratch) == 0);
}

#[test]
fn unlocked_witnesses_are_deleted_after_a_day_and_locked_ones_never() {
    let scratch = Scratch::new("witness-orphans");
    block_on(async {
        let holder = connect(&scratch).await;
        let _lease = request(&holder, "held").acquire().await.unwrap();
        let locked = scratch.names(".witness").remove(0);
        let named = |number: u32| format!("{number:032x}.witness");
        for name in [&named(1), &named(2), &"notes.witness".to_owned()] {
            std::fs::write(scratch.0.join(name), [0; 3072]).unwrap();
        }
        for name in [&locked, &named(1), &"notes.witness".to_owned()] {
            assert!(shell(&format!("touch -d '25 hours ago' {}", scratch.0.join(name).display())));
        }
        assert!(shell(&format!("touch -d '23 hours ago' {}", scratch.0.join(named(2)).display())));
        // The first write of a process cleans up.
        let other = connect(&scratch).await;
        other.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
        wait_until("the old one goes", || !scratch.0.join(named(1)).exists());
        other.shutdown().await.unwrap();
        let mut left = scratch.names(".witness");
        left.sort();
        let mut expected = vec![locked, named(2), "notes.witness".to_owned()];
        expected.sort();
        assert_eq!(left, expected);
    });
}

#[test]
fn many_contenders_share_one_inotify_instance() {
    let scratch = Scratch::new("witness-inotify");
    block_on(async {
        let (a, b) = (connect(&scratch).await, connect(&scratch).await);
        let names: Vec<_> = (0..10).map(|number| format!("k{number}")).collect();
        let mut leases = Vec::new();
        for name in &names {
            leases.push(request(&a, name).acquire().await.unwrap());
        }
        let waiting: Vec<_> = names.iter().flat_map(|name| [request(&b, name), request(&a, name)]).collect();
        let waiting = futures_util::future::join_all(waiting.into_iter().map(|request| async move {
            let lease = request.acquire().await.unwrap();
            lease.release().await.unwrap();
        }));
        tokio::pin!(waiting);
        assert!(poll_for(Duration::from_millis(300), waiting.as_mut()).await.is_none());
        assert_eq!(inotify_instances(), 1);
        for lease in &leases {
            lease.release().await.unwrap();
        }
        poll_for(5 * AT_ONCE, waiting).await.expect("all of them had their turn");
    });
    wait_until("the spare one is removed", || witnesses(&scratch) == 0);
}

fn inotify_instances() -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    links.filter(|link| std::fs::read_link(link).is_ok_and(|to| to.ends_with("anon_inode:inotify"))).count()
}

// ── inside other file systems ───────────────────────────────────────────────────────────────────────────────────────

/// Tests that must pass wherever the store's directory is.
const EVERYWHERE: [&str; 10] = [
    "a_killed_holder_is_replaced_at_once",
    "contenders_in_other_processes",
    "one_read_is_enough",
    "a_stopped_holder_is_not_mistaken",
    "children_do_not_keep_the_witness",
    "a_child_that_was_given_the_witness_keeps_it",
    "unlocking_another_descriptor",
    "a_lease_that_is_meant_to_outlive_its_process",
    "a_nonce_that_cannot_be_listed",
    "holders_and_unsuccessful_contenders",
];

#[test]
fn witnesses_hold_inside_every_file_system() {
    // FUSE reports no changes, so a contender that loses a race learns of the winner at its next poll.
    let on_fuse = ["contenders_in_other_processes"];
    Mounted::each(&FileSystem::ALL, |mounted| {
        mounted.rerun(&EVERYWHERE, if mounted.kind().is_fuse() { &on_fuse } else { &[] });
    });
}
