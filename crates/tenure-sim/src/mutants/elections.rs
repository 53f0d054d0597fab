//! Wrong rules of elections.

use tenure_core::Token;
use tenure_core::election::{ElectionRules, Sign, TermEnd};

#[derive(Debug)]
pub(super) struct ElectedByName;

impl ElectionRules for ElectedByName {
    fn starts_term(&self, sign: Sign<'_>) -> bool {
        match sign {
            Sign::Granted => true,
            Sign::Named { leader, own } => leader == own,
        }
    }
}

#[derive(Debug)]
pub(super) struct ReleaserFirst;

impl ElectionRules for ReleaserFirst {
    fn lets_others_first(&self, _: TermEnd) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct ShowsOlderLeader;

impl ElectionRules for ShowsOlderLeader {
    fn may_show_leader(&self, _: Token, _: Token) -> bool {
        true
    }
}
