//! Users of the primitives.

use tenure_core::Token;
use tenure_core::keys::KeyAnswer;
use tenure_core::machine::{Denied, Lost};

use super::campaigns::Campaign;
use super::happening::{Happening, Port};
use super::jobs::JobUser;
use super::key_users::KeyUser;
use super::phases::Stretch;
use super::sets::SetUser;
use super::slots::{Resizer, SlotUser};
use super::{Engine, PrimitivesWorld};
use crate::parts::Timer;
use crate::time::MILLI;

/// A user of one primitive in one process.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) process: usize,
    pub(super) timer: Timer,
    /// Number of store calls since the counter was last reset.
    pub(super) calls: u64,
    pub(super) role: ActorRole,
}

/// The primitive that an actor uses.
#[derive(Debug)]
pub(super) enum ActorRole {
    Campaign(Campaign),
    Set(SetUser),
    Key(KeyUser),
    Slot(SlotUser),
    Resizer(Resizer),
    Job(JobUser),
}

/// A report of a lease to its actor.
#[derive(Clone, Debug)]
pub(super) enum Notice {
    Granted(Token),
    Denied(Box<Denied>),
    Lost(Lost),
    /// The machine has ended, and no work runs under its term.
    Left,
    /// An operation on a plain key has its answer.
    Answered(Box<KeyAnswer>),
    /// An observing node saw this leader.
    SawLeader(Token, std::sync::Arc<str>),
}

impl Actor {
    pub(super) fn new(process: usize, role: ActorRole) -> Self {
        Self { process, timer: Timer::new(), calls: 0, role }
    }
}

impl PrimitivesWorld<'_> {
    pub(super) fn start_at(&mut self, actor: usize, at: u64) {
        let process = self.actors[actor].process;
        let incarnation = self.nodes[process].incarnation;
        self.agenda.push(at, Happening::Start { process: process as u16, actor: actor as u16, incarnation });
    }

    pub(super) fn starts(&mut self, actor: usize, incarnation: u32) {
        let process = self.actors[actor].process;
        if self.nodes[process].incarnation != incarnation || self.stretch == Stretch::Quiet {
            return;
        }
        match &self.actors[actor].role {
            ActorRole::Campaign(_) => self.campaign_starts(actor),
            ActorRole::Set(_) => self.set_starts(actor),
            ActorRole::Key(_) => self.key_user_starts(actor),
            ActorRole::Slot(_) => self.slot_user_starts(actor),
            ActorRole::Resizer(_) => self.resizer_starts(actor),
            ActorRole::Job(_) => self.job_user_starts(actor),
        }
    }

    /// Time until a user with this ttl begins again.
    pub(super) fn rest(&mut self, ttl: u64) -> u64 {
        match self.stretch {
            Stretch::Faults => self.rng.between(MILLI, self.plan.rest_most * ttl / 100),
            Stretch::Healed => MILLI,
            // A user that never rests would leave no turn to the others.
            Stretch::Fair | Stretch::Quiet => self.rng.between(0, 2 * ttl),
        }
    }

    /// Sets the alarm of an actor, on the clock of its process.
    pub(super) fn actor_sleeps(&mut self, actor: usize, until: u64) {
        let it = &mut self.actors[actor];
        let process = it.process;
        if let Some(at) = it.timer.sleep(until, &self.nodes[process].clock, self.now) {
            self.agenda.push(at, Happening::Alarm { process: process as u16, actor: actor as u16 });
        }
    }

    pub(super) fn actor_wakes(&mut self, actor: usize) {
        match &self.actors[actor].role {
            ActorRole::Campaign(_) => self.campaign_wakes(actor),
            ActorRole::Slot(_) => self.slot_user_wakes(actor),
            ActorRole::Set(_) | ActorRole::Key(_) | ActorRole::Resizer(_) | ActorRole::Job(_) => {}
        }
    }

    /// A machine reports to its actor.
    pub(super) fn notified(&mut self, port: Port, notice: Notice) {
        let Some(caller) = self.caller(port) else { return };
        let actor = caller.actor;
        let left = matches!(notice, Notice::Left | Notice::Answered(_));
        match &self.actors[actor].role {
            ActorRole::Campaign(_) => self.campaign_notified(actor, port, notice),
            ActorRole::Set(_) => self.set_notified(actor, port, notice),
            ActorRole::Key(_) => self.key_user_notified(actor, port, notice),
            ActorRole::Slot(_) => self.slot_user_notified(actor, port, notice),
            ActorRole::Resizer(_) => self.resizer_notified(actor, port, notice),
            ActorRole::Job(_) => self.job_user_notified(actor, port, notice),
        }
        if left {
            self.callers[port.caller as usize] = None;
        }
    }

    /// The process of an actor was killed: its state is lost.
    pub(super) fn actor_dies(&mut self, actor: usize) {
        self.actors[actor].timer = Timer::new();
        match &mut self.actors[actor].role {
            ActorRole::Campaign(campaign) => campaign.dies(),
            ActorRole::Set(user) => user.dies(),
            ActorRole::Key(user) => user.dies(),
            ActorRole::Slot(user) => user.dies(),
            ActorRole::Resizer(resizer) => resizer.dies(),
            ActorRole::Job(user) => user.dies(),
        }
    }

    pub(super) fn caller_wakes(&mut self, port: Port) {
        let Some(caller) = self.caller(port) else { return };
        match &caller.engine {
            Engine::Lease(_) => self.step_lease(port, tenure_core::machine::Input::Wake),
            Engine::Entry(_) => self.step_entry(port, tenure_core::machine::Input::Wake),
            Engine::Slot(_) | Engine::Listing(_) => {}
            Engine::Look(_) => self.looks_again(port),
        }
    }
}
