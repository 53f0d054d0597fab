use super::Judgement;
use crate::trace::Moment;

/// L1: after healing the key is held again within two ttl and one call timeout.
#[derive(Debug, Default)]
pub(crate) struct HeldAgain {
    healed: Option<u64>,
    held: Option<u64>,
}

impl HeldAgain {
    /// Everything is healed, and perhaps somebody believes at that moment.
    pub(crate) fn healed(&mut self, now: u64, held: bool) {
        self.healed = Some(now);
        self.held = held.then_some(now);
    }

    /// Somebody believes.
    pub(crate) fn believed(&mut self, now: u64) {
        if self.healed.is_some() && self.held.is_none() {
            self.held = Some(now);
        }
    }

    /// The time is over.
    pub(crate) fn at_the_end(&self, now: u64) -> Judgement {
        match (self.healed, self.held) {
            (Some(healed), None) => {
                Err(format!("healed at{}, and at{} nobody holds the key", Moment(healed), Moment(now)))
            }
            _ => Ok(()),
        }
    }
}
