//! Guards that are stopped, frozen or traced.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_testkit::sleep_ms;

use crate::arena::{Arena, KEY, Started, Who};
use crate::attack::Attack;
use crate::process::send;
use crate::verdict::{AttackOutcome, broken, held, known_limit, skipped};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("stopped/the supervisor, past the deadline", WATCHDOG_ENDS, |arena| one(arena, 0)),
        Attack::new("stopped/the watchdog, then steal", SUPERVISOR_ENDS, watchdog_then_steal),
        Attack::new("stopped/the supervisor by a debugger, past the deadline", WATCHDOG_ENDS, traced),
        Attack::new("stopped/both guards past the deadline, then continued", OVERRUN_SAID, overrun),
        Attack::new("stopped/both guards past the deadline, a successor starts", BOTH, both),
        Attack::new("stopped/guards and tree frozen past the deadline by a cgroup", FROZEN, frozen),
        Attack::new("stopped/a storm of STOP and CONT on one guard at a time", WATCHDOG_ENDS, storm),
        Attack::new("stopped/CMD traces both guards past the deadline", BOTH, tracing_cmd),
        Attack::new("stopped/supervisor and CMD, as by Ctrl-Z", WATCHDOG_ENDS, job_control),
        Attack::new("stopped/the supervisor between grant and start, ten times", NO_LATE_START, before_start),
        Attack::new(
            "stopped/the supervisor, a successor starts after its tree has died",
            NOT_BLOCKED,
            after_the_end,
        ),
    ]
}

fn hold(arena: &Arena) -> Result<Started, String> {
    arena.holder(arena.run(Who::User, &["--ttl", "3s", "--holder", KEY], &arena.act("a", 30_000)), "a")
}

fn one(arena: &Arena, which: usize) -> AttackOutcome {
    let holder = hold(arena)?;
    let guard = holder.guards()?[which];
    send(guard, Signal::STOP)?;
    let outcome = arena.succession(Who::User, &[]);
    send(guard, Signal::CONT)?;
    outcome
}

fn watchdog_then_steal(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena)?;
    send(holder.watchdog()?, Signal::STOP)?;
    let mut thief =
        arena.tenure(Who::User, &["steal", KEY, "--reason", "attack", "--ttl", "3s", "--wait", "9s", "--"]);
    thief.args(arena.act("b", 300));
    let began = crate::stamps::boot_time();
    let ran = arena.start(thief)?.end(20)?;
    arena.judge(&ran, began)
}

fn traced(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena)?;
    let words = arena.tool(&["ptrace", &holder.number.to_string(), "6000"]);
    let mut tracer = arena.command(Who::Root, &words[0]);
    tracer.args(&words[1..]);
    let tracer = arena.start(tracer)?;
    sleep_ms(100);
    let outcome = arena.succession(Who::User, &[]);
    let ran = tracer.end(10)?;
    if ran.code == 0 { outcome } else { skipped(format!("a process cannot be traced here: {}", ran.err)) }
}

/// CMD is root and attaches a tracer to its own guards, which the kernel allows.
fn tracing_cmd(arena: &Arena) -> AttackOutcome {
    let ptrace = arena.tool(&["ptrace"]).join(" ");
    let act = arena.act("a", 30_000).join(" ");
    let script = format!(
        "s=$(cut -d' ' -f4 /proc/$PPID/stat); {ptrace} $s 9000 & {ptrace} $PPID 9000 & sleep 0.2; exec {act}"
    );
    let cmd = ["sh".to_owned(), "-c".to_owned(), script];
    let _holder = arena.holder(arena.run(Who::Root, &["--ttl", "3s"], &cmd), "a")?;
    arena.succession(Who::Root, &["--wait", "6s"])
}

/// Nothing can kill CMD while both guards are stopped. The supervisor reports the overrun when it continues.
fn overrun(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena)?;
    let guards = holder.guards()?;
    for guard in guards {
        send(guard, Signal::STOP)?;
    }
    sleep_ms(6000);
    let acted = !arena.living("a").is_empty();
    for guard in guards {
        send(guard, Signal::CONT)?;
    }
    let ran = holder.end(10)?;
    if !acted {
        return held("CMD was dead before the deadline although both guards were stopped");
    }
    let says_so = ran.err.contains("overran") || ran.err.contains("overrun");
    if ran.code == 76 && says_so {
        held(ran.err)
    } else {
        broken(format!(
            "CMD acted 3 s past the deadline; the supervisor exited with {}: {}",
            ran.code, ran.err
        ))
    }
}

fn both(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena)?;
    let guards = holder.guards()?;
    for guard in guards {
        send(guard, Signal::STOP)?;
    }
    let outcome = arena.succession(Who::User, &[]);
    for guard in guards {
        send(guard, Signal::CONT)?;
    }
    outcome
}

/// The complete tree is frozen, as on a paused machine, and continues for a moment when it is thawed.
fn frozen(arena: &Arena) -> AttackOutcome {
    let Some(cgroup) = &arena.cgroup else { return skipped("there is no cgroup of version 2") };
    let ice = cgroup.join("ice");
    std::fs::create_dir(&ice).map_err(|error| error.to_string())?;
    let run = arena.run(Who::Root, &["--ttl", "3s"], &arena.act("a", 30_000));
    let _holder = arena.holder(arena.inside(&ice, &run), "a")?;
    let freeze =
        |word: &str| std::fs::write(ice.join("cgroup.freeze"), word).map_err(|error| error.to_string());
    freeze("1")?;
    let options = ["--ttl", "3s", "--wait", "9s"];
    let successor = arena.holder(arena.run(Who::Root, &options, &arena.act("b", 3000)), "b");
    freeze("0")?;
    let ran = match successor {
        Ok(successor) => successor.end(15)?,
        // The successor waits for a tree that still has its lock.
        Err(waiting) => return held(waiting),
    };
    match arena.no_overlap() {
        Ok(_) => held(format!("the successor exited with {}; no overlap", ran.code)),
        Err(overlap) => known_limit(RFC, "paused as a whole", &overlap),
    }
}

/// For twelve seconds, one term follows another. In each, one guard at a time is stopped and continued at random.
fn storm(arena: &Arena) -> AttackOutcome {
    let end = Instant::now() + Duration::from_secs(12);
    let mut stopped = Vec::new();
    let mut random = random_from(7);
    while Instant::now() < end {
        let label = format!("t{}", stopped.len());
        let options = ["--ttl", "1s", "--kill-grace", "100ms", "--wait", "8s"];
        let holder = match arena.holder(arena.run(Who::User, &options, &arena.act(&label, 30_000)), &label) {
            Ok(holder) => holder,
            Err(error) => {
                arena.no_overlap()?;
                return blocked(&stopped, &error);
            }
        };
        let guards = holder.guards()?;
        for _ in 0..6 {
            let guard = guards[(random() % 2) as usize];
            if send(guard, Signal::STOP).is_err() {
                break;
            }
            sleep_ms(random() % 400);
            let _ = send(guard, Signal::CONT);
        }
        // The supervisor stays stopped; the watchdog kills the tree.
        let _ = send(guards[0], Signal::STOP);
        stopped.push(guards[0]);
    }
    sleep_ms(500);
    let acts = arena.no_overlap()?;
    held(format!("{acts} terms, no overlap"))
}

/// A process that is stopped while it has the lock of the key blocks the key. The message must name it.
fn blocked(stopped: &[i32], error: &str) -> AttackOutcome {
    let has_lock = |number: &&i32| {
        let descriptors = std::fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|path| path.ends_with("k.lock"))
    };
    match stopped.iter().find(has_lock) {
        Some(owner) if error.contains(&owner.to_string()) => held(format!("no overlap; {error}")),
        Some(owner) => broken(format!(
            "no overlap, but process {owner} is stopped while it has the lock, and not named: {error}"
        )),
        None => broken(format!("no overlap, but {error}")),
    }
}

/// A stopped supervisor whose tree its watchdog has killed does not block contenders.
fn after_the_end(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena)?;
    send(holder.number, Signal::STOP)?;
    sleep_ms(3500);
    if !arena.living("a").is_empty() {
        return broken("the watchdog did not kill CMD before the deadline");
    }
    let ran = arena.ran(arena.run(Who::User, &["--ttl", "3s", "--no-wait"], &arena.act("b", 50)))?;
    let _ = send(holder.number, Signal::CONT);
    arena.judge(&ran, crate::stamps::boot_time())
}

fn job_control(arena: &Arena) -> AttackOutcome {
    let holder = hold(arena)?;
    for number in arena.living("a").into_iter().chain([holder.number]) {
        send(number, Signal::STOP)?;
    }
    let successor =
        arena.holder(arena.run(Who::User, &["--ttl", "3s", "--wait", "9s"], &arena.act("b", 1500)), "b")?;
    for number in arena.living("a").into_iter().chain([holder.number]) {
        let _ = send(number, Signal::CONT);
    }
    let ran = successor.end(10)?;
    arena.no_overlap()?;
    held(format!("the successor exited with {}", ran.code))
}

/// Ten supervisors in turn are stopped some milliseconds after their start, and continued while a successor acts.
fn before_start(arena: &Arena) -> AttackOutcome {
    for round in 0..10 {
        let options = ["--ttl", "1s", "--kill-grace", "100ms", "--wait", "8s"];
        let first = arena.start(arena.run(Who::User, &options, &arena.act(&format!("x{round}"), 2000)))?;
        sleep_ms(4 + 3 * round);
        let _ = send(first.number, Signal::STOP);
        let label = format!("y{round}");
        let second = arena.holder(arena.run(Who::User, &options, &arena.act(&label, 400)), &label);
        let second = match second {
            Ok(second) => second,
            Err(error) => {
                arena.no_overlap()?;
                return blocked(&[first.number], &error);
            }
        };
        let _ = send(first.number, Signal::CONT);
        second.end(10)?;
        first.end(15)?;
        arena.no_overlap()?;
    }
    held("ten supervisors were stopped during their start, and none of them started CMD late")
}

/// Pseudo-random numbers that are the same in every run.
fn random_from(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

const RFC: &str = "docs/rfcs/0005-how-tenure-run-ends-a-tree.md";

const WATCHDOG_ENDS: &str = "tenure run kills CMD before the lease is over, even if tenure itself is stopped";

const SUPERVISOR_ENDS: &str = "a stopped watchdog does not keep the supervisor from killing the tree";

const OVERRUN_SAID: &str =
    "a supervisor that finds CMD alive past the deadline reports by how long, and exits with 76";

const BOTH: &str =
    "both guards stopped: CMD may overrun its lease, and the next run on this machine waits for CMD";

const FROZEN: &str = "a machine that is paused as a whole is outside the promise: only fencing helps";

const NO_LATE_START: &str =
    "a supervisor that is stopped between grant and start does not start CMD too late";

const NOT_BLOCKED: &str =
    "a supervisor that is only stopped blocks no successor past the ttl once its tree has died";
