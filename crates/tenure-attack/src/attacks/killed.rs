//! One guard killed, or both.

use rustix::process::Signal;
use tenure_testkit::{is_alive, sleep_ms};

use crate::arena::{Arena, KEY, Started, Who};
use crate::attack::Attack;
use crate::process::{send, until};
use crate::shell::{has, shell};
use crate::stamps::boot_time;
use crate::verdict::{AttackOutcome, AttackVerdict, broken, held, known_limit, skipped};

/// Position of the acting process in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// CMD itself.
    Child,
    /// A grandchild in its own session, with CMD's descriptors.
    Grandchild,
    /// A grandchild in its own session, without descriptors, as Python's `Popen` starts it.
    Closing,
}

/// Method of killing both guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killer {
    Killall,
    Pkill,
    Pidof,
    /// By the path of the executable, which both guards share.
    KillallPath,
    /// By their pids. Both are stopped first, so that neither can react.
    Both,
}

pub(super) fn all() -> Vec<Attack> {
    let mut attacks = Vec::new();
    for (killer, how) in [
        (Killer::Killall, "killall -9 tenure"),
        (Killer::Pkill, "pkill -9 tenure"),
        (Killer::Pidof, "kill -9 $(pidof tenure)"),
        (Killer::KillallPath, "killall -9 /path/to/tenure"),
        (Killer::Both, "kill -9 of both guards"),
    ] {
        for (place, what) in [
            (Place::Child, "CMD"),
            (Place::Grandchild, "a setsid grandchild"),
            (Place::Closing, "a grandchild without descriptors"),
        ] {
            for (who, with) in [(Who::Root, "with a cgroup"), (Who::User, "without a cgroup")] {
                let by_name = killer != Killer::Both;
                if by_name && (place == Place::Grandchild || who == Who::Root && place == Place::Child) {
                    // The name only selects the processes to kill; `Killer::Both` tests the effect.
                    continue;
                }
                let name = format!("killed/{how}: {what} acts, {with}");
                attacks
                    .push(Attack::new(name, SUCCESSOR_WAITS, move |arena| both(arena, killer, place, who)));
            }
        }
    }
    attacks.extend([
        Attack::new("killed/the supervisor alone", GUARD_REMAINS, |arena| one(arena, 0)),
        Attack::new("killed/the watchdog alone", GUARD_REMAINS, |arena| one(arena, 1)),
        Attack::new(
            "killed/an orphan remains: --no-wait exits with 75 and names it",
            ORPHAN_NAMED,
            orphan_named,
        ),
        Attack::new(
            "killed/an orphan remains: --orphan-wait continues with a warning",
            ORPHAN_WAIT,
            orphan_wait,
        ),
        Attack::new("killed/the complete unit, CMD is in another cgroup", SUCCESSOR_WAITS, unit),
        Attack::new("killed/CMD kills its parent", GUARD_REMAINS, kills_parent),
        Attack::new("killed/CMD kills both guards", SUCCESSOR_WAITS, kills_both),
        Attack::new("killed/both guards, CMD has changed its user by setuid", SUCCESSOR_WAITS, setuid),
        Attack::new(
            "killed/both guards, CMD has cleared its parent-death signal",
            SUCCESSOR_WAITS,
            pdeathsig,
        ),
        Attack::new(
            "killed/both guards, the first thread of a grandchild has exited",
            SUCCESSOR_WAITS,
            leaderless,
        ),
        Attack::new("killed/an orphan exits while a successor waits", ORPHAN_ENDS, orphan_ends),
        Attack::new("killed/the supervisor, while the watchdog is stopped", SUCCESSOR_WAITS, |arena| {
            mixed(arena, 0)
        }),
        Attack::new("killed/the watchdog, while the supervisor is stopped", SUCCESSOR_WAITS, |arena| {
            mixed(arena, 1)
        }),
        Attack::new("killed/both guards, then steal", STEAL, |arena| {
            other_contender(
                arena,
                &["steal", KEY, "--reason", "attack", "--wait", "9s"],
                "docs/operating/taking-over.md",
            )
        }),
        Attack::new("killed/both guards, then acquire", ACQUIRE, |arena| {
            other_contender(arena, &["acquire", KEY, "--wait", "9s"], "docs/operating/scripts.md")
        }),
        Attack::new("killed/both guards, then a contender that uses the library", BY_TTL, library_contender),
        Attack::new("killed/the supervisor, after its executable was replaced", GUARD_REMAINS, replaced),
        Attack::new("killed/both guards of the outer of two nested runs", SUCCESSOR_WAITS, nested),
        Attack::new(
            "killed/both guards, another user has locked their cgroup",
            SUCCESSOR_WAITS,
            locked_cgroup,
        ),
        Attack::new("killed/both guards, the successor is in another cgroup", SUCCESSOR_WAITS, |arena| {
            elsewhere(arena, &["--wait", "9s"])
        }),
        Attack::new(
            "killed/both guards, the successor is in another cgroup and does not wait",
            SUCCESSOR_WAITS,
            |arena| elsewhere(arena, &["--no-wait"]),
        ),
        Attack::new(
            "killed/both guards, the successor names the store by another path",
            SUCCESSOR_WAITS,
            other_path,
        ),
        Attack::new("killed/the first process of the holder's container", SUCCESSOR_WAITS, container),
        Attack::new("killed/both guards, and the successor gets their pids", SUCCESSOR_WAITS, same_numbers),
        Attack::new("killed/CMD exits and leaves a daemon, without a cgroup", DAEMON_ENDED, |arena| {
            daemon(arena, Who::User)
        }),
        Attack::new("killed/CMD exits and leaves a daemon, with a cgroup", DAEMON_ENDED, |arena| {
            daemon(arena, Who::Root)
        }),
        Attack::new("killed/both guards before the first renewal, eight times", SUCCESSOR_WAITS, again),
    ]);
    attacks
}

/// Kills both guards, and starts a successor.
fn both(arena: &Arena, killer: Killer, place: Place, who: Who) -> AttackOutcome {
    let holder = hold(arena, place, who)?;
    let guards = holder.guards()?;
    match killer {
        Killer::Killall | Killer::KillallPath if !has("killall") => {
            return skipped("killall (psmisc) is not installed");
        }
        Killer::Pkill if !has("pkill") => return skipped("pkill (procps) is not installed"),
        Killer::Pidof if !has("pidof") => return skipped("pidof is not installed"),
        Killer::Killall => drop(shell("killall -9 tenure")?),
        Killer::Pkill => drop(shell("pkill -9 tenure")?),
        Killer::Pidof => drop(shell("kill -9 $(pidof tenure)")?),
        Killer::KillallPath => drop(shell(&format!("killall -9 {}", arena.program().display()))?),
        Killer::Both => kill_all(&guards)?,
    }
    if place == Place::Closing && who == Who::User && !arena.living("a").is_empty() {
        sleep_ms(500);
        let is_orphan = !arena.living("a").is_empty() && guards.iter().all(|&guard| !is_alive(guard));
        let outcome = arena.succession(who, &[]);
        return match outcome {
            Err(overlap) if is_orphan && overlap.starts_with("OVERLAP") => {
                known_limit(RFC, "closed the witness and had no cgroup is not seen", &overlap)
            }
            outcome => outcome,
        };
    }
    arena.succession(who, &[])
}

/// Kills one guard. The other one kills CMD, and the lease is free at once.
fn one(arena: &Arena, which: usize) -> AttackOutcome {
    let holder = hold(arena, Place::Grandchild, Who::User)?;
    send(holder.guards()?[which], Signal::KILL)?;
    let outcome = arena.succession(Who::User, &[]);
    let living = arena.living("a");
    if living.is_empty() {
        outcome
    } else {
        broken(format!("processes {living:?} of the holder are still alive"))
    }
}

fn orphan_named(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena, Place::Grandchild, Who::User)?;
    kill_all(&holder.guards()?)?;
    // After the ttl of 3 s, only the orphan keeps contenders out.
    sleep_ms(4000);
    let [orphan] = arena.living("a")[..] else { return held("the grandchild died with its guards") };
    let ran = arena.ran(arena.run(Who::User, &["--no-wait", "--ttl", "3s"], &arena.act("b", 100)))?;
    arena.no_overlap()?;
    let said = ran.err.trim();
    if ran.code == 75 && said.contains(&orphan.to_string()) {
        held(said)
    } else {
        broken(format!("orphan {orphan} is alive; the successor exited with {}: {said}", ran.code))
    }
}

fn orphan_wait(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena, Place::Grandchild, Who::User)?;
    kill_all(&holder.guards()?)?;
    sleep_ms(200);
    if arena.living("a").is_empty() {
        return held("the grandchild died with its guards");
    }
    let options = ["--orphan-wait", "1s", "--wait", "12s", "--ttl", "3s"];
    let ran = arena.ran(arena.run(Who::User, &options, &["true".to_owned()]))?;
    let said = ran.err.trim();
    if ran.code == 0 && !said.is_empty() {
        held(said)
    } else {
        broken(format!("the successor exited with {}: {said:?}", ran.code))
    }
}

/// Kills the orphan five seconds after its guards, two seconds after its lease has run out.
fn orphan_ends(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena, Place::Grandchild, Who::User)?;
    kill_all(&holder.guards()?)?;
    let options = ["--ttl", "3s", "--wait", "12s"];
    let successor = arena.start(arena.run(Who::User, &options, &arena.act("b", 300)))?;
    sleep_ms(5000);
    let ended = boot_time();
    for orphan in arena.living("a") {
        send(orphan, Signal::KILL)?;
    }
    let ran = successor.end(15)?;
    arena.no_overlap()?;
    let waited = arena.acted("b").map(|act| (act.first - ended) as f64 / 1e6);
    match waited {
        Some(waited) if waited < 2000.0 => {
            held(format!("the successor acted {waited:.0} ms after the orphan was killed"))
        }
        waited => {
            broken(format!("{waited:?} ms after the orphan was killed; exit {}: {}", ran.code, ran.err))
        }
    }
}

/// Kills the cgroup of the guards, as a service manager kills a unit. CMD has moved to another cgroup before.
fn unit(arena: &Arena) -> AttackOutcome {
    let Some(cgroup) = &arena.cgroup else { return skipped("there is no cgroup of version 2") };
    let (unit, scope) = (cgroup.join("unit"), cgroup.join("scope"));
    for path in [&unit, &scope] {
        std::fs::create_dir(path).map_err(|error| error.to_string())?;
    }
    let act = arena.act("a", 30_000).join(" ");
    let cmd =
        ["sh".to_owned(), "-c".to_owned(), format!("echo 0 >{}/cgroup.procs; exec {act}", scope.display())];
    let run = arena.run(Who::Root, &["--ttl", "3s"], &cmd);
    let holder = arena.holder(arena.inside(&unit, &run), "a")?;
    let guards = holder.guards()?;
    std::fs::write(unit.join("cgroup.kill"), "1").map_err(|error| error.to_string())?;
    until("the guards to exit", std::time::Duration::from_secs(5), || {
        guards.iter().all(|&guard| !is_alive(guard)).then_some(())
    })?;
    arena.succession(Who::Root, &[])
}

fn kills_parent(arena: &Arena) -> AttackOutcome {
    let act = arena.act("a", 30_000).join(" ");
    let script = format!("setsid -f {act}; sleep 0.3; kill -9 $PPID; exec sleep 30");
    let cmd = ["sh".to_owned(), "-c".to_owned(), script];
    let holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    let outcome = arena.succession(Who::User, &[]);
    let ran = holder.end(10)?;
    let living = arena.living("a");
    if !living.is_empty() {
        return broken(format!("processes {living:?} of the holder are still alive"));
    }
    if ran.code != 76 {
        return broken(format!("the supervisor exited with {}, not 76: {}", ran.code, ran.err));
    }
    outcome
}

fn kills_both(arena: &Arena) -> AttackOutcome {
    let act = arena.act("a", 30_000).join(" ");
    let script = format!(
        "s=$(cut -d' ' -f4 /proc/$PPID/stat); setsid -f {act}; sleep 0.3; kill -STOP $s $PPID; kill -9 $s $PPID; exec sleep 30"
    );
    let cmd = ["sh".to_owned(), "-c".to_owned(), script];
    let _holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    sleep_ms(500);
    arena.succession(Who::User, &[])
}

/// CMD executes a setuid program, which clears its parent-death signal.
fn setuid(arena: &Arena) -> AttackOutcome {
    let program = super::users::setuid_program(arena)?;
    let mut cmd = vec![program, crate::tools::WORD.to_owned(), "root-exec".to_owned()];
    cmd.extend(arena.act("a", 30_000));
    let holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    kill_all(&holder.guards()?)?;
    arena.succession(Who::User, &[])
}

/// CMD clears its parent-death signal. It still has the witness.
fn pdeathsig(arena: &Arena) -> AttackOutcome {
    let mut cmd: Vec<String> = ["setpriv", "--pdeathsig", "clear", "--"].map(str::to_owned).into();
    cmd.extend(arena.act("a", 30_000));
    let holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    kill_all(&holder.guards()?)?;
    arena.succession(Who::User, &[])
}

/// The first thread of a grandchild exits, and another one acts. `/proc` shows a zombie.
fn leaderless(arena: &Arena) -> AttackOutcome {
    let acts = arena.acts().display().to_string();
    let cmd = behind("setsid -f \"$@\"; exec sleep 30", arena.tool(&["leaderless", &acts, "a", "20000"]));
    let holder = arena.holder(arena.run(Who::User, &["--ttl", "3s"], &cmd), "a")?;
    kill_all(&holder.guards()?)?;
    let outcome = arena.succession(Who::User, &["--wait", "6s"]);
    match outcome {
        // Its command line cannot be read, so `judge` takes it for dead. Its stamps show that it is alive.
        Ok(AttackVerdict::Broken(said)) if said.starts_with("no process of the holder is alive") => {
            let last = arena.acted("a").map_or(0, |act| act.last);
            if boot_time() - last < 100_000_000 {
                held(format!("it still acts: {said}"))
            } else {
                broken(said)
            }
        }
        outcome => outcome,
    }
}

/// Neither guard runs: one is stopped, the other is killed.
fn mixed(arena: &Arena, killed: usize) -> AttackOutcome {
    let holder = hold(arena, Place::Grandchild, Who::User)?;
    let guards = holder.guards()?;
    send(guards[1 - killed], Signal::STOP)?;
    send(guards[killed], Signal::KILL)?;
    arena.succession(Who::User, &[])
}

/// A contender other than `tenure run` must not be granted the lease while the orphan acts.
fn other_contender(arena: &Arena, words: &[&str], page: &str) -> AttackOutcome {
    let holder = hold(arena, Place::Grandchild, Who::User)?;
    kill_all(&holder.guards()?)?;
    sleep_ms(300);
    if arena.living("a").is_empty() {
        return held("the grandchild died with its guards");
    }
    let ran = arena.ran(arena.tenure(Who::User, words))?;
    let living = arena.living("a");
    if ran.code == 0 && !living.is_empty() {
        let evidence = format!("granted while process {living:?} of the former holder is alive: {}", ran.err);
        return known_limit(page, "orphan", &evidence);
    }
    held(format!("exit {}: {}", ran.code, ran.err))
}

fn library_contender(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena, Place::Grandchild, Who::User)?;
    kill_all(&holder.guards()?)?;
    let url = format!("file://{}", arena.leases(Who::User).display());
    let acts = arena.acts().display().to_string();
    let words = arena.tool(&["hold", &url, "3000", "9000", &acts, "b", "300"]);
    let mut command = arena.command(Who::User, &words[0]);
    command.args(&words[1..]);
    let ran = arena.ran(command)?;
    match arena.no_overlap() {
        Ok(_) => held(format!("exit {}: {}", ran.code, ran.err)),
        Err(overlap) => known_limit(
            RFC_OUTLIVED,
            "A library contender without this option takes the lease by the ttl as before.",
            &overlap,
        ),
    }
}

/// Replaces the executable, as an upgrade does, and kills the supervisor.
fn replaced(arena: &Arena) -> AttackOutcome {
    let program = arena.path("tenure");
    std::fs::copy(arena.program(), &program).map_err(|error| error.to_string())?;
    let cmd = behind("setsid -f \"$@\"; exec sleep 30", arena.act("a", 30_000));
    let mut command = arena.command(Who::User, &program);
    command.args(["run", KEY, "--ttl", "3s", "--"]).args(cmd);
    let holder = arena.holder(command, "a")?;
    std::fs::remove_file(&program).map_err(|error| error.to_string())?;
    std::fs::write(&program, "#!/bin/false\n").map_err(|error| error.to_string())?;
    send(holder.number, Signal::KILL)?;
    arena.succession(Who::User, &[])
}

/// CMD is itself a `tenure run` of another lease, whose CMD acts.
fn nested(arena: &Arena) -> AttackOutcome {
    let inner = arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 30_000));
    let mut outer = arena.tenure(Who::Root, &["run", "outer", "--ttl", "3s", "--"]);
    outer.arg(inner.get_program()).args(inner.get_args());
    let holder = arena.holder(outer, "a")?;
    kill_all(&holder.guards()?)?;
    // The inner supervisor dies with the outer watchdog; the inner watchdog kills the actor.
    arena.succession(Who::Root, &[])
}

/// The guards and their tree are in one cgroup, and the successor is in another one.
fn elsewhere(arena: &Arena, options: &[&str]) -> AttackOutcome {
    let Some(cgroup) = &arena.cgroup else { return skipped("there is no cgroup of version 2") };
    let (one, two) = (cgroup.join("one"), cgroup.join("two"));
    for path in [&one, &two] {
        std::fs::create_dir(path).map_err(|error| error.to_string())?;
    }
    let cmd = closing_grandchild(arena, "exec sleep 30");
    let holder = arena.holder(arena.inside(&one, &arena.run(Who::Root, &["--ttl", "3s"], &cmd)), "a")?;
    kill_all(&holder.guards()?)?;
    let began = boot_time();
    let options = [&["--ttl", "3s"], options].concat();
    let run = arena.run(Who::Root, &options, &arena.act("b", 300));
    let ran = arena.start(arena.inside(&two, &run))?.end(15)?;
    if ran.code == 75 && options.contains(&"--no-wait") {
        // The processes that it killed may need some more milliseconds to die.
        arena.no_overlap()?;
        return held(ran.err);
    }
    arena.judge(&ran, began)
}

/// The successor reaches the directory through a symbolic link.
fn other_path(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena, Place::Closing, Who::Root)?;
    kill_all(&holder.guards()?)?;
    shell(&format!("ln -s {} {}", arena.home(Who::Root).display(), arena.path("link").display()))?;
    let began = boot_time();
    let mut successor = arena.run(Who::Root, &["--ttl", "3s", "--wait", "9s"], &arena.act("b", 300));
    successor.env("TENURE_STORE", format!("file://{}/leases", arena.path("link").display()));
    let ran = arena.start(successor)?.end(15)?;
    arena.judge(&ran, began)
}

/// Guards and tree are in a pid namespace. The kernel kills them all with its first process.
fn container(arena: &Arena) -> AttackOutcome {
    let run = arena.run(Who::Root, &["--ttl", "3s"], &closing_grandchild(arena, "exec sleep 30"));
    let mut container = arena.command(Who::Root, "unshare");
    container.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        "\"$@\"; exit",
        "sh",
    ]);
    container.arg(run.get_program()).args(run.get_args());
    let holder = arena.holder(container, "a")?;
    send(holder.number, Signal::KILL)?;
    arena.succession(Who::Root, &[])
}

/// Another user locks the directory of the cgroup as the guards do: every user may open it.
fn locked_cgroup(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena, Place::Closing, Who::Root)?;
    let Some(cgroup) = &arena.cgroup else { return skipped("there is no cgroup of version 2") };
    let directories = std::fs::read_dir(cgroup).into_iter().flatten().flatten();
    let found = directories.map(|entry| entry.path()).find(|path| path.is_dir());
    let Some(found) = found else { return skipped("tenure run created no cgroup") };
    let mut locker = arena.command(Who::User, "flock");
    locker.arg("--shared").arg(&found).args(["sleep", "30"]);
    let _locker = arena.start(locker)?;
    sleep_ms(300);
    kill_all(&holder.guards()?)?;
    arena.succession(Who::Root, &[])
}

/// The kernel gives the pids of the dead guards to the successor's guards.
fn same_numbers(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena, Place::Grandchild, Who::User)?;
    let guards = holder.guards()?;
    kill_all(&guards)?;
    let _ = holder.end(5)?;
    std::fs::write("/proc/sys/kernel/ns_last_pid", (guards[0] - 1).to_string())
        .map_err(|error| error.to_string())?;
    arena.succession(Who::User, &[])
}

/// CMD exits. Its daemon, in its own session and without descriptors, must be dead before the lease is free.
fn daemon(arena: &Arena, who: Who) -> AttackOutcome {
    let cmd = closing_grandchild(arena, "sleep 0.3");
    let _holder = arena.holder(arena.run(who, &["--ttl", "3s"], &cmd), "a")?;
    let outcome = arena.succession(who, &[]);
    let living = arena.living("a");
    if living.is_empty() {
        outcome
    } else {
        broken(format!("processes {living:?} of the holder are still alive"))
    }
}

/// Eight terms in a row lose both guards at once. No term may act at the same time as the next one.
fn again(arena: &Arena) -> AttackOutcome {
    for round in 0..8 {
        let label = format!("r{round}");
        let cmd = arena.act(&label, 30_000);
        let options = ["--ttl", "1s", "--kill-grace", "100ms", "--wait", "8s"];
        let holder = match arena.holder(arena.run(Who::Root, &options, &cmd), &label) {
            Ok(holder) => holder,
            Err(error) => return arena.no_overlap().and_then(|_| broken(error)),
        };
        kill_all(&holder.guards()?)?;
    }
    let acts = arena.no_overlap()?;
    held(format!("{acts} terms, each killed, no overlap"))
}

fn hold(arena: &Arena, place: Place, who: Who) -> Result<Started, String> {
    let act = arena.act("a", 30_000);
    let cmd = match place {
        Place::Child => act,
        Place::Grandchild => behind("setsid -f \"$@\"; exec sleep 30", act),
        Place::Closing => closing_grandchild(arena, "exec sleep 30"),
    };
    arena.holder(arena.run(who, &["--ttl", "3s", "--holder", KEY], &cmd), "a")
}

/// A CMD that starts an actor without descriptors, and continues with `then`.
fn closing_grandchild(arena: &Arena, then: &str) -> Vec<String> {
    let closing = arena.tool(&["closing"]).join(" ");
    behind(&format!("setsid -f {closing} \"$@\"; {then}"), arena.act("a", 30_000))
}

fn behind(script: &str, act: Vec<String>) -> Vec<String> {
    ["sh", "-c", script, "sh"].map(str::to_owned).into_iter().chain(act).collect()
}

/// Kills all these processes. It stops them first, so that none sees another one die.
pub(super) fn kill_all(numbers: &[i32]) -> Result<(), String> {
    for signal in [Signal::STOP, Signal::KILL] {
        for &number in numbers {
            send(number, signal)?;
        }
    }
    Ok(())
}

const RFC: &str = "docs/rfcs/0005-how-tenure-run-ends-a-tree.md";

const SUCCESSOR_WAITS: &str = "both guards killed: CMD dies with them, and the next run on this machine does not start while an orphan is alive";

const RFC_OUTLIVED: &str = "docs/rfcs/0008-work-that-cannot-be-stopped.md";

const BY_TTL: &str =
    "a library contender that does not heed the tree takes the lease by the ttl, and reports an event";

const STEAL: &str =
    "steal is granted the lease only when two cannot act at the same time, or its page names the orphan";

const ACQUIRE: &str =
    "acquire does not take the lease while an orphan is alive, or its page names the orphan";

const ORPHAN_ENDS: &str = "a run that waits for an orphan continues as soon as the orphan has exited";

const DAEMON_ENDED: &str =
    "when CMD exits, tenure run kills what CMD left running, and then releases the lease";

const GUARD_REMAINS: &str =
    "one guard killed: the other one kills the complete tree before the next holder starts";

const ORPHAN_NAMED: &str =
    "a run that finds an orphan reports its pid, and exits with 75 if --no-wait is given";

const ORPHAN_WAIT: &str = "with --orphan-wait DURATION, a run continues after that time, with a warning";
