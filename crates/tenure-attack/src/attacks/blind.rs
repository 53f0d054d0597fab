//! Guards that cannot see or cannot signal their tree.

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
        Attack::new("blind/hidepid=2 and a CMD that is not dumpable, steal", SEES_NOTHING, hidden_steal),
        Attack::new(
            "blind/hidepid=2 and a CMD that is not dumpable, supervisor stopped",
            SEES_NOTHING,
            hidden_stopped,
        ),
        Attack::new(
            "blind/hidepid=2 and a daemon that is not dumpable, CMD ends",
            SEES_NOTHING,
            hidden_daemon,
        ),
        Attack::new("blind/guards cannot open a descriptor, CMD acts", SEES_NOTHING, |arena| {
            no_descriptors(arena, false)
        }),
        Attack::new("blind/guards cannot open a descriptor, a grandchild acts", SEES_NOTHING, |arena| {
            no_descriptors(arena, true)
        }),
        Attack::new("blind/fs.file-max is used up, a grandchild acts", SEES_NOTHING, file_max).alone(),
        Attack::new("blind/pidfd_send_signal is denied by seccomp", CANNOT_SIGNAL, denied),
        Attack::new("blind/a daemon enters another pid namespace, CMD ends", CGROUP_ASKED, nsenter),
        Attack::new("blind/the /proc of another pid namespace", REFUSED, foreign_proc),
        Attack::new("blind/no /proc at all", REFUSED, no_proc),
        Attack::new("blind/the first thread of a daemon has ended, steal", ZOMBIE, leaderless),
        Attack::new("blind/a fork storm without cgroup, steal", STORM, |arena| fork_storm(arena, Who::User)),
        Attack::new("blind/a fork storm in a cgroup, steal", STORM, |arena| fork_storm(arena, Who::Root)),
    ]
}

/// An actor whose `/proc` entry its own user may not see.
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

/// A refusal to start is safe, if it says why.
fn refusal(said: &str) -> AttackOutcome {
    if said.contains("ended with 78") || said.contains("ended with 69") || said.contains("ended with 77") {
        held(format!("refused: {said}"))
    } else {
        broken(said)
    }
}

fn steal(arena: &Arena, who: Who) -> AttackOutcome {
    let (ran, began) = arena.steal(who)?;
    arena.judge(&ran, began)
}

/// No descriptor can be opened any more by either guard: neither renewals nor `/proc` work.
fn no_descriptors(arena: &Arena, grandchild: bool) -> AttackOutcome {
    let holder = hold(arena, grandchild)?;
    for guard in holder.guards()? {
        arena.limit(guard, "nofile")?;
    }
    arena.succession(Who::User, &[])
}

/// The same for every process of the machine without `CAP_SYS_ADMIN`, for some seconds.
fn file_max(arena: &Arena) -> AttackOutcome {
    if !arena.machine_wide {
        return skipped("it changes a setting of the whole machine: --machine-wide runs it");
    }
    let holder = hold(arena, true)?;
    let used = fs::read_to_string("/proc/sys/fs/file-nr").map_err(|error| error.to_string())?;
    let used: u64 = used.split_whitespace().next().and_then(|word| word.parse().ok()).ok_or("file-nr")?;
    let before = fs::read_to_string("/proc/sys/fs/file-max").map_err(|error| error.to_string())?;
    fs::write("/proc/sys/fs/file-max", used.saturating_sub(200).to_string())
        .map_err(|error| error.to_string())?;
    // The successor is root's, who may open files; its store is the holder's.
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
    // The command is setpriv already, and this user is that one.
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
        broken(format!("it ended with {}: {}", ran.code, ran.err))
    }
}

/// Either it refuses to start, or it ends its tree without `/proc`.
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

/// `/proc` shows a zombie, and a thread of it acts.
fn leaderless(arena: &Arena) -> AttackOutcome {
    let acts = arena.acts().display().to_string();
    let act = arena.tool(&["leaderless", &acts, "a", "20000"]).join(" ");
    let cmd = ["sh".to_owned(), "-c".to_owned(), format!("setsid -f {act}; exec sleep 30")];
    let _holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    steal(arena, Who::User)
}

/// CMD starts daemons faster than `/proc` can be read.
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
    "neither guard ends while a process of the tree is alive, also where /proc shows nothing";

const CANNOT_SIGNAL: &str =
    "where the guards could not signal CMD, tenure run refuses to start or ends it all the same";

const CGROUP_ASKED: &str =
    "the end of CMD ends all that it started before the lease is free, also outside its session";

const REFUSED: &str =
    "where the tree could not be found, tenure run refuses to start (78) or ends it all the same";

const ZOMBIE: &str = "a process whose first thread has ended is alive as long as another thread runs";

const STORM: &str =
    "tenure run ends CMD and everything it started before the next holder starts, however fast it forks";
