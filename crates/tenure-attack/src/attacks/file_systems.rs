//! Store and witness on file systems with different locks and mappings.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_testkit::{FileSystem, Mounted, sleep_ms};

use crate::arena::{Arena, Who};
use crate::attack::Attack;
use crate::process::send;
use crate::stamps;
use crate::verdict::{AttackOutcome, broken, held, skipped};

pub(super) fn all() -> Vec<Attack> {
    let mut attacks = Vec::new();
    for kind in FileSystem::ALL {
        let name = kind.name();
        let loops = format!("file systems/four loops of tenure run, one of them killed, on {name}");
        attacks.push(Attack::new(loops, ONE_AT_A_TIME, move |arena| four_loops(arena, kind)));
        let holders = format!("file systems/two library holders on {name}");
        attacks.push(Attack::new(holders, ONE_BELIEVES, move |arena| two_holders(arena, kind)));
    }
    attacks
}

/// Four loops of `tenure run` on one lease. In one loop, the supervisor of each run is killed.
fn four_loops(arena: &Arena, kind: FileSystem) -> AttackOutcome {
    let mounted = match Mounted::try_new(kind) {
        Ok(mounted) => mounted,
        Err(why) => return skipped(why),
    };
    let url = url_on(&mounted);
    let end = Instant::now() + Duration::from_secs(6);
    let cmd = arena.act("-", 60);
    let command = |label: &str| {
        let mut command =
            arena.run(Who::Root, &["--ttl", "1s", "--kill-grace", "100ms", "--holder", label], &cmd);
        command.env("TENURE_STORE", &url).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::piped());
        command
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let runs = ["a", "b", "c", "d"].map(|label| {
            let mut command = command(label);
            scope.spawn(move || {
                let mut failed = Vec::new();
                while Instant::now() < end {
                    let Ok(child) = command.spawn() else { continue };
                    if label == "d" {
                        sleep_ms(90);
                        let _ = send(child.id() as i32, Signal::KILL);
                    }
                    let Ok(ran) = child.wait_with_output() else { continue };
                    // On a busy machine, a run may lose a lease with a ttl of one second (76).
                    if label != "d" && !matches!(ran.status.code(), Some(0 | 75 | 76)) {
                        failed.push(format!(
                            "{}: {}",
                            ran.status,
                            String::from_utf8_lossy(&ran.stderr).trim()
                        ));
                    }
                }
                failed
            })
        });
        runs.into_iter().filter_map(|run| run.join().ok()).flatten().collect()
    });
    sleep_ms(300);
    let acts = arena.no_overlap()?;
    if acts < 3 || !failed.is_empty() {
        return broken(format!("{acts} jobs, no overlap; {} failed: {failed:?}", failed.len()));
    }
    held(format!("{acts} jobs, no overlap"))
}

/// A second library holder contends while the first one believes, and a third one after the first was killed.
fn two_holders(arena: &Arena, kind: FileSystem) -> AttackOutcome {
    let mounted = match Mounted::try_new(kind) {
        Ok(mounted) => mounted,
        Err(why) => return skipped(why),
    };
    let url = url_on(&mounted);
    let acts = arena.acts().display().to_string();
    let hold = |label: &str, ttl: &str, wait: &str, millis: &str| {
        let words = arena.tool(&["hold", &url, ttl, wait, &acts, label, millis]);
        let mut command = arena.command(Who::Root, &words[0]);
        command.args(&words[1..]);
        command
    };
    let first = arena.holder(hold("a", "6000", "2000", "30000"), "a")?;
    let second = arena.ran(hold("b", "6000", "2500", "200"))?;
    arena.no_overlap()?;
    if second.code == 0 {
        return broken("a second holder was granted the lease while the first one held it");
    }
    let killed = stamps::boot_time();
    send(first.number, Signal::KILL)?;
    let third = arena.ran(hold("c", "6000", "12000", "200"))?;
    arena.no_overlap()?;
    match arena.acted("c") {
        Some(act) => held(format!(
            "refused while held; granted {:.0} ms after the holder was killed",
            (act.first - killed) as f64 / 1e6
        )),
        None => broken(format!("the lease of a dead holder is not granted within 12 s: {}", third.err)),
    }
}

/// URL of a store on this file system.
fn url_on(mounted: &Mounted) -> String {
    let accept = if mounted.kind().is_fuse() { "?accept=fuse" } else { "" };
    format!("file://{}/leases{accept}", mounted.path().display())
}

const ONE_AT_A_TIME: &str = "the process tree of tenure run is dead before another holder may start";

const ONE_BELIEVES: &str = "no two holders believe at the same instant";
