//! A crowd of supervisors that contend for the slots of one group, on any store, while holders are killed, and stopped for
//! longer than their ttl. The watchdog of a stopped supervisor kills its child.
//!
//! Each child locks the file of its slot, and so do the processes that it leaves behind. A lock that is not free shows a
//! second child of the same slot. With indexes below the size of the group, that is the proof that there are never more
//! children than slots.
//!
//! `TENURE_TEST_SEED=7` chooses other faults.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![expect(clippy::disallowed_methods, reason = "the tests give other processes time")]

mod child;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure::record::decode;
use tenure_store::{Key, Store};

use crate::run_support::{PATIENCE, Process, World, appending, key, sleep_ms, watchdog_of};

const GROUP: &str = "jobs/gpu";

/// A crowd, its store and the length of the test.
pub(crate) struct SlotPlan<'a> {
    pub(crate) world: &'a World,
    pub(crate) url: String,
    /// Environment that commands need in addition.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) supervisors: usize,
    pub(crate) slots: u16,
    pub(crate) ttl: Duration,
    pub(crate) span: Duration,
    pub(crate) faults_min: usize,
    pub(crate) seed: u64,
}

/// The supervisors, and the faults of their holders.
struct SlotCrowd<'a> {
    plan: &'a SlotPlan<'a>,
    runtime: tokio::runtime::Runtime,
    members: BTreeMap<String, Child>,
    started: usize,
    codes: BTreeMap<i32, usize>,
    faults: BTreeMap<String, usize>,
    /// The token of the latest holder of each slot that was killed or stopped.
    hit: BTreeMap<u16, u64>,
    /// Stopped supervisors, with the time at which they continue.
    stopped: Vec<(Instant, Process)>,
}

/// Lets the supervisors contend as planned, and asserts that no slot ever had two children, and that every slot whose
/// holder was killed or stopped was granted again.
pub(crate) fn contend_for_slots(plan: &SlotPlan<'_>) {
    fs::write(plan.world.path("log"), "").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (members, codes) = (BTreeMap::new(), BTreeMap::new());
    let (faults, hit, stopped) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    let mut crowd = SlotCrowd { plan, runtime, members, started: 0, codes, faults, hit, stopped };
    let seed = std::env::var("TENURE_TEST_SEED").map_or(plan.seed, |text| text.parse().expect("a number"));
    let mut rng = fastrand::Rng::with_seed(seed);
    let began = Instant::now();
    while began.elapsed() < plan.span {
        crowd.refill();
        sleep_ms(rng.u64(50..400));
        crowd.continue_until(Instant::now());
        crowd.hit_a_holder(&mut rng);
    }
    crowd.continue_until(Instant::now() + 2 * plan.ttl);
    crowd.assert_reused();
    let count: usize = crowd.faults.values().sum();
    crowd.end();
    plan.world.is_empty_soon();
    let log = text(plan.world, "log");
    let seen = child::check(&log, plan.slots);
    let said = text(plan.world, "said");
    eprintln!(
        "seed {}: {count} faults in {:.1?}: {:?}; {} supervisors, {} grants, at most {} children at once, {} acts, {} \
         ends, exit codes {:?}",
        seed,
        began.elapsed(),
        crowd.faults,
        crowd.started,
        seen.grants,
        seen.at_once,
        seen.acts,
        seen.ends,
        crowd.codes
    );
    assert!(seen.violations.is_empty(), "{:#?}\n{log}\n{said}", seen.violations);
    assert!(seen.slots.len() == usize::from(plan.slots), "every slot is used: {:?}", seen.slots);
    assert!(count >= plan.faults_min && seen.grants > count, "too little happened\n{said}");
    assert!(crowd.faults.contains_key("STOP supervisor"), "{:?}", crowd.faults);
    assert!(!said.contains("panicked"), "{said}");
    let known = [0, 69, 76, 137, 143];
    assert!(crowd.codes.keys().all(|code| known.contains(code)), "{:?}\n{said}", crowd.codes);
}

impl SlotCrowd<'_> {
    /// Removes members that have exited, and starts new ones in their place.
    fn refill(&mut self) {
        self.reap();
        let SlotPlan { world, url, environment, supervisors, slots, ttl, .. } = self.plan;
        while self.members.len() < *supervisors {
            let name = format!("s{}", self.started);
            self.started += 1;
            let mut command = world.run(&["--slots", &slots.to_string(), GROUP]);
            command.args(["--ttl", &format!("{}ms", ttl.as_millis()), "--kill-grace", "300ms"]);
            command.args(["--holder", &name, "--"]).arg(std::env::current_exe().unwrap());
            command.args(["--ignored", "--exact", "slot_crowd::child::child", "--nocapture"]);
            command.env("TENURE_STORE", url).envs(environment.iter().copied());
            command.env(child::LOG, world.path("log"));
            command.stdout(Stdio::null()).stderr(appending(&world.path("said")));
            self.members.insert(name, command.spawn().unwrap());
        }
    }

    fn reap(&mut self) {
        let codes = &mut self.codes;
        self.members.retain(|_, child| match child.try_wait().unwrap() {
            Some(status) => {
                *codes.entry(crate::run_support::exit_code(status)).or_default() += 1;
                false
            }
            None => true,
        });
    }

    /// The present holder of a slot: its token and its name.
    fn present(&self, slot: u16) -> Option<(u64, String)> {
        let key = Key::group_slot(&key(GROUP), slot).unwrap();
        let entry = self.runtime.block_on(async { self.plan.store.get(&key).await }).unwrap().entry?;
        let record = decode(&entry.value).unwrap();
        record.is_held().then(|| (record.token.get(), record.holder.unwrap().id().to_string()))
    }

    /// Kills the supervisor, the watchdog or both of the holder of a random slot, or stops its supervisor.
    fn hit_a_holder(&mut self, rng: &mut fastrand::Rng) {
        let slot = rng.u16(..self.plan.slots);
        let Some((token, name)) = self.present(slot).filter(|(token, _)| self.hit.get(&slot) != Some(token))
        else {
            return;
        };
        let Some(child) = self.members.get(&name) else { return };
        let Some(supervisor) = Process::of(child.id() as i32) else { return };
        let watchdog = watchdog_of(supervisor.number);
        let (what, signal, targets) = match (rng.u8(..4), watchdog) {
            (0, Some(watchdog)) => ("KILL watchdog", Signal::KILL, vec![watchdog]),
            (1, Some(watchdog)) => ("KILL both", Signal::KILL, vec![watchdog, supervisor]),
            (2, Some(_)) => ("STOP supervisor", Signal::STOP, vec![supervisor]),
            _ => ("KILL supervisor", Signal::KILL, vec![supervisor]),
        };
        if self.present(slot).is_none_or(|(present, _)| present != token) {
            return;
        }
        if targets.iter().all(|target| target.send(signal)) {
            *self.faults.entry(what.to_owned()).or_default() += 1;
            self.hit.insert(slot, token);
        }
        if signal == Signal::STOP {
            let until = Instant::now() + self.plan.ttl.mul_f64(rng.f64() + 1.0);
            self.stopped.extend(targets.into_iter().map(|target| (until, target)));
        }
    }

    /// Continues the stopped supervisors whose time comes by then.
    fn continue_until(&mut self, then: Instant) {
        for (_, process) in self.stopped.extract_if(.., |(at, _)| *at <= then) {
            process.send(Signal::CONT);
        }
    }

    /// Every slot whose holder was killed or stopped is granted again.
    fn assert_reused(&mut self) {
        let asked = Instant::now();
        loop {
            self.refill();
            let log = text(self.plan.world, "log");
            let latest = child::latest_tokens(&log);
            let missing: Vec<_> =
                self.hit.iter().filter(|(slot, token)| latest.get(slot) <= Some(*token)).collect();
            if missing.is_empty() {
                return;
            }
            assert!(asked.elapsed() < PATIENCE, "slots that were not granted again: {missing:?}\n{log}");
            sleep_ms(50);
        }
    }

    /// Sends TERM until all have exited: waiters give up, and holders release.
    fn end(&mut self) {
        let asked = Instant::now();
        while !self.members.is_empty() {
            for child in self.members.values() {
                if let Some(process) = Process::of(child.id() as i32) {
                    process.send(Signal::TERM);
                }
            }
            sleep_ms(100);
            self.reap();
            assert!(asked.elapsed() < PATIENCE, "some do not end: {:?}", self.plan.world.alive());
        }
    }
}

impl Drop for SlotCrowd<'_> {
    fn drop(&mut self) {
        for child in self.members.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The text of a file that other processes append to.
fn text(world: &World, name: &str) -> String {
    fs::read_to_string(world.path(name)).unwrap_or_default()
}
