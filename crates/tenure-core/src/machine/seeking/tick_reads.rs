use crate::record::Nonce;

/// Reads of a planted record for a later time of the store's clock.
#[derive(Debug, Default)]
pub(super) struct TickReads {
    /// Nonce of the planted record.
    planted: Nonce,
    reads: u32,
    /// Number of these in a row before which the clock showed the same time as at first.
    unchanged: u32,
}

impl TickReads {
    /// Counts the next read of this record. Returns the number of reads, and of those with an unchanged clock.
    pub(super) fn next(&mut self, planted: Nonce, unchanged: bool) -> (u32, u32) {
        if self.planted != planted {
            *self = Self { planted, ..Self::default() };
        }
        self.reads = self.reads.saturating_add(1);
        self.unchanged = if unchanged { self.unchanged.saturating_add(1) } else { 0 };
        (self.reads, self.unchanged)
    }
}
