//! Elections: nodes that campaign for ever, under the production rules of the election.

use std::sync::Arc;

use tenure_core::election::{CampaignEffect, CampaignInput, Campaigner, TermEnd};
use tenure_core::machine::{Content, Input, ObservedRead, Observer, Patience};
use tenure_core::record::Ttl;
use tenure_store::Key;

use super::PrimitivesWorld;
use super::actor::{Actor, ActorRole, Notice};
use super::caller::Engine;
use super::calls::LetterBody;
use super::happening::Port;
use super::judges::Turns;
use super::phases::Stretch;
use crate::Invariant;
use crate::oracle::Interval;
use crate::tally::Met;
use crate::time::MILLI;

/// A node that campaigns.
#[derive(Debug)]
pub(super) struct Campaign {
    /// The key of the election.
    pub(super) key: usize,
    /// `None` until it starts, and after its process was killed.
    campaigner: Option<Campaigner>,
    /// The pending acquire, or the lease of the present term.
    lease: Option<Port>,
    /// The way in which the present term ended, until its lease is settled.
    ended: Option<TermEnd>,
    /// The reads for the leader.
    look: Option<Port>,
    turns: Turns,
}

/// Reads of a node that observes the leader while it lets the others try first.
#[derive(Debug)]
pub(super) struct Looking {
    observer: Observer,
    sent: tenure_core::Instant,
}

impl Campaign {
    fn new(key: usize) -> Self {
        Self { key, campaigner: None, lease: None, ended: None, look: None, turns: Turns::default() }
    }

    /// Its process was killed.
    pub(super) fn dies(&mut self) {
        *self = Self::new(self.key);
    }

    /// True if it wants to be elected and is not.
    fn waits(&self) -> bool {
        self.lease.is_some() && self.campaigner.as_ref().is_some_and(|it| it.leads().is_none())
    }
}

impl PrimitivesWorld<'_> {
    pub(super) fn campaigners_appear(&mut self) {
        for key in 0..self.plan.elections {
            for process in 0..self.nodes.len() {
                let count = if self.rng.chance(100) { 2 } else { 1 };
                for _ in 0..count {
                    self.actors.push(Actor::new(process, ActorRole::Campaign(Campaign::new(key))));
                }
            }
        }
    }

    fn campaign(&mut self, actor: usize) -> &mut Campaign {
        match &mut self.actors[actor].role {
            ActorRole::Campaign(campaign) => campaign,
            _ => unreachable!("the role of an actor never changes"),
        }
    }

    pub(super) fn campaign_starts(&mut self, actor: usize) {
        let node = &self.nodes[self.actors[actor].process];
        let (own, timing) = (Arc::clone(node.holder.id()), node.member.timing);
        let rules = self.seed.election;
        self.campaign(actor).campaigner = Some(Campaigner::with_rules(own, timing, rules));
        self.step_campaign(actor, CampaignInput::Start);
    }

    pub(super) fn campaign_wakes(&mut self, actor: usize) {
        self.step_campaign(actor, CampaignInput::Wake);
    }

    fn step_campaign(&mut self, actor: usize, input: CampaignInput<'_>) {
        let process = self.actors[actor].process;
        let now = self.nodes[process].local(self.now);
        let jitter = self.rng.next() as u32;
        self.note(process, format_args!("campaigner {actor}: {input:?}"));
        let mut effects = Vec::new();
        let Some(campaigner) = &mut self.campaign(actor).campaigner else { return };
        campaigner.step(now, jitter, input, &mut effects);
        for effect in effects {
            match effect {
                CampaignEffect::Acquire => self.campaign_acquires(actor),
                CampaignEffect::Cancel => {
                    if let Some(port) = self.campaign(actor).lease {
                        self.step_lease(port, Input::Release);
                    }
                }
                CampaignEffect::Lead(token) => self.leads(actor, token.get()),
                CampaignEffect::Report => {}
                CampaignEffect::Observe => self.observes(actor),
                CampaignEffect::SleepUntil(at) => self.actor_sleeps(actor, at.as_nanos()),
            }
        }
    }

    fn campaign_acquires(&mut self, actor: usize) {
        if let Some(look) = self.campaign(actor).look.take() {
            self.callers[look.caller as usize] = None;
        }
        if self.stretch == Stretch::Quiet {
            return;
        }
        let key = self.campaign(actor).key;
        let port = self.acquires(actor, key, Patience::Forever);
        let campaign = self.campaign(actor);
        campaign.lease = Some(port);
        campaign.turns.begin();
    }

    /// The campaigner yields a term.
    fn leads(&mut self, actor: usize, token: u64) {
        let (now, process) = (self.now, self.actors[actor].process);
        self.tally.met(Met::Elected);
        let campaign = self.campaign(actor);
        let key = campaign.key;
        campaign.turns.begin();
        let own = campaign.lease;
        let granted = own.and_then(|port| self.caller(port)?.tenancy()?.deadline);
        match own.filter(|_| granted.is_some()) {
            Some(port) => self.holds_for_a_while(port),
            None => {
                // It leads without a grant, for as long as its clock allows.
                let node = &self.nodes[process];
                let span = node.member.timing.belief().as_nanos() as u64;
                let end = node.clock.reaches(node.clock.local(now) + span);
                let lease = u32::MAX - actor as u32;
                let belief = Interval { lease, process, token, end, tainted: false };
                let verdict = self.judges[key].beliefs.begins(now, belief);
                self.verdicts.judge(now, Invariant::S2, verdict);
            }
        }
        self.others_miss_a_term(actor, key);
    }

    /// L6: every other campaigner that waits has missed one more term.
    fn others_miss_a_term(&mut self, elected: usize, key: usize) {
        if self.stretch != Stretch::Fair {
            return;
        }
        let of_key = |actor: &Actor| matches!(&actor.role, ActorRole::Campaign(it) if it.key == key);
        let campaigners = self.actors.iter().filter(|actor| of_key(actor)).count() as u64;
        for number in 0..self.actors.len() {
            let ActorRole::Campaign(campaign) = &mut self.actors[number].role else { continue };
            if number != elected && campaign.key == key && campaign.waits() {
                let verdict = campaign.turns.miss(campaigners);
                self.verdicts.judge(self.now, Invariant::L6, verdict);
            }
        }
    }

    pub(super) fn campaign_notified(&mut self, actor: usize, port: Port, notice: Notice) {
        let is_lease = self.campaign(actor).lease == Some(port);
        match notice {
            Notice::Granted(token) if is_lease => self.step_campaign(actor, CampaignInput::Granted(token)),
            Notice::Denied(denied) if is_lease => {
                self.campaign(actor).lease = None;
                let holder = &self.nodes[self.actors[actor].process].holder;
                let kind = denied.error(&Key::scratch(), "store", holder).kind();
                self.step_campaign(actor, CampaignInput::Failed(kind));
            }
            Notice::Lost(why) if is_lease => self.campaign(actor).ended = Some(TermEnd::from(&why)),
            Notice::Left if is_lease => {
                let campaign = self.campaign(actor);
                campaign.lease = None;
                if let Some(end) = campaign.ended.take() {
                    if end == TermEnd::Released {
                        self.tally.met(Met::Resigned);
                    }
                    self.step_campaign(actor, CampaignInput::Ended(end));
                }
            }
            Notice::SawLeader(token, holder) => {
                self.tally.met(Met::SuccessorSeen);
                self.step_campaign(actor, CampaignInput::SawLeader { token, holder: &holder });
            }
            // Of an earlier term, or of an acquire that was cancelled.
            Notice::Granted(_) | Notice::Denied(_) | Notice::Lost(_) | Notice::Left | Notice::Answered(_) => {
            }
        }
    }

    // ── observing the leader while the others try first ──────────────────────────────────────────────────────────

    fn observes(&mut self, actor: usize) {
        let key = self.campaign(actor).key;
        let sent = self.nodes[self.actors[actor].process].local(self.now);
        let looking = Looking { observer: Observer::with_rules(self.seed.rules), sent };
        let port = self.add_caller(actor, key, Engine::Look(looking));
        self.campaign(actor).look = Some(port);
        self.send(port, LetterBody::Read);
    }

    pub(super) fn looks_again(&mut self, port: Port) {
        let sent = self.nodes[port.process as usize].local(self.now);
        if let Some(Engine::Look(looking)) = self.caller(port).map(|caller| &mut caller.engine) {
            looking.sent = sent;
            self.send(port, LetterBody::Read);
        }
    }

    /// The answer to a read of an observing node.
    pub(super) fn looked(&mut self, port: Port, input: Input) {
        let (now, clock) = (self.now, self.plan.store.clock);
        let node = &self.nodes[port.process as usize];
        let (returned, wall, ttl) = (node.local(now), node.wall_time(now), node.member.timing.ttl());
        let Some(Engine::Look(looking)) = self.caller(port).map(|caller| &mut caller.engine) else { return };
        if let Input::Read(Ok(look)) = input {
            let content = look.content.clone();
            let read = ObservedRead { look, clock, sent: looking.sent, returned, wall };
            let standing = looking.observer.judge(&read, tenure_core::machine::Sighting::default());
            if let (Content::Record(record, _), Some(true)) = (content, standing.map(|it| it.is_held()))
                && let Some(holder) = &record.holder
            {
                let notice = Notice::SawLeader(record.token, Arc::clone(holder.id()));
                self.notices.push_back((port, notice));
            }
        }
        self.caller_sleeps(port, returned.as_nanos() + look_period(ttl));
    }
}

/// Time between two reads of an observing node: that of a contender.
fn look_period(ttl: Ttl) -> u64 {
    ttl.as_millis() * MILLI * 3 / 8
}
