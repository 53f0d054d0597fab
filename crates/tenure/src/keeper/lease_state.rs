use tenure_core::machine::Lost;

/// How a lease stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Held, and the latest renewal succeeded. Go on.
    Held,
    /// Still held, but a renewal failed. Go on, and be ready to stop.
    AtRisk,
    /// Not held any more. Stop acting.
    Lost(Lost),
}

/// One successful renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The new deadline, on the coordinator's clock.
    pub deadline: crate::clock::Instant,
    /// How many renewals this lease has had, this one included.
    pub count: u64,
}
