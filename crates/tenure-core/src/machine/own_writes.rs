use crate::Instant;
use crate::record::Nonce;

/// The writes of this process to one plain key that may be what the key shows: each with the instant before it was sent.
///
/// An answer may be lost, and another operation of the process may read the write first. So a write is listed before it
/// is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnWrites(Vec<(Nonce, Instant)>);

impl OwnWrites {
    /// Lists a write that is sent now. One that is listed already is sent only now.
    pub(super) fn sends(&mut self, nonce: Nonce, sent: Instant) {
        self.0.retain(|(listed, _)| *listed != nonce);
        if self.0.len() == OWN_WRITES_MAX {
            self.0.remove(0);
        }
        self.0.push((nonce, sent));
    }

    /// Takes in that a write was applied. Those that were sent before it expect an earlier version, so the key never
    /// shows them again.
    pub(super) fn applied(&mut self, nonce: Nonce) {
        if let Some(sent) = self.sent(nonce) {
            self.0.retain(|(listed, earlier)| *listed == nonce || *earlier >= sent);
        }
    }

    /// The instant before this write was sent, if this process has sent it.
    pub(super) fn sent(&self, nonce: Nonce) -> Option<Instant> {
        self.0.iter().find(|(listed, _)| *listed == nonce).map(|(_, sent)| *sent)
    }
}

/// Maximum number of writes without a later one that was applied. An operation pauses between its writes, so the oldest
/// of so many is no longer on its way.
const OWN_WRITES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn write(number: u64) -> (Nonce, Instant) {
        (Nonce::from_bits(number.into()), Instant::from_nanos(number))
    }

    fn listed(numbers: impl IntoIterator<Item = u64>) -> OwnWrites {
        let mut writes = OwnWrites::default();
        for (nonce, sent) in numbers.into_iter().map(write) {
            writes.sends(nonce, sent);
        }
        writes
    }

    #[test]
    fn an_applied_write_removes_those_before_it_and_keeps_those_after_it() {
        let mut writes = listed([1, 2, 3]);
        writes.applied(write(2).0);
        assert_eq!(
            [1, 2, 3].map(|number| writes.sent(write(number).0)),
            [None, Some(write(2).1), Some(write(3).1)]
        );
    }

    #[test]
    fn a_write_that_waited_counts_from_when_it_was_sent() {
        let mut writes = listed([1]);
        writes.sends(write(1).0, write(9).1);
        assert_eq!(writes.sent(write(1).0), Some(write(9).1));
        assert_eq!(writes.0.len(), 1);
    }

    #[test]
    fn the_list_is_bounded_and_drops_the_oldest() {
        let writes = listed(1..=65);
        assert_eq!((writes.0.len(), writes.sent(write(1).0)), (64, None));
        assert!(writes.sent(write(2).0).is_some());
    }
}
