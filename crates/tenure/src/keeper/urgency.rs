use crate::clock::Instant;

/// Rank of a call that waits for a place. The smaller one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A call of a holder, or of a lease that ends: a renewal, its read back, a release. The nearest deadline goes first.
    Renewal(Instant),
    /// A call of a contender. The one that has waited longest goes first.
    Poll,
}

impl Urgency {
    /// Kind of a call with this rank.
    pub(crate) fn kind(self) -> CallKind {
        match self {
            Self::Renewal(_) => CallKind::Renewal,
            Self::Poll => CallKind::Poll,
        }
    }
}

/// Kind of a call that has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// A call of a holder, or of a lease that ends.
    Renewal,
    /// A call of a contender.
    Poll,
}
