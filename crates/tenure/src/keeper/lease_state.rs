use tenure_core::machine::Lost;

/// State of a lease, as its holder sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// Held, and the latest renewal succeeded. Continue.
    Held,
    /// Still held, but a renewal failed. Continue, and be ready to stop.
    AtRisk,
    /// Lost. Stop acting.
    Lost(Lost),
}

/// One successful renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renewal {
    /// The new deadline, on the coordinator's clock.
    pub deadline: crate::clock::Instant,
    /// Number of renewals of this lease, including this one.
    pub count: u64,
}
