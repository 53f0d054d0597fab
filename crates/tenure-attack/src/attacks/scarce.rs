//! Machine limits that a healthy holder reaches.

use rustix::process::Signal;
use tenure_testkit::{is_alive, sleep_ms};

use crate::arena::{Arena, Started, Who};
use crate::attack::Attack;
use crate::process::send;
use crate::shell::shell;
use crate::verdict::{AttackOutcome, broken, held, skipped};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("scarce/the process limit is reached while held, ttl 18 s", STAYS_HELD, process_limit)
            .seconds(60),
        Attack::new("scarce/a process is stopped while it has the lock of a key", LOCK_OWNER, stopped_lock),
        Attack::new("scarce/the user has no inotify instance left", STAYS_HELD, no_inotify),
        Attack::new("scarce/the disk is full while held", ENDS_IN_TIME, full_disk),
        Attack::new(
            "scarce/write permission on the directory is removed while held",
            ENDS_IN_TIME,
            no_permission,
        ),
    ]
}

/// The user can create no more threads or processes. Renewals must continue for longer than one ttl.
fn process_limit(arena: &Arena) -> AttackOutcome {
    let mut holder = arena.holder(arena.run(Who::User, &["--ttl", "18s"], &arena.act("a", 40_000)), "a")?;
    arena.limit(holder.number, "nproc")?;
    for _ in 0..220 {
        if holder.has_ended() {
            let ran = holder.end(1)?;
            return broken(format!("a healthy job was stopped; exit {}: {}", ran.code, ran.err));
        }
        sleep_ms(100);
    }
    let second = arena.ran(arena.run(Who::User, &["--no-wait"], &arena.act("b", 100)))?;
    arena.no_overlap()?;
    if second.code == 75 {
        held("held for 22 s at the process limit")
    } else {
        broken(format!("exit {}", second.code))
    }
}

/// A process is stopped while it has the lock that writers of the key take for microseconds.
fn stopped_lock(arena: &Arena) -> AttackOutcome {
    let holder = arena.holder(arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 30_000)), "a")?;
    let lock = arena.leases(Who::Root).join("k.lock");
    let mut owner = arena.command(Who::Root, "flock");
    owner.arg(&lock).args(["sleep", "60"]);
    let owner = arena.start(owner)?;
    sleep_ms(300);
    send(owner.number, Signal::STOP)?;
    sleep_ms(6000);
    let goes_on = is_alive(holder.number) && !arena.living("a").is_empty();
    if goes_on {
        return held("the holder renews although a stopped process has the lock");
    }
    let ran = holder.end(5)?;
    if ran.err.contains(&owner.number.to_string()) {
        held(format!("the holder exited in time, and names the process: {}", ran.err))
    } else {
        broken(format!(
            "the holder exited with {} and does not name process {}: {}",
            ran.code, owner.number, ran.err
        ))
    }
}

fn no_inotify(arena: &Arena) -> AttackOutcome {
    let words = arena.tool(&["hog-inotify", "20000"]);
    let mut hog = arena.command(Who::User, &words[0]);
    hog.args(&words[1..]);
    let _hog = arena.start(hog)?;
    sleep_ms(300);
    let holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &arena.act("a", 4000)), "a")?;
    let second = arena.run(Who::User, &["--ttl", "3s", "--wait", "9s"], &arena.act("b", 100));
    let second = arena.start(second)?;
    let first = holder.end(10)?;
    let second = second.end(10)?;
    arena.no_overlap()?;
    if (first.code, second.code) == (0, 0) {
        held("one acted after the other, without any watch")
    } else {
        broken(format!("{} {}; {} {}", first.code, first.err, second.code, second.err))
    }
}

/// The store cannot be written any more. CMD exits before a successor in the same directory may start.
fn full_disk(arena: &Arena) -> AttackOutcome {
    let at = arena.path("small");
    let at = at.display();
    if shell(&format!("mkdir {at}; mount -t tmpfs -o size=1m,mode=755 tmpfs {at}")).is_err() {
        return skipped("tmpfs cannot be mounted");
    }
    let url = format!("file://{at}/leases");
    let run = |words: &[&str], label: &str, millis| {
        let mut command = arena.run(Who::Root, words, &arena.act(label, millis));
        command.env("TENURE_STORE", &url);
        command
    };
    let holder = arena.holder(run(&["--ttl", "3s"], "a", 12_000), "a")?;
    shell(&format!("dd if=/dev/zero of={at}/fill bs=64k 2>/dev/null || true"))?;
    let successor = arena.start(run(&["--ttl", "3s", "--wait", "8s"], "b", 200))?.end(15)?;
    ended(arena, holder, successor.code)
}

/// The holder may not write any more. The successor is root, and may.
fn no_permission(arena: &Arena) -> AttackOutcome {
    let holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &arena.act("a", 12_000)), "a")?;
    let directory = arena.leases(Who::User);
    arena.mode(&directory, 0o500)?;
    let mut successor = arena.run(Who::Root, &["--ttl", "3s", "--wait", "8s"], &arena.act("b", 200));
    successor.env("TENURE_STORE", format!("file://{}?accept=foreign-owner", directory.display()));
    let successor = arena.start(successor)?.end(15)?;
    ended(arena, holder, successor.code)
}

fn ended(arena: &Arena, holder: Started, successor: i32) -> AttackOutcome {
    arena.no_overlap()?;
    let ran = holder.end(15)?;
    if ran.code == 76 || ran.code == 0 {
        held(format!("the holder exited with {}; the successor with {successor}", ran.code))
    } else {
        broken(format!("the holder exited with {}: {}", ran.code, ran.err))
    }
}

const STAYS_HELD: &str =
    "what a held lease needs for its renewals stays allocated: a healthy job is not stopped";

const LOCK_OWNER: &str =
    "a process that is stopped while it has the lock of a key costs a bounded time, and the message names it";

const ENDS_IN_TIME: &str = "if the store cannot be written, tenure run stops CMD in time (76)";
