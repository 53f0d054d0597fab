use super::Judgement;
use crate::{Invariant, Violation};

/// The first violation of a seed.
#[derive(Debug)]
pub(crate) struct Verdicts {
    wanted: Option<Invariant>,
    violation: Option<Violation>,
}

impl Verdicts {
    /// Verdicts on `wanted`, or on every invariant.
    pub(crate) fn new(wanted: Option<Invariant>) -> Self {
        Self { wanted, violation: None }
    }

    /// Records a judgement. Only the first violation counts: later ones may follow from it.
    pub(crate) fn judge(&mut self, at: u64, invariant: Invariant, verdict: Judgement) {
        let Err(sentence) = verdict else { return };
        if self.violation.is_none() && self.wanted.is_none_or(|wanted| wanted == invariant) {
            self.violation = Some(Violation { invariant, at, sentence });
        }
    }

    /// The first violation.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }
}
