//! Users of a job that runs once per period: they report a success with their release, or none.

use std::time::Duration;

use tenure_core::machine::{Content, Denied, Input, Patience, Purpose, Write};

use super::PrimitivesWorld;
use super::actor::{Actor, ActorRole, Notice};
use super::happening::Port;
use super::judges::{is_due, was_reported};
use crate::Invariant;
use crate::tally::Met;

/// A user of one job.
#[derive(Debug)]
pub(super) struct JobUser {
    key: usize,
    /// The pending acquire, or the lease of the present run.
    lease: Option<Port>,
}

impl JobUser {
    /// Its process was killed.
    pub(super) fn dies(&mut self) {
        self.lease = None;
    }
}

impl PrimitivesWorld<'_> {
    pub(super) fn job_users_appear(&mut self) {
        for key in self.plan.job_keys() {
            for process in 0..self.nodes.len() {
                self.actors.push(Actor::new(process, ActorRole::Job(JobUser { key, lease: None })));
            }
        }
    }

    fn job_user(&mut self, actor: usize) -> &mut JobUser {
        match &mut self.actors[actor].role {
            ActorRole::Job(user) => user,
            _ => unreachable!("the role of an actor never changes"),
        }
    }

    pub(super) fn job_user_starts(&mut self, actor: usize) {
        let JobUser { key, lease } = *self.job_user(actor);
        if lease.is_some() {
            return;
        }
        let process = self.actors[actor].process;
        let patience = if self.rng.chance(500) {
            let ttl = self.nodes[process].member.ttl();
            let wait = Duration::from_nanos(self.rng.between(0, 2 * ttl));
            Patience::Until(self.nodes[process].local(self.now) + wait)
        } else {
            Patience::Once
        };
        let period = Duration::from_nanos(self.plan.period());
        let port = self.acquires_once_per(actor, key, patience, Some(period));
        self.job_user(actor).lease = Some(port);
    }

    pub(super) fn job_user_notified(&mut self, actor: usize, port: Port, notice: Notice) {
        if self.job_user(actor).lease != Some(port) {
            return;
        }
        match notice {
            Notice::Granted(_) => self.holds_for_a_while(port),
            Notice::Denied(denied) => {
                match *denied {
                    Denied::NotDue { .. } => self.tally.met(Met::JobSkipped),
                    Denied::Unclear(_) => self.tally.met(Met::JobUnclear),
                    _ => {}
                }
                self.job_ends(actor);
            }
            Notice::Left => self.job_ends(actor),
            Notice::Lost(_) | Notice::Answered(_) | Notice::SawLeader(..) => {}
        }
    }

    fn job_ends(&mut self, actor: usize) {
        self.job_user(actor).lease = None;
        let ttl = self.nodes[self.actors[actor].process].member.ttl();
        // A skipped run tries again later, as a crontab does.
        let rest = self.rest(ttl).max(ttl / 4);
        self.start_at(actor, self.now + rest);
    }

    /// The run is over. Some runs fail, and report no success.
    pub(super) fn job_user_releases(&mut self, port: Port) {
        if self.rng.chance(700)
            && let Some(term) = self.caller(port).and_then(|caller| caller.tenancy()?.term)
        {
            self.reported.push(term);
            self.step_lease(port, Input::Succeeded);
        }
        self.step_lease(port, Input::Release);
    }

    /// J1: the store has applied a write of a job.
    pub(super) fn judge_job(&mut self, key: usize, before: &Content, write: &Write) {
        if !self.plan.job_keys().contains(&key) {
            return;
        }
        let last = match before {
            Content::Record(record, _) => record.last_success,
            _ => None,
        };
        let verdict = match (last, self.store[key].time(self.now)) {
            (Some(last), Some(time)) if write.purpose == Purpose::Grant => {
                self.tally.met(Met::JobDueAgain);
                is_due(last, time, self.plan.period(), self.plan.due_tolerance())
            }
            _ if write.record.last_success != last => {
                self.tally.met(Met::JobSucceeded);
                was_reported(&write.record, &self.reported)
            }
            _ => Ok(()),
        };
        self.verdicts.judge(self.now, Invariant::J1, verdict);
    }
}
