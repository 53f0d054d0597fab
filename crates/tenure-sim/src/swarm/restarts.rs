/// Restarts of the server behind the store, which may lose acknowledged writes.
#[derive(Clone, Debug)]
pub(crate) struct Restarts {
    /// Mean time between two restarts.
    pub(crate) every: u64,
    /// Longest time for which the server is down.
    pub(crate) down_most: u64,
    /// Rate of the clock of a participant that only reads, and marks the run as cleared as soon as it may: a million is
    /// exact.
    pub(crate) bystander: u64,
}
