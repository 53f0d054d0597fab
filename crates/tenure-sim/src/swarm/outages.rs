/// Outages of the store: for a while it executes nothing, for all processes.
#[derive(Clone, Debug)]
pub(crate) struct Outages {
    /// Shortest time from the end of an outage to the next.
    pub(crate) apart: u64,
    /// Longest outage.
    pub(crate) most: u64,
}
