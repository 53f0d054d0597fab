use super::Judgement;
use crate::trace::Moment;

/// L1: after healing, the key is held again within two ttl and one call timeout.
#[derive(Debug, Default)]
pub(crate) struct HeldAgain {
    healed: Option<u64>,
    held: Option<u64>,
}

impl HeldAgain {
    /// All faults have ended. `held` is true if a holder believes at this instant.
    pub(crate) fn healed(&mut self, now: u64, held: bool) {
        self.healed = Some(now);
        self.held = held.then_some(now);
    }

    /// A holder believes.
    pub(crate) fn believed(&mut self, now: u64) {
        if self.healed.is_some() && self.held.is_none() {
            self.held = Some(now);
        }
    }

    /// The judgement when the time limit is reached.
    pub(crate) fn at_the_end(&self, now: u64) -> Judgement {
        match (self.healed, self.held) {
            (Some(healed), None) => {
                Err(format!("healed at{}, but the key is not held at{}", Moment(healed), Moment(now)))
            }
            _ => Ok(()),
        }
    }
}
