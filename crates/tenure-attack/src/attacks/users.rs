//! CMD runs as a user that the guards may not signal.

use std::fs;

use rustix::process::Signal;
use tenure_testkit::sleep_ms;

use crate::arena::{Arena, KEY, Started, Who};
use crate::attack::Attack;
use crate::process::send;
use crate::shell::{has, shell};
use crate::stamps::boot_time;
use crate::tools;
use crate::verdict::{AttackOutcome, AttackVerdict, broken, held, known_limit, skipped};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("users/steal from a CMD that is sudo-like (forks as root)", STEAL, |arena| {
            steal(arena, "root-fork")
        }),
        Attack::new("users/steal from a CMD that is gosu-like (becomes root)", STEAL, |arena| {
            steal(arena, "root-exec")
        }),
        Attack::new("users/steal from a CMD that is sudo", STEAL, sudo),
        Attack::new("users/the supervisor is stopped, CMD runs as root", NEVER_LEFT, stopped),
        Attack::new("users/CMD exits and leaves a daemon of root", NEVER_LEFT, daemon),
        Attack::new("users/the supervisor is killed, CMD runs as root", NEVER_LEFT, killed),
        Attack::new(
            "users/both guards are killed, CMD continues as root, --no-wait",
            NEVER_LEFT,
            both_killed,
        ),
        Attack::new("users/steal waits, CMD runs as root and exits by itself", NOT_FOR_EVER, ends_by_itself),
        Attack::new("users/steal from root without CAP_KILL, CMD runs as another user", STEAL, no_cap_kill),
        Attack::new("users/both guards are killed, the successor is another user", STRANGER, stranger),
        Attack::new("users/TERM to the supervisor, CMD runs as root", NEVER_LEFT, term),
    ]
}

/// A copy of this program with the setuid bit.
pub(super) fn setuid_program(arena: &Arena) -> Result<String, String> {
    let path = arena.path("setuid");
    fs::copy(arena.actor(), &path).map_err(|error| error.to_string())?;
    arena.mode(&path, 0o4755)?;
    Ok(path.display().to_string())
}

fn hold_as_root(arena: &Arena, tool: &str) -> Result<Started, String> {
    let mut cmd = vec![setuid_program(arena)?, tools::WORD.to_owned(), tool.to_owned()];
    cmd.extend(arena.act("a", 30_000));
    arena.holder(arena.run(Who::User, &["--ttl", "3s", "--holder", KEY], &cmd), "a")
}

fn steal(arena: &Arena, tool: &str) -> AttackOutcome {
    let _holder = hold_as_root(arena, tool)?;
    stolen(arena, Who::User)
}

/// A steal must not act at the same time as the holder whose lease it takes over.
fn stolen(arena: &Arena, who: Who) -> AttackOutcome {
    let (ran, began) = arena.steal(who)?;
    arena.no_overlap()?;
    let living = arena.living("a");
    if ran.code != 0 && !living.is_empty() {
        return held(format!(
            "process {living:?} cannot be stopped; steal exits with {}: {}",
            ran.code, ran.err
        ));
    }
    arena.judge(&ran, began)
}

fn sudo(arena: &Arena) -> AttackOutcome {
    if !has("sudo") {
        return skipped("sudo is not installed");
    }
    // The files are mounted over in this attack's own mount namespace.
    let number = Who::User.number();
    let at = arena.directory.display();
    shell(&format!(
        "cp /etc/passwd {at}/passwd; echo 'attacker:x:{number}:{number}::/:/bin/sh' >>{at}/passwd; \
         cp /etc/group {at}/group; echo 'attacker:x:{number}:' >>{at}/group; \
         echo 'root ALL=(ALL) ALL' >{at}/sudoers; echo 'attacker ALL=(ALL) NOPASSWD: ALL' >>{at}/sudoers; \
         chown root:root {at}/sudoers {at}/passwd {at}/group; chmod 440 {at}/sudoers; chmod 644 {at}/passwd {at}/group; \
         mount --bind {at}/passwd /etc/passwd; mount --bind {at}/group /etc/group; mount --bind {at}/sudoers /etc/sudoers; \
         if [ -e /etc/shadow ]; then cp /etc/shadow {at}/shadow; echo 'attacker:*:19000:0:99999:7:::' >>{at}/shadow; \
           mount --bind {at}/shadow /etc/shadow; fi"
    ))?;
    let mut cmd = vec!["sudo".to_owned(), "-n".to_owned()];
    cmd.extend(arena.act("a", 30_000));
    let _holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    stolen(arena, Who::User)
}

fn stopped(arena: &Arena) -> AttackOutcome {
    let holder = hold_as_root(arena, "root-fork")?;
    send(holder.number, Signal::STOP)?;
    let outcome = arena.succession(Who::User, &[]);
    send(holder.number, Signal::CONT)?;
    outcome
}

/// CMD exits at once. The guards cannot signal its daemon, so the lease must not be free.
fn daemon(arena: &Arena) -> AttackOutcome {
    let program = setuid_program(arena)?;
    let act = arena.act("a", 30_000).join(" ");
    let script = format!("setsid -f {program} {} root-exec {act}; sleep 0.3", tools::WORD);
    let cmd = ["sh".to_owned(), "-c".to_owned(), script];
    let _holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    sleep_ms(400);
    arena.succession(Who::User, &[])
}

fn killed(arena: &Arena) -> AttackOutcome {
    let holder = hold_as_root(arena, "root-fork")?;
    send(holder.number, Signal::KILL)?;
    arena.succession(Who::User, &[])
}

fn both_killed(arena: &Arena) -> AttackOutcome {
    let holder = hold_as_root(arena, "root-fork")?;
    super::killed::kill_all(&holder.guards()?)?;
    sleep_ms(3500);
    let ran = arena.ran(arena.run(Who::User, &["--ttl", "3s", "--no-wait"], &arena.act("b", 300)))?;
    arena.judge(&ran, boot_time())
}

/// The steal starts before the holder can know that it cannot stop CMD. CMD exits after 6 s.
fn ends_by_itself(arena: &Arena) -> AttackOutcome {
    let mut cmd = vec![setuid_program(arena)?, tools::WORD.to_owned(), "root-fork".to_owned()];
    cmd.extend(arena.act("a", 6000));
    let _holder = arena.holder(arena.run(Who::User, &["--ttl", "3s", "--holder", KEY], &cmd), "a")?;
    let mut thief =
        arena.tenure(Who::User, &["steal", KEY, "--reason", "attack", "--ttl", "3s", "--wait", "2s", "--"]);
    thief.args(arena.act("b", 300));
    let thief = arena.start(thief)?.end(10)?;
    arena.no_overlap()?;
    let outcome = arena.succession(Who::User, &["--wait", "10s"])?;
    match outcome {
        AttackVerdict::Held(said) => held(format!("steal exits with {}; {said}", thief.code)),
        outcome => Ok(outcome),
    }
}

/// Root may not signal processes of other users, and may not create a cgroup.
fn no_cap_kill(arena: &Arena) -> AttackOutcome {
    // In this attack's own mount namespace.
    shell("mount -t tmpfs tmpfs /sys/fs/cgroup")?;
    let user = Who::User.number().to_string();
    let mut cmd: Vec<String> =
        ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups", "--"].map(str::to_owned).into();
    cmd.extend(arena.act("a", 30_000));
    let run = arena.run(Who::Root, &["--ttl", "3s"], &cmd);
    let mut command = arena.command(Who::Root, "setpriv");
    command
        .args(["--bounding-set", "-kill", "--inh-caps", "-kill", "--"])
        .arg(run.get_program())
        .args(run.get_args());
    let _holder = arena.holder(command, "a")?;
    stolen(arena, Who::Root)
}

/// Two users share a directory. Neither of them trusts the witness of the other.
fn stranger(arena: &Arena) -> AttackOutcome {
    let at = arena.path("shared");
    shell(&format!("mkdir -m 1777 {0}; mkdir -m 777 {0}/leases", at.display()))?;
    let url = format!("file://{}/leases?accept=writable-by-others&accept=foreign-owner", at.display());
    let cmd = ["sh", "-c", "setsid -f \"$@\"; exec sleep 30", "sh"].map(str::to_owned);
    let cmd: Vec<String> = cmd.into_iter().chain(arena.act("a", 30_000)).collect();
    let mut run = arena.run(Who::User, &["--ttl", "3s"], &cmd);
    run.env("TENURE_STORE", &url);
    let holder = arena.holder(run, "a")?;
    super::killed::kill_all(&holder.guards()?)?;
    let mut successor = arena.run(Who::Stranger, &["--ttl", "3s", "--wait", "9s"], &arena.act("b", 300));
    successor.env("TENURE_STORE", &url);
    let began = boot_time();
    let ran = arena.start(successor)?.end(15)?;
    match arena.no_overlap() {
        Err(overlap) => known_limit(RFC_OUTLIVED, "another user's directory", &overlap),
        // One user cannot read the files of the other: they share no store.
        Ok(_) if matches!(ran.code, 69 | 77) => held(format!("refused with {}: {}", ran.code, ran.err)),
        Ok(_) => arena.judge(&ran, began),
    }
}

/// The supervisor passes TERM on, and must not exit before a process that ignores TERM.
fn term(arena: &Arena) -> AttackOutcome {
    let holder = hold_as_root(arena, "root-fork")?;
    send(holder.number, Signal::TERM)?;
    sleep_ms(1500);
    let outcome = arena.succession(Who::User, &[])?;
    match holder.end(1) {
        Ok(ran) if !arena.living("a").is_empty() => broken(format!(
            "the supervisor exited with {} while a process of root is alive: {}",
            ran.code, ran.err
        )),
        _ => Ok(outcome),
    }
}

const STEAL: &str =
    "steal is granted the lease only after the holder has stopped: two never act at the same time";

const NOT_FOR_EVER: &str = "a lease whose CMD cannot be stopped is free once CMD has exited by itself";

const RFC_OUTLIVED: &str = "docs/rfcs/0008-work-that-cannot-be-stopped.md";

const STRANGER: &str =
    "users that share a directory do not act at the same time, or the documentation says when they may";

const NEVER_LEFT: &str =
    "a process of the tree that cannot be stopped keeps the next holder out until it exits";
