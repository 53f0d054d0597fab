use std::sync::Arc;

use super::{CampaignEffect, CampaignInput, ElectionRules, HealthState, Sign, TermEnd};
use crate::machine::Standard;
use crate::{ErrorKind, Instant, Timing, Token};

/// A node that wants to lead, again and again: its act after each grant, each end of a term and each error.
#[derive(Debug)]
pub struct Campaigner {
    rules: &'static dyn ElectionRules,
    timing: Timing,
    /// The name of this node.
    own: Arc<str>,
    stage: CampaignStage,
    /// Number of failed acquires in a row.
    failures: u32,
    health: HealthState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CampaignStage {
    /// Not started.
    Idle,
    /// An acquire is pending.
    Seeking,
    /// This node leads, or acts as if it did until it reports the end of the term.
    Leading(Token),
    /// The term with this token is over, and the others try first.
    LettingOthers { ended: Token, until: Instant },
    /// An acquire failed.
    Pausing { until: Instant },
    /// The node would campaign, but is not healthy.
    Ailing,
}

impl Campaigner {
    /// A campaigner with this name and these durations. It does nothing before [`CampaignInput::Start`].
    pub fn new(own: Arc<str>, timing: Timing) -> Self {
        Self::with_rules(own, timing, &Standard)
    }

    /// A campaigner under other rules, for the simulation.
    pub fn with_rules(own: Arc<str>, timing: Timing, rules: &'static dyn ElectionRules) -> Self {
        let (stage, health) = (CampaignStage::Idle, HealthState::Healthy);
        Self { rules, timing, own, stage, failures: 0, health }
    }

    /// Handles an input and appends the resulting effects. An input that does not fit the stage has no effect: it was
    /// overtaken.
    pub fn step(
        &mut self,
        now: Instant,
        jitter: u32,
        input: CampaignInput<'_>,
        effects: &mut Vec<CampaignEffect>,
    ) {
        match (self.stage, input) {
            (CampaignStage::Idle, CampaignInput::Start) => self.seek(effects),
            (CampaignStage::Seeking, CampaignInput::Granted(token))
                if self.rules.starts_term(Sign::Granted) =>
            {
                self.lead(token, effects);
            }
            (CampaignStage::Seeking, CampaignInput::Failed(kind)) => self.failed(kind, now, jitter, effects),
            (CampaignStage::Leading(token), CampaignInput::Ended(end)) => {
                self.ended(token, end, now, jitter, effects);
            }
            (_, CampaignInput::SawLeader { token, holder }) => self.saw(token, holder, effects),
            (_, CampaignInput::Health(health)) => self.feels(health, effects),
            (
                CampaignStage::LettingOthers { until, .. } | CampaignStage::Pausing { until },
                CampaignInput::Wake,
            ) => {
                if now < until {
                    effects.push(CampaignEffect::SleepUntil(until));
                } else {
                    self.seek(effects);
                }
            }
            _ => {}
        }
    }

    /// The token under which this node leads, until it reports the end of the term.
    pub fn leads(&self) -> Option<Token> {
        match self.stage {
            CampaignStage::Leading(token) => Some(token),
            _ => None,
        }
    }

    /// True if this node would campaign, but is not healthy.
    pub fn waits_for_health(&self) -> bool {
        self.stage == CampaignStage::Ailing
    }

    fn seek(&mut self, effects: &mut Vec<CampaignEffect>) {
        self.stage = if self.rules.may_campaign(self.health) {
            effects.push(CampaignEffect::Acquire);
            CampaignStage::Seeking
        } else {
            CampaignStage::Ailing
        };
    }

    fn lead(&mut self, token: Token, effects: &mut Vec<CampaignEffect>) {
        self.failures = 0;
        self.stage = CampaignStage::Leading(token);
        effects.push(CampaignEffect::Lead(token));
    }

    fn failed(&mut self, kind: ErrorKind, now: Instant, jitter: u32, effects: &mut Vec<CampaignEffect>) {
        self.failures = self.failures.saturating_add(1);
        let until = now + self.rules.pause_after(kind, self.failures, &self.timing, jitter);
        self.stage = CampaignStage::Pausing { until };
        if self.rules.is_permanent(kind) {
            effects.push(CampaignEffect::Report);
        }
        effects.push(CampaignEffect::SleepUntil(until));
    }

    fn ended(
        &mut self,
        ended: Token,
        end: TermEnd,
        now: Instant,
        jitter: u32,
        effects: &mut Vec<CampaignEffect>,
    ) {
        if !self.rules.lets_others_first(end) {
            return self.seek(effects);
        }
        let until = now + self.rules.others_try_for(self.timing.ttl(), jitter);
        self.stage = CampaignStage::LettingOthers { ended, until };
        effects.extend([CampaignEffect::Observe, CampaignEffect::SleepUntil(until)]);
    }

    fn saw(&mut self, token: Token, holder: &str, effects: &mut Vec<CampaignEffect>) {
        if matches!(self.stage, CampaignStage::Leading(_) | CampaignStage::Idle) {
            return;
        }
        if self.rules.starts_term(Sign::Named { leader: holder, own: &self.own }) {
            return self.lead(token, effects);
        }
        if let CampaignStage::LettingOthers { ended, .. } = self.stage
            && self.rules.another_was_granted(ended, token)
        {
            self.seek(effects);
        }
    }

    fn feels(&mut self, health: HealthState, effects: &mut Vec<CampaignEffect>) {
        self.health = health;
        let may_campaign = self.rules.may_campaign(health);
        match self.stage {
            CampaignStage::Seeking if !may_campaign => {
                self.stage = CampaignStage::Ailing;
                effects.push(CampaignEffect::Cancel);
            }
            CampaignStage::Ailing if may_campaign => self.seek(effects),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
