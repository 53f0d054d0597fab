//! Guards that cannot see or signal their process tree.

use std::fs;
use std::process::Command;
use std::time::Duration;

use tenure_testkit::{children_of, sleep_ms};

use crate::arena::{Arena, Started, Who};
use crate::attack::Attack;
use crate::process::until;
use crate::shell::{has, shell};
use crate::stamps::boot_time;
use crate::verdict::{AttackOutcome, broken, held, skipped};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("blind/hidepid=2 and a non-dumpable CMD, steal", SEES_NOTHING, hidden_steal),
        Attack::new(
            "blind/hidepid=2 and a non-dumpable CMD, supervisor stopped",
            SEES_NOTHING,
            hidden_stopped,
        ),
        Attack::new("blind/hidepid=2 and a non-dumpable daemon, CMD exits", SEES_NOTHING, hidden_daemon),
        Attack::new("blind/guards cannot open a descriptor, CMD acts", SEES_NOTHING, |arena| {
            no_descriptors(arena, false)
        }),
        Attack::new("blind/guards cannot open a descriptor, a grandchild acts", SEES_NOTHING, |arena| {
            no_descriptors(arena, true)
        }),
        Attack::new("blind/fs.file-max is exhausted, a grandchild acts", SEES_NOTHING, file_max).alone(),
        Attack::new("blind/seccomp denies pidfd_send_signal", CANNOT_SIGNAL, denied),
        Attack::new("blind/a daemon enters another pid namespace, CMD exits", CGROUP_ASKED, nsenter),
        Attack::new("blind/the /proc of another pid namespace", REFUSED, foreign_proc),
        Attack::new("blind/no /proc", REFUSED, no_proc),
        Attack::new("blind/the first thread of a daemon has exited, steal", ZOMBIE, leaderless),
        Attack::new("blind/a fork storm without a cgroup, steal", STORM, |arena| {
            fork_storm(arena, Who::User)
        }),
        Attack::new("blind/a fork storm in a cgroup, steal", STORM, |arena| fork_storm(arena, Who::Root)),
    ]
}

/// Command line of an actor whose `/proc` entry its own user may not see.
fn hidden_act(arena: &Arena, label: &str) -> Result<Vec<String>, String> {
    shell("mount -o remount,hidepid=2 /proc")?;
    let path = arena.path("hidden");
    fs::copy(arena.actor(), &path).map_err(|error| error.to_string())?;
    arena.mode(&path, 0o711)?;
    let mut act = arena.act(label, 30_000);
    act[0] = path.display().to_string();
    Ok(act)
}

fn hidden_steal(arena: &Arena) -> AttackOutcome {
    let act = hidden_act(arena, "a")?;
    let _holder = match arena.holder(arena.run(Who::User, &["--ttl", "3s"], &act), "a") {
        Ok(holder) => holder,
        Err(refused) => return refusal(&refused),
    };
    steal(arena, Who::User)
}

fn hidden_stopped(arena: &Arena) -> AttackOutcome {
    let act = hidden_act(arena, "a")?;
    let holder = match arena.holder(arena.run(Who::User, &["--ttl", "3s"], &act), "a") {
        Ok(holder) => holder,
        Err(refused) => return refusal(&refused),
    };
    crate::process::send(holder.number, rustix::process::Signal::STOP)?;
    arena.succession(Who::User, &[])
}

fn hidden_daemon(arena: &Arena) -> AttackOutcome {
    let act = hidden_act(arena, "a")?.join(" ");
    let cmd = ["sh".to_owned(), "-c".to_owned(), format!("setsid -f {act}; sleep 0.3")];
    let _holder = match arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a") {
        Ok(holder) => holder,
        Err(refused) => return refusal(&refused),
    };
    sleep_ms(400);
    arena.succession(Who::User, &[])
}

/// A refusal to start is safe if its exit code is 69, 77 or 78.
fn refusal(said: &str) -> AttackOutcome {
    if said.contains("exited with 78") || said.contains("exited with 69") || said.contains("exited with 77") {
        held(format!("refused: {said}"))
    } else {
        broken(said)
    }
}

fn steal(arena: &Arena, who: Who) -> AttackOutcome {
    let (ran, began) = arena.steal(who)?;
    arena.judge(&ran, began)
}

/// Neither guard can open another descriptor: renewals and reads of `/proc` fail.
fn no_descriptors(arena: &Arena, grandchild: bool) -> AttackOutcome {
    let holder = hold(arena, grandchild)?;
    for guard in holder.guards()? {
        arena.limit(guard, "nofile")?;
    }
    arena.succession(Who::User, &[])
}

/// For a few seconds, no process without `CAP_SYS_ADMIN` on the machine can open a descriptor.
fn file_max(arena: &Arena) -> AttackOutcome {
    if !arena.machine_wide {
        return skipped("it changes a machine-wide setting: run it with --machine-wide");
    }
    let holder = hold(arena, true)?;
    let used = fs::read_to_string("/proc/sys/fs/file-nr").map_err(|error| error.to_string())?;
    let used: u64 = used.split_whitespace().next().and_then(|word| word.parse().ok()).ok_or("file-nr")?;
    let before = fs::read_to_string("/proc/sys/fs/file-max").map_err(|error| error.to_string())?;
    fs::write("/proc/sys/fs/file-max", used.saturating_sub(200).to_string())
        .map_err(|error| error.to_string())?;
    // The successor runs as root, which may still open files. It uses the holder's store.
    let url = format!("file://{}?accept=foreign-owner", arena.leases(Who::User).display());
    let mut successor = arena.run(Who::Root, &["--ttl", "3s", "--wait", "9s"], &arena.act("b", 300));
    successor.env("TENURE_STORE", url);
    let began = boot_time();
    let ran = arena.start(successor).and_then(|successor| successor.end(15));
    fs::write("/proc/sys/fs/file-max", before.trim()).map_err(|error| error.to_string())?;
    drop(holder);
    arena.judge(&ran?, began)
}

fn denied(arena: &Arena) -> AttackOutcome {
    let run = arena.run(Who::User, &["--ttl", "3s"], &arena.act("a", 30_000));
    let words: Vec<String> = std::iter::once(run.get_program())
        .chain(run.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let denied = arena.tool(&["denied"]);
    let mut command = arena.command(Who::User, &denied[0]);
    // Skips the setpriv of `run`: `command` has its own, for the same user.
    let own = words.iter().position(|word| word == "--").map_or(0, |at| at + 1);
    command.args(&denied[1..]).args(&words[own..]);
    let _holder = match arena.holder(command, "a") {
        Ok(holder) => holder,
        Err(refused) => return refusal(&refused),
    };
    steal(arena, Who::User)
}

fn nsenter(arena: &Arena) -> AttackOutcome {
    if !has("nsenter") {
        return skipped("nsenter is not installed");
    }
    let mut other = Command::new("unshare");
    other.args(["--pid", "--fork", "--kill-child", "sleep", "60"]);
    let other = arena.start(other)?;
    let init =
        until("the other namespace", Duration::from_secs(5), || children_of(other.number).first().copied())?;
    let act = arena.act("a", 30_000).join(" ");
    let cmd = ["sh".to_owned(), "-c".to_owned(), format!("nsenter -t {init} -p setsid -f {act}; sleep 0.3")];
    let _holder = arena.holder(arena.run(Who::Root, &["--ttl", "3s"], &cmd), "a")?;
    sleep_ms(400);
    arena.succession(Who::Root, &[])
}

fn foreign_proc(arena: &Arena) -> AttackOutcome {
    let run = arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 300));
    let mut command = arena.command(Who::Root, "unshare");
    command.args(["--pid", "--fork"]).arg(run.get_program()).args(run.get_args());
    let ran = arena.ran(command)?;
    if ran.code == 78 && arena.acted("a").is_none() {
        held(ran.err)
    } else {
        broken(format!("it exited with {}: {}", ran.code, ran.err))
    }
}

/// `tenure run` must refuse to start, or kill its tree without `/proc`.
fn no_proc(arena: &Arena) -> AttackOutcome {
    let run = arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 30_000));
    let mut command = arena.command(Who::Root, "unshare");
    command.args(["--mount", "sh", "-c", "umount -l /proc; exec \"$@\"", "sh"]);
    command.arg(run.get_program()).args(run.get_args());
    let _holder = match arena.holder(command, "a") {
        Ok(holder) => holder,
        Err(refused) => return refusal(&refused),
    };
    steal(arena, Who::Root)
}

/// `/proc` shows a zombie, but one of its threads acts.
fn leaderless(arena: &Arena) -> AttackOutcome {
    let acts = arena.acts().display().to_string();
    let act = arena.tool(&["leaderless", &acts, "a", "20000"]).join(" ");
    let cmd = ["sh".to_owned(), "-c".to_owned(), format!("setsid -f {act}; exec sleep 30")];
    let _holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    steal(arena, Who::User)
}

/// CMD starts daemons faster than a guard can read `/proc`.
fn fork_storm(arena: &Arena, who: Who) -> AttackOutcome {
    let mut cmd = arena.tool(&["fork-storm"]);
    cmd.extend(arena.act("a", 30_000));
    let _holder = arena.holder(arena.run(who, &["--ttl", "3s"], &cmd), "a")?;
    sleep_ms(500);
    steal(arena, who)
}

fn hold(arena: &Arena, grandchild: bool) -> Result<Started, String> {
    let act = arena.act("a", 30_000);
    let cmd = if grandchild {
        let words = ["sh", "-c", "setsid -f \"$@\"; exec sleep 30", "sh"].map(str::to_owned);
        words.into_iter().chain(act).collect()
    } else {
        act
    };
    arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")
}

const SEES_NOTHING: &str =
    "neither guard exits while a process of the tree is alive, even if /proc shows nothing";

const CANNOT_SIGNAL: &str =
    "if the guards cannot signal CMD, tenure run refuses to start or kills CMD by other means";

const CGROUP_ASKED: &str =
    "when CMD exits, tenure run kills all that CMD started, even outside its session, and then releases";

const REFUSED: &str =
    "if tenure run cannot find its process tree, it refuses to start (78) or kills the tree by other means";

const ZOMBIE: &str = "a process whose first thread has exited counts as alive while another thread runs";

const STORM: &str =
    "tenure run kills CMD and all that it started before the next holder starts, however fast CMD forks";
