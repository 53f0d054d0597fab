//! A crowd of supervisors that contend for one lease, on any store, while the holder is killed, stopped and stolen
//! from.
//!
//! The children log their acts: each line is one append to one file, so the order of the lines is the order of the
//! acts. The kernel provides a second check: each child and the processes it leaves behind hold a lock that is free
//! only when all of them are dead.
//!
//! `TENURE_TEST_SEED=7` chooses other faults.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![expect(clippy::disallowed_methods, reason = "the tests give other processes time")]

mod acts;
mod crowd;
pub(crate) mod elections;
pub(crate) mod networks;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use acts::{Seen, setting};
use crowd::Crowd;
use rustix::process::Signal;
use tenure::record::decode;
use tenure_store::Store;

use crate::run_support::{PATIENCE, Process, World, key, sleep_ms, watchdog_of};

/// A test plan, and its length.
pub(crate) struct Plan<'a> {
    pub(crate) world: &'a World,
    pub(crate) place: &'a Place,
    pub(crate) lease: &'a str,
    /// `run`, or `elect` for candidates that never end by themselves.
    pub(crate) verb: &'static str,
    /// Number of contenders at any time.
    pub(crate) supervisors: usize,
    pub(crate) ttl: Duration,
    /// Maximum time that children act, in hundredths of a second.
    pub(crate) acts: u64,
    /// Minimum number of faults of the present holder; zero means none.
    pub(crate) faults: u64,
    /// Minimum duration.
    pub(crate) span: Duration,
    pub(crate) seed: u64,
}

/// The store of the lease.
pub(crate) struct Place {
    url: String,
    /// Environment that commands need in addition.
    environment: Vec<(&'static str, &'static str)>,
    store: Arc<dyn Store>,
    /// Runtime of its connections.
    runtime: tokio::runtime::Runtime,
    /// Pause between two reads of the record.
    pause: Duration,
}

/// Result of a plan.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) seen: Seen,
    pub(crate) faults: BTreeMap<String, u64>,
    pub(crate) codes: BTreeMap<i32, usize>,
    pub(crate) said: String,
}

impl Outcome {
    /// Asserts that there were enough grants, and that every exit code is one of a supervisor that was stopped, stolen
    /// from or killed, or that succeeded.
    pub(crate) fn assert_as_after_faults(&self, grants: u64) {
        let Self { seen, faults, codes, said } = self;
        assert!(seen.grants as u64 >= grants, "too few grants to mean anything: {seen:?}\n{said}");
        let stolen = said.lines().filter(|line| line.contains("takes it over: it is my turn")).count();
        eprintln!("{stolen} holders saw that the lease was stolen");
        assert!(
            stolen > 0 || faults.get("steal").is_none_or(|count| *count < 5),
            "no holder was told\n{said}"
        );
        let known = [0, 69, 76, 137, 143];
        assert!(codes.keys().all(|code| known.contains(code)), "{codes:?}\n{said}");
    }

    /// Asserts that no command was stopped: every child that started also ended by itself.
    pub(crate) fn assert_undisturbed(&self, grants: usize) {
        let Self { seen, codes, said, .. } = self;
        assert!(codes.keys().eq(&[0]), "{codes:?}\n{said}");
        assert!(seen.grants >= grants && seen.grants == seen.ends, "{seen:?}\n{said}");
    }
}

impl Place {
    pub(crate) fn file(world: &World) -> Self {
        Self::new(world.store_url(), Vec::new(), Arc::new(world.store()), Duration::from_millis(1))
    }

    pub(crate) fn new(
        url: String,
        environment: Vec<(&'static str, &'static str)>,
        store: Arc<dyn Store>,
        pause: Duration,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { url, environment, store, runtime, pause }
    }

    /// The present holder in the record: its token and its name.
    fn present(&self, lease: &str) -> Option<(u64, String)> {
        // The server may be restarting.
        let entry = self.runtime.block_on(async { self.store.get(&key(lease)).await }).ok()?.entry?;
        let record = decode(&entry.value).unwrap();
        record.is_held().then(|| (record.token.get(), record.holder.unwrap().id().to_string()))
    }
}

/// Lets the supervisors contend as planned. Violations fail here; the caller checks the other results.
pub(crate) fn contend(plan: &Plan<'_>) -> Outcome {
    let Plan { world, place, lease, ttl, seed, .. } = *plan;
    for name in ["log", "probe", "said"] {
        fs::write(world.path(name), "").unwrap();
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut crowd = Crowd::new(plan);
    let mut faults: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = 0;
    let mut hit = BTreeSet::new();
    let mut stopped: Vec<(Instant, u64, &str, Process)> = Vec::new();
    let mut last = Instant::now();
    let began = Instant::now();
    while count < plan.faults || began.elapsed() < plan.span {
        assert!(
            plan.faults == 0 || last.elapsed() < PATIENCE,
            "no fault could be made for {PATIENCE:?}: there is no new holder (seed {seed})"
        );
        crowd.reap();
        crowd.fill();
        if plan.faults == 0 {
            sleep_ms(20);
            continue;
        }
        let now = Instant::now();
        let due: Vec<_> = stopped.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, token, whom, process) in due {
            let is_present = place.present(lease).is_some_and(|(present, _)| present == token);
            process.send(Signal::CONT);
            let which = if is_present { "in time" } else { "too late" };
            *faults.entry(format!("CONT {whom}, {which}")).or_default() += 1;
        }
        let Some((token, name)) = place.present(lease).filter(|(token, _)| !hit.contains(token)) else {
            std::thread::sleep(place.pause);
            continue;
        };
        // Some holders are hit between the grant and the start of their child, the others during its life.
        let early = rng.u8(..4) == 0;
        if !early {
            sleep_ms(rng.u64(..300));
        }
        if rng.u8(..5) == 0 {
            crowd.steal();
            hit.insert(token);
            count += 1;
            last = Instant::now();
            *faults.entry("steal".to_owned()).or_default() += 1;
            continue;
        }
        let whom = if rng.bool() { "supervisor" } else { "watchdog" };
        let (kind, signal) =
            *rng.choice(&[("STOP", Signal::STOP), ("KILL", Signal::KILL), ("TERM", Signal::TERM)]).unwrap();
        let Some(supervisor) = crowd.supervisor(&name) else { continue };
        let target = if whom == "watchdog" { watchdog_of(supervisor.number) } else { Some(supervisor) };
        let Some(target) = target.filter(|target| !target.is_dead()) else { continue };
        // The holder may have released the lease. Only faults on the present holder count.
        if place.present(lease).is_none_or(|(present, _)| present != token) || !target.send(signal) {
            continue;
        }
        hit.insert(token);
        count += 1;
        last = Instant::now();
        *faults.entry(format!("{kind} {whom}")).or_default() += 1;
        if kind == "STOP" {
            let span = Duration::from_millis(rng.u64(50..2 * ttl.as_millis() as u64));
            stopped.push((Instant::now() + span, token, whom, target));
        }
    }
    for (.., process) in stopped {
        process.send(Signal::CONT);
    }
    let took = began.elapsed();
    if plan.faults == 0 {
        crowd.finish()
    } else {
        crowd.end()
    }
    world.is_empty_soon();
    let log = fs::read_to_string(world.path("log")).unwrap();
    let seen = acts::check(&log);
    let said = fs::read_to_string(world.path("said")).unwrap();
    eprintln!(
        "seed {seed}: {count} faults on the present holder in {took:.1?}: {faults:?}; {} supervisors, {} grants, {} \
         acts, {} ends, exit codes {:?}; {} violations",
        crowd.started,
        seen.grants,
        seen.acts,
        seen.ends,
        crowd.codes,
        seen.violations.len()
    );
    assert!(seen.violations.is_empty(), "seed {seed}: {:#?}\n{log}\n{said}", seen.violations);
    assert!(!said.contains("panicked"), "{said}");
    Outcome { seen, faults, codes: std::mem::take(&mut crowd.codes), said }
}
