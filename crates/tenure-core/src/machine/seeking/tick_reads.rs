use crate::Instant;
use crate::record::Nonce;

/// Reads of a planted record for a later time of the store's clock.
#[derive(Debug, Default)]
pub(super) struct TickReads {
    /// Nonce of the planted record.
    planted: Nonce,
    /// Time of the last answer that counted.
    answered: Option<Instant>,
    reads: u32,
    /// Number of these in a row before which the clock showed the same time as at first.
    unchanged: u32,
}

impl TickReads {
    /// Counts the next read of this record, unless the last one had no answer since then: it says nothing about the
    /// clock. Returns the number of reads, and of those with an unchanged clock.
    pub(super) fn next(&mut self, planted: Nonce, answered: Instant, unchanged: bool) -> (u32, u32) {
        if self.planted != planted {
            *self = Self { planted, ..Self::default() };
        }
        if self.answered.replace(answered) == Some(answered) {
            return (self.reads, self.unchanged);
        }
        self.reads = self.reads.saturating_add(1);
        self.unchanged = if unchanged { self.unchanged.saturating_add(1) } else { 0 };
        (self.reads, self.unchanged)
    }
}
