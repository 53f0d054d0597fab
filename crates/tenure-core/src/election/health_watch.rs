use std::time::Duration;

use super::ElectionRules;
use crate::Instant;
use crate::machine::Standard;

/// The health of a node over time, by the answers of its health check.
///
/// A node is healthy only after the check has said so. An unhealthy answer, and a check that does not answer in time, put
/// it at risk; when that has lasted for the limit, the leader resigns.
#[derive(Debug)]
pub struct HealthWatch {
    rules: &'static dyn ElectionRules,
    limit: Duration,
    /// Since when the node has not been healthy; `None` if it is.
    ill_since: Option<Instant>,
}

/// State of health of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// The latest answer was healthy. Lead, or campaign.
    Healthy,
    /// The latest answer was not, or it is late. A leader still leads.
    AtRisk {
        /// Instant at which a leader resigns, unless the check is healthy before.
        resigns_at: Instant,
    },
    /// The node has been at risk for the limit: a leader resigns.
    Failed,
}

impl HealthWatch {
    /// The watch of a node that has not been checked yet. `limit` is the longest time at risk.
    pub fn new(limit: Duration, now: Instant) -> Self {
        Self::with_rules(limit, now, &Standard)
    }

    /// A watch under other rules, for the simulation.
    pub fn with_rules(limit: Duration, now: Instant, rules: &'static dyn ElectionRules) -> Self {
        Self { rules, limit, ill_since: Some(now) }
    }

    /// Takes in an answer of the check, or `false` for one that did not come in time. Returns the new state.
    pub fn answered(&mut self, healthy: bool, now: Instant) -> HealthState {
        self.ill_since = if healthy { None } else { self.ill_since.or(Some(now)) };
        self.state(now)
    }

    /// The state at this instant.
    pub fn state(&self, now: Instant) -> HealthState {
        match self.ill_since.map(|since| self.rules.resigns_at(since, self.limit)) {
            None => HealthState::Healthy,
            Some(resigns_at) if now < resigns_at => HealthState::AtRisk { resigns_at },
            Some(_) => HealthState::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_node_is_healthy_only_after_its_check_has_said_so() {
        let mut watch = HealthWatch::new(LIMIT, at(5));
        assert_eq!(watch.state(at(6)), HealthState::AtRisk { resigns_at: at(15) });
        assert_eq!(watch.answered(true, at(7)), HealthState::Healthy);
        assert_eq!(watch.state(at(1_000)), HealthState::Healthy);
    }

    #[test]
    fn a_leader_resigns_when_it_was_unhealthy_for_the_whole_limit_and_one_healthy_answer_starts_it_anew() {
        let mut watch = HealthWatch::new(LIMIT, at(0));
        watch.answered(true, at(1));
        assert_eq!(watch.answered(false, at(2)), HealthState::AtRisk { resigns_at: at(12) });
        assert_eq!(
            watch.answered(false, at(8)),
            HealthState::AtRisk { resigns_at: at(12) },
            "counted from the first"
        );
        assert_eq!(watch.answered(true, at(9)), HealthState::Healthy);
        watch.answered(false, at(10));
        assert_eq!(watch.state(at(19)), HealthState::AtRisk { resigns_at: at(20) });
        assert_eq!(watch.state(at(20)), HealthState::Failed);
    }
}
