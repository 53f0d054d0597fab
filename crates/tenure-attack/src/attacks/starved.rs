//! Guards that get little processor time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use tenure_testkit::sleep_ms;

use crate::arena::{Arena, Who};
use crate::attack::Attack;
use crate::process::send;
use crate::stamps::boot_time;
use crate::verdict::{AttackOutcome, broken, held, skipped};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("starved/nice 19 beside 16 busy loops, ttl 3 s, no other fault", IN_TIME, |arena| {
            crowded(arena, &Crowd { who: Who::User, nice: "19", loops: 16, ttl: "3s", stop: false })
        })
        .alone(),
        Attack::new("starved/nice 19 beside 16 busy loops, ttl 3 s, supervisor stopped", IN_TIME, |arena| {
            crowded(arena, &Crowd { who: Who::User, nice: "19", loops: 16, ttl: "3s", stop: true })
        })
        .alone(),
        Attack::new("starved/nice 19 beside 16 busy loops, ttl 10 s, supervisor stopped", IN_TIME, |arena| {
            crowded(arena, &Crowd { who: Who::User, nice: "19", loops: 16, ttl: "10s", stop: true })
        })
        .alone(),
        Attack::new("starved/nice 0 beside 64 busy loops, ttl 3 s, supervisor stopped", IN_TIME, |arena| {
            crowded(arena, &Crowd { who: Who::User, nice: "0", loops: 64, ttl: "3s", stop: true })
        })
        .seconds(60)
        .alone(),
        Attack::new(
            "starved/root, nice 19 beside 16 busy loops, ttl 3 s, supervisor stopped",
            IN_TIME,
            |arena| crowded(arena, &Crowd { who: Who::Root, nice: "19", loops: 16, ttl: "3s", stop: true }),
        )
        .alone(),
        Attack::new("starved/a CPU quota of 2 ms in 100 ms, ttl 15 s, supervisor stopped", IN_TIME, quota)
            .seconds(60),
    ]
}

/// Guards that share one processor with busy loops.
#[derive(Debug)]
struct Crowd {
    who: Who,
    /// Priority of the guards.
    nice: &'static str,
    loops: usize,
    ttl: &'static str,
    /// True if the supervisor is stopped, so that only the watchdog can kill CMD.
    stop: bool,
}

/// The guards share one processor with the loops. CMD acts on another processor.
fn crowded(arena: &Arena, crowd: &Crowd) -> AttackOutcome {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skipped("it needs two processors");
    }
    let mut cmd = vec!["taskset".to_owned(), "-c".to_owned(), "1".to_owned()];
    cmd.extend(arena.act("a", 40_000));
    // All are in one group. Otherwise the kernel gives each session a fair share (autogroup), and the watchdog has its
    // own session.
    let Some(group) = CpuGroup::make(arena, None) else {
        return skipped("there is no CPU cgroup controller");
    };
    let run = arena.run(crowd.who, &["--ttl", crowd.ttl], &cmd);
    let mut command = group.inside(arena, "nice");
    command.args(["-n", crowd.nice, "taskset", "-c", "0"]).arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let holder = match arena.holder(command, "a") {
        Ok(holder) => holder,
        Err(refused) if refused.contains("exited with 78") => return held(format!("refused: {refused}")),
        Err(error) => return broken(error),
    };
    let busy: Vec<Busy> = (0..crowd.loops).filter_map(|_| Busy::start(arena, &group)).collect();
    sleep_ms(300);
    arena.log("the processor is crowded");
    if crowd.stop {
        send(holder.number, Signal::STOP)?;
    }
    let began = boot_time();
    let ran = arena
        .start(arena.run(crowd.who, &["--ttl", "3s", "--wait", "14s"], &arena.act("b", 1500)))?
        .end(20)?;
    arena.log(&format!("the successor exited with {}", ran.code));
    drop(busy);
    arena.log("the busy loops were killed");
    if ran.code == 75 {
        // Either the holder keeps its lease, or its watchdog is so late that it has not exited yet. Both are safe.
        arena.no_overlap()?;
        return held(format!("the successor waited for 14 s: {}", ran.err));
    }
    arena.judge(&ran, began)
}

/// The guards and four busy loops together may run for 2 ms in each 100 ms. CMD has no such quota.
fn quota(arena: &Arena) -> AttackOutcome {
    let Some(group) = CpuGroup::make(arena, Some("2000")) else {
        return skipped("there is no CPU cgroup controller");
    };
    let act = arena.act("a", 40_000).join(" ");
    // Many processes make /proc long: the guards need several periods of the quota to read it.
    let script =
        format!("echo 0 >{}; for i in $(seq 300); do sleep 60 & done; exec {act}", group.outside.display());
    let run = arena.run(Who::Root, &["--ttl", "15s"], &["sh".to_owned(), "-c".to_owned(), script]);
    let mut command = group.inside(arena, "env");
    command.arg(run.get_program()).args(run.get_args());
    let holder = match arena.holder(command, "a") {
        Ok(holder) => holder,
        Err(refused) if refused.contains("exited with 78") => return held(format!("refused: {refused}")),
        Err(error) => return broken(error),
    };
    let busy: Vec<Busy> = (0..4).filter_map(|_| Busy::start(arena, &group)).collect();
    send(holder.number, Signal::STOP)?;
    let began = boot_time();
    let ran = arena
        .start(arena.run(Who::Root, &["--ttl", "3s", "--wait", "25s"], &arena.act("b", 1500)))?
        .end(35)?;
    drop(busy);
    arena.judge(&ran, began)
}

/// A busy loop on one processor.
#[derive(Debug)]
struct Busy(Child);

impl Busy {
    fn start(arena: &Arena, group: &CpuGroup) -> Option<Self> {
        let mut command = group.inside(arena, "taskset");
        command.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
        command.spawn().ok().map(Self)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A cgroup whose processes share one portion of processor time, with an optional quota in microseconds per 100 ms.
#[derive(Debug)]
struct CpuGroup {
    path: PathBuf,
    /// File that a process writes its pid to in order to enter.
    tasks: &'static str,
    /// The corresponding file of a cgroup without quota.
    outside: PathBuf,
}

impl CpuGroup {
    /// Creates it in the hierarchy of version 1, or of version 2 if the controller is on for the arena's parent.
    fn make(arena: &Arena, quota: Option<&str>) -> Option<Self> {
        let one = Path::new("/sys/fs/cgroup/cpu");
        let group = if one.join("tasks").exists() {
            let suite = arena.directory.parent()?.file_name()?.to_str()?;
            let path = one.join(format!("{suite}-{}", arena.directory.file_name()?.to_str()?));
            Self { path, tasks: "tasks", outside: one.join("tasks") }
        } else {
            let two = arena.cgroup.as_ref()?;
            // The attacker's own cgroup has processes, so its children may have no controller. A sibling may.
            Self { path: two.with_extension("cpu"), tasks: "cgroup.procs", outside: two.join("cgroup.procs") }
        };
        fs::create_dir(&group.path).ok()?;
        if group.tasks == "tasks" {
            fs::write(group.path.join("cpu.cfs_period_us"), "100000").ok()?;
            fs::write(group.path.join("cpu.cfs_quota_us"), quota.unwrap_or("-1")).ok()?;
        } else {
            fs::write(group.path.join("cpu.max"), format!("{} 100000", quota.unwrap_or("max"))).ok()?;
        }
        Some(group)
    }

    /// A program that root starts inside the group.
    fn inside(&self, arena: &Arena, program: &str) -> Command {
        let mut command = arena.command(Who::Root, "sh");
        command.args(["-c", "echo 0 >\"$0\"; exec \"$@\""]).arg(self.path.join(self.tasks)).arg(program);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        let tasks = fs::read_to_string(self.path.join(self.tasks)).unwrap_or_default();
        for task in tasks.lines().filter_map(|line| line.parse().ok()) {
            let _ = send(task, Signal::KILL);
        }
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            sleep_ms(20);
        }
    }
}

const IN_TIME: &str =
    "CMD is dead before the lease is over, even if the guards run late, or tenure run refuses (78)";
