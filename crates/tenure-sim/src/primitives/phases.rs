//! The stretches after the faults: healed, fair, quiet.

use super::PrimitivesWorld;
use super::actor::ActorRole;
use super::happening::{Happening, Port};
use crate::Invariant;
use crate::parts::{Cut, Life};
use crate::time::SECOND;
use tenure_core::machine::Input;

/// Stretch of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    /// Faults strike.
    Faults,
    /// All faults have ended, and no holder releases: everything must be held again soon.
    Healed,
    /// Holders release and come back: every actor must have its turn.
    Fair,
    /// No actor wants anything any more.
    Quiet,
}

impl PrimitivesWorld<'_> {
    /// Ends all faults.
    pub(super) fn heals(&mut self) {
        self.stretch = Stretch::Healed;
        self.trace.line(self.now, format_args!("world"), format_args!("is healed"));
        self.storm_until = 0;
        self.network.healed(self.plan.shortest_timeout());
        for process in 0..self.nodes.len() {
            self.nodes[process].link.cut = Cut::default();
            match self.nodes[process].state {
                Life::Running => {}
                Life::Paused => {
                    let pause = self.nodes[process].pause;
                    self.resumes(process, pause);
                }
                Life::Dead => {
                    let incarnation = self.nodes[process].incarnation;
                    self.restarts(process, incarnation);
                }
            }
        }
        // A user of a set waits for one lease after the other, and counts each ttl from its own first read.
        // A contender for a slot reads one slot after the other.
        let leases = if self.plan.names > 0 || !self.plan.groups.is_empty() { 3 } else { 1 };
        let span = leases * (2 * self.plan.longest_ttl() + self.plan.longest_timeout());
        let span = self.plan.on_the_slowest_clock(span);
        self.agenda.push(self.now + span / 2, Happening::Count);
        self.agenda.push(self.now + span, Happening::Settled);
    }

    pub(super) fn counts_calls(&mut self) {
        self.counted_since = self.now;
        for actor in &mut self.actors {
            actor.calls = 0;
        }
    }

    /// L1: the time limit after healing is reached. Fair contention follows.
    pub(super) fn settled(&mut self) {
        for key in 0..self.plan.elections {
            let judge = &self.judges[key];
            if !judge.tokens.are_void() && !judge.beliefs.any_holder_believes(self.now) {
                let sentence =
                    format!("healed, but election {key} has no leader within two ttl and one timeout");
                self.verdicts.judge(self.now, Invariant::L1, Err(sentence));
            }
        }
        self.judge_sets_held_again();
        self.judge_calls_of_waiting();
        self.judge_groups_filled(self.plan.length + SECOND);
        self.stretch = Stretch::Fair;
        for port in self.live_callers() {
            let caller = self
                .caller(port)
                .filter(|caller| caller.tenancy_ref().is_some_and(|it| it.deadline.is_some()));
            if let Some(actor) = caller.map(|caller| caller.actor) {
                let event = match &self.actors[actor].role {
                    ActorRole::Campaign(_) | ActorRole::Slot(_) | ActorRole::Job(_) => {
                        Happening::Release(port)
                    }
                    ActorRole::Key(_) | ActorRole::Resizer(_) => continue,
                    ActorRole::Set(_) => Happening::ReleaseSet { process: port.process, actor: actor as u16 },
                };
                self.agenda.push(self.now, event);
            }
        }
        let fair = self.plan.fairness * self.plan.longest_ttl();
        self.agenda.push(self.now + fair, Happening::Quiet);
    }

    pub(super) fn quiet(&mut self) {
        self.stretch = Stretch::Quiet;
        self.agenda.push(self.now + 5 * SECOND, Happening::End);
    }

    pub(super) fn ends(&mut self) {}

    /// The user of a lease releases it.
    pub(super) fn user_releases(&mut self, port: Port) {
        let Some(caller) = self.caller(port) else { return };
        let actor = caller.actor;
        let held = caller.tenancy().is_some_and(|tenancy| tenancy.deadline.is_some());
        if held && matches!(self.stretch, Stretch::Healed | Stretch::Quiet) {
            return;
        }
        match &self.actors[actor].role {
            ActorRole::Campaign(_) => self.step_lease(port, Input::Release),
            ActorRole::Slot(_) => self.slot_user_releases(actor, port),
            ActorRole::Job(_) => self.job_user_releases(port),
            ActorRole::Set(_) | ActorRole::Key(_) | ActorRole::Resizer(_) => {}
        }
    }
}
