use crate::clock::Instant;

/// Rank of a call that waits for a place. The smaller one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A call of a holder, or of a lease that ends: a renewal, its read back, a release. The nearest deadline goes first.
    Renewal(Instant),
    /// A call of a contender or an observer. The one that has waited longest goes first.
    Poll,
}
