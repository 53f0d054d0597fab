//! Judges in true time, which the code under test cannot see. One file per invariant.

mod l1_held_again;
mod l5_calls;
mod l6_wins;
mod s1_tokens;
mod s2_belief;
mod s3_fence;
mod s5_unknown;
mod s6_stays_lost;
mod s6_stubborn;
mod s8_observe;
mod s9_record;
mod verdicts;

pub(crate) use l1_held_again::HeldAgain;
pub(crate) use l5_calls::{calls_after_outage_are_few, calls_are_few, holders_calls_are_few};
pub(crate) use l6_wins::wins_in_time;
pub(crate) use s1_tokens::Tokens;
pub(crate) use s2_belief::{Beliefs, Interval};
pub(crate) use s3_fence::Fence;
pub(crate) use s5_unknown::{WriteFate, really_applied, really_superseded};
pub(crate) use s6_stays_lost::StaysLost;
pub(crate) use s6_stubborn::{leaves_alone, really_said, takes_nothing_alive};
pub(crate) use s8_observe::Shown;
pub(crate) use s9_record::{follows, overwrites_nothing_foreign};
pub(crate) use verdicts::Verdicts;

use crate::{Invariant, Violation};

/// `Ok`, or a sentence that describes the violation.
pub(crate) type Judgement = Result<(), String>;

/// All judges of one seed.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) tokens: Tokens,
    pub(crate) beliefs: Beliefs,
    pub(crate) fence: Fence,
    pub(crate) stays_lost: StaysLost,
    pub(crate) held_again: HeldAgain,
    pub(crate) shown: Vec<Shown>,
    /// The last time at which the record was changed from outside.
    pub(crate) tampered_at: Option<u64>,
    verdicts: Verdicts,
}

impl Oracle {
    /// Judges that look for `wanted`, or for every invariant.
    pub(crate) fn new(wanted: Option<Invariant>, store_has_clock: bool, observers: usize) -> Self {
        Self {
            tokens: Tokens::new(store_has_clock),
            beliefs: Beliefs::default(),
            fence: Fence::default(),
            stays_lost: StaysLost::default(),
            held_again: HeldAgain::default(),
            shown: vec![Shown::default(); observers],
            tampered_at: None,
            verdicts: Verdicts::new(wanted),
        }
    }

    /// Records a judgement.
    pub(crate) fn judge(&mut self, at: u64, invariant: Invariant, verdict: Judgement) {
        self.verdicts.judge(at, invariant, verdict);
    }

    /// The record was changed from outside: current beliefs are no longer promised exclusion.
    pub(crate) fn tampered(&mut self, now: u64) {
        self.tampered_at = Some(now);
        self.tokens.tampered();
        self.beliefs.taint_all();
    }

    /// The first violation.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.verdicts.violation()
    }
}
