use std::sync::Arc;

use super::ElectionRules;
use crate::Token;
use crate::machine::{Standard, Standing};
use crate::record::Record;

/// Turns the observations of one key into reports about its leader: the present one first, then every change that was
/// seen, never an older token.
#[derive(Debug)]
pub struct LeaderFilter {
    rules: &'static dyn ElectionRules,
    /// The greatest token seen, of a leader or of a vacant record.
    seen: Token,
    /// The reported leader: its token; `None` inside if there is none, outside before the first report.
    reported: Option<Option<Token>>,
}

/// A report about the leader of an election.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaderReport {
    /// This record names the leader.
    Leader(Arc<Record>),
    /// There is no leader: the key is vacant, its record has run out, or it has no record of a holder.
    NoLeader,
}

impl LeaderFilter {
    /// A filter without a report.
    pub fn new() -> Self {
        Self::with_rules(&Standard)
    }

    /// A filter under other rules, for the simulation.
    pub fn with_rules(rules: &'static dyn ElectionRules) -> Self {
        Self { rules, seen: Token::ZERO, reported: None }
    }

    /// Takes in an observation. Returns a report if it is the first one or differs from the latest.
    pub fn saw(&mut self, record: Option<&Arc<Record>>, standing: &Standing) -> Option<LeaderReport> {
        if let Some(record) = record {
            // An answer that a newer one has overtaken says nothing about the present, not even that the key is vacant.
            if !self.rules.may_show_leader(self.seen, record.token) {
                return None;
            }
            self.seen = record.token;
        }
        let leader = record.filter(|_| self.rules.leads(standing));
        let token = leader.map(|record| record.token);
        if self.reported.replace(token) == Some(token) {
            return None;
        }
        Some(leader.map_or(LeaderReport::NoLeader, |record| LeaderReport::Leader(Arc::clone(record))))
    }
}

impl Default for LeaderFilter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::machine::Remaining;
    use crate::record::{Nonce, State};
    use crate::{Holder, WallTime};

    fn held() -> Standing {
        Standing::Held(Remaining::new(Duration::from_secs(1), true))
    }

    fn record(token: u64, holder: &str) -> Arc<Record> {
        let mut record = Record::new(Token::new(token).unwrap(), Nonce::from_bits(1), WallTime::default());
        (record.state, record.holder) = (State::Held, Some(Arc::new(Holder::new(holder).unwrap())));
        Arc::new(record)
    }

    fn token_of(report: Option<LeaderReport>) -> Option<u64> {
        match report {
            Some(LeaderReport::Leader(record)) => Some(record.token.get()),
            Some(LeaderReport::NoLeader) => Some(0),
            None => None,
        }
    }

    #[test]
    fn the_present_leader_comes_first_and_then_every_change_once() {
        let mut filter = LeaderFilter::new();
        let (first, second) = (record(4, "a"), record(7, "a"));
        assert_eq!(token_of(filter.saw(Some(&first), &held())), Some(4));
        assert_eq!(filter.saw(Some(&first), &held()), None, "a renewal is no change");
        assert_eq!(
            token_of(filter.saw(Some(&second), &held())),
            Some(7),
            "a twin of the same name is another leader"
        );
        assert_eq!(token_of(filter.saw(Some(&second), &Standing::RanOut)), Some(0));
        assert_eq!(filter.saw(Some(&second), &Standing::Vacant), None);
        assert_eq!(
            token_of(filter.saw(Some(&second), &held())),
            Some(7),
            "it had only seemed to have run out"
        );
    }

    #[test]
    fn a_key_without_a_record_has_no_leader() {
        assert_eq!(LeaderFilter::new().saw(None, &Standing::Absent), Some(LeaderReport::NoLeader));
    }

    #[test]
    fn an_overtaken_answer_reports_neither_an_older_leader_nor_a_vacancy() {
        let mut filter = LeaderFilter::new();
        filter.saw(Some(&record(7, "b")), &held());
        assert_eq!(filter.saw(Some(&record(4, "a")), &held()), None);
        assert_eq!(filter.saw(Some(&record(4, "a")), &Standing::Vacant), None);
    }

    proptest! {
        #[test]
        fn tokens_never_go_back_and_no_report_is_repeated(
            reads in proptest::collection::vec((1u64..6, 0..4u8), 1..40)
        ) {
            let mut filter = LeaderFilter::new();
            let (mut shown, mut last) = (0, None);
            for (token, kind) in reads {
                let record = record(token, "a");
                let report = match kind {
                    0 => filter.saw(Some(&record), &Standing::Vacant),
                    1 => filter.saw(Some(&record), &Standing::RanOut),
                    2 => filter.saw(None, &Standing::Absent),
                    _ => filter.saw(Some(&record), &held()),
                };
                let Some(now) = token_of(report) else { continue };
                prop_assert_ne!(Some(now), last);
                prop_assert!(now == 0 || now >= shown);
                (shown, last) = (shown.max(now), Some(now));
            }
        }
    }
}
