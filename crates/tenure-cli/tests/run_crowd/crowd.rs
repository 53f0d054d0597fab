//! The supervisors that contend for the lease.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::Instant;

use rustix::process::Signal;

use super::Plan;
use super::acts::{ACTS, CLOSING, LOG, SECONDS};
use crate::run_support::{PATIENCE, Process, appending, exit_code, sleep_ms};

/// The supervisors that contend for the lease.
pub(super) struct Crowd<'a> {
    plan: &'a Plan<'a>,
    members: BTreeMap<String, Child>,
    pub(super) started: usize,
    /// Exit codes of supervisors that have exited, with their counts.
    pub(super) codes: BTreeMap<i32, usize>,
}

impl<'a> Crowd<'a> {
    pub(super) fn new(plan: &'a Plan<'a>) -> Self {
        Self { plan, members: BTreeMap::new(), started: 0, codes: BTreeMap::new() }
    }

    pub(super) fn fill(&mut self) {
        while self.members.len() < self.plan.supervisors {
            self.add(&[self.plan.verb, self.plan.lease, "--quiet"]);
        }
    }

    /// Adds a supervisor that steals the lease.
    pub(super) fn steal(&mut self) {
        self.add(&["steal", self.plan.lease, "--reason", "it is my turn", "--quiet"]);
    }

    fn add(&mut self, how: &[&str]) {
        let Plan { world, place, ttl, acts, .. } = self.plan;
        let name = format!("s{}", self.started);
        self.started += 1;
        // Every second one ignores TERM.
        let script = "[ $(($$ % 2)) = 0 ] && trap '' TERM; \
            exec \"$CHILD\" --ignored --exact run_crowd::acts::child --nocapture";
        let ttl_text = format!("{}ms", ttl.as_millis());
        let mut command = world.tenure(how);
        command.args(["--ttl", &ttl_text, "--kill-grace", "300ms", "--holder", &name]);
        command.args(["--", "sh", "-c", script]);
        command.env("TENURE_STORE", &place.url).envs(place.environment.iter().copied());
        command.env("CHILD", std::env::current_exe().unwrap()).env(LOG, world.path("log"));
        command.env(ACTS, acts.to_string()).env(SECONDS, (5 * *ttl).as_secs().to_string());
        command.stdout(Stdio::null()).stderr(appending(&world.path("said")));
        self.members.insert(name, command.spawn().unwrap());
    }

    /// Removes members that have exited.
    pub(super) fn reap(&mut self) {
        let codes = &mut self.codes;
        self.members.retain(|_, child| match child.try_wait().unwrap() {
            Some(status) => {
                *codes.entry(exit_code(status)).or_default() += 1;
                false
            }
            None => true,
        });
    }

    /// Sends TERM until all have exited: waiters give up, and holders release.
    pub(super) fn end(&mut self) {
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

    /// Lets every member have its turn and exit by itself.
    pub(super) fn finish(&mut self) {
        fs::write(self.plan.world.path(CLOSING), "").unwrap();
        let began = Instant::now();
        while !self.members.is_empty() {
            sleep_ms(20);
            self.reap();
            assert!(began.elapsed() < PATIENCE * 10, "some do not end: {:?}", self.plan.world.alive());
        }
    }

    /// The supervisors, by name.
    pub(super) fn names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    pub(super) fn supervisor(&self, name: &str) -> Option<Process> {
        Process::of(self.members.get(name)?.id() as i32)
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        for child in self.members.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
