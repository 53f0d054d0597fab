use tenure_fence::FencingToken;

use super::machine::Sighting;
use crate::clock::Instant;

/// Knowledge of one handle about its value: the next write of the same holder is one call.
#[derive(Debug, Default)]
pub(super) struct ValueMemory {
    /// The entry as it was last seen. It may have been replaced since: then the store refuses the write.
    pub(super) latest: Option<Sighting>,
    /// The greatest token seen.
    pub(super) highest: Option<FencingToken>,
    /// Earliest time of the next write, by the store's write interval.
    pub(super) next_write_at: Option<Instant>,
}

impl ValueMemory {
    /// Remembers an entry. Answers may overtake each other, so an earlier one changes nothing.
    pub(super) fn saw(&mut self, sighting: Sighting) {
        let order = |header: &super::Header| (header.mark.token(), header.sequence);
        let mark = &sighting.header.mark;
        if self.highest.as_ref().is_none_or(|highest| highest.token() < mark.token()) {
            self.highest = Some(mark.clone());
        }
        if self.latest.as_ref().is_none_or(|latest| order(&latest.header) <= order(&sighting.header)) {
            self.latest = Some(sighting);
        }
    }
}
