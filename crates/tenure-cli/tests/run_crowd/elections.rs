//! Candidates that campaign for one lease for good, while leaders and followers are killed, stopped and asked to resign.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::crowd::Crowd;
use super::{Outcome, Place, Plan, acts};
use crate::run_support::{Process, World, sleep_ms, watchdog_of};

/// Result of an election.
pub(crate) struct ElectionOutcome {
    pub(crate) outcome: Outcome,
    /// Grants from the first fault to the end.
    pub(crate) grants: usize,
}

/// Lets candidates campaign as planned. Violations fail here; the caller checks the other results.
///
/// Every second fault is for the present leader. `began` is called before the first fault, a ttl after the first grant.
pub(crate) fn campaign(plan: &Plan<'_>, began: impl FnOnce()) -> ElectionOutcome {
    let Plan { world, place, lease, seed, .. } = *plan;
    for name in ["log", "probe", "said"] {
        fs::write(world.path(name), "").unwrap();
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut crowd = Crowd::new(plan);
    crowd.fill();
    let mut faults = Faults::default();
    wait_for_leader(place, lease);
    // Until every candidate has found the lease held, and polls at its own moments.
    std::thread::sleep(plan.ttl);
    began();
    let before = acts::check(&fs::read_to_string(world.path("log")).unwrap()).grants;
    let began = Instant::now();
    let mut tokens = 0;
    while began.elapsed() < plan.span {
        // Some leaders are hit right after their grant, the others during the life of their command.
        sleep_ms(rng.u64(..2 * plan.pause_between_faults().as_millis() as u64));
        crowd.reap();
        crowd.fill();
        faults.proceed();
        let present = place.present(lease);
        if let Some((token, _)) = &present {
            assert!(*token >= tokens, "the observer saw token {tokens}, and then {token}");
            tokens = *token;
        }
        let leads = rng.bool();
        let name = match present {
            Some((_, name)) if leads => name,
            _ if leads => continue,
            _ => rng.choice(crowd.names()).expect("there are candidates"),
        };
        let Some(supervisor) = crowd.supervisor(&name) else { continue };
        let whom = if leads { "leader" } else { "follower" };
        let watchdog = rng.bool();
        let target = if watchdog { watchdog_of(supervisor.number) } else { Some(supervisor) };
        let Some(target) = target.filter(|target| !target.is_dead()) else { continue };
        let part = if watchdog { "watchdog" } else { "supervisor" };
        match rng.u8(..5) {
            0 if leads => faults.resign(world, plan),
            0 | 1 => {
                let span = Duration::from_millis(rng.u64(50..3 * plan.ttl.as_millis() as u64 / 2));
                faults.stop(target, span, format!("STOP {part} of a {whom}"));
            }
            _ => faults.hit(&target, Signal::KILL, format!("KILL {part} of a {whom}")),
        }
    }
    let took = began.elapsed();
    faults.end();
    crowd.end();
    world.is_empty_soon();
    let log = fs::read_to_string(world.path("log")).unwrap();
    let seen = acts::check(&log);
    let said = fs::read_to_string(world.path("said")).unwrap();
    eprintln!(
        "seed {seed}: {} candidates in {took:.1?}: {:?}; {} processes, {} grants, {} acts, exit codes {:?}; {} \
         violations",
        plan.supervisors,
        faults.count,
        crowd.started,
        seen.grants,
        seen.acts,
        crowd.codes,
        seen.violations.len()
    );
    assert!(seen.violations.is_empty(), "seed {seed}: {:#?}\n{log}\n{said}", seen.violations);
    assert!(!said.contains("panicked"), "{said}");
    let outcome = Outcome { seen, faults: faults.count, codes: std::mem::take(&mut crowd.codes), said };
    let grants = outcome.seen.grants - before;
    ElectionOutcome { outcome, grants }
}

fn wait_for_leader(place: &Place, lease: &str) {
    crate::run_support::until("a leader", Duration::from_secs(60), || place.present(lease));
}

/// Faults that were made, and those that still last.
#[derive(Default)]
struct Faults {
    count: BTreeMap<String, u64>,
    stopped: Vec<(Instant, Process)>,
    asking: Vec<Child>,
}

impl Faults {
    fn hit(&mut self, target: &Process, signal: Signal, what: String) {
        if target.send(signal) {
            *self.count.entry(what).or_default() += 1;
        }
    }

    fn stop(&mut self, target: Process, span: Duration, what: String) {
        self.hit(&target, Signal::STOP, what);
        self.stopped.push((Instant::now() + span, target));
    }

    fn resign(&mut self, world: &World, plan: &Plan<'_>) {
        let mut command = world.tenure(&["resign", plan.lease, "--reason", "it is my turn", "--quiet"]);
        command.env("TENURE_STORE", &plan.place.url).envs(plan.place.environment.iter().copied());
        self.asking.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        *self.count.entry("resign".to_owned()).or_default() += 1;
    }

    /// Continues those whose time has come, and reaps.
    fn proceed(&mut self) {
        let now = Instant::now();
        for (_, process) in self.stopped.extract_if(.., |(at, _)| *at <= now) {
            process.send(Signal::CONT);
        }
        self.asking.retain_mut(|child| child.try_wait().unwrap().is_none());
    }

    fn end(&mut self) {
        for (_, process) in self.stopped.drain(..) {
            process.send(Signal::CONT);
        }
        for mut child in self.asking.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Plan<'_> {
    /// Average time between two faults.
    fn pause_between_faults(&self) -> Duration {
        self.span / u32::try_from(self.faults.max(1)).unwrap_or(u32::MAX)
    }
}
