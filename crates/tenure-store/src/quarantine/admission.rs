use std::time::Duration;

/// Decision about a write during a quarantine.
///
/// Exhaustive: a store does one of these three things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Send the write.
    Send,
    /// Answer with a conflict, and send nothing: the expected version was read in another run. The participant reads
    /// again, and finds its own record or another one.
    Conflict,
    /// Answer with [`Quarantine::withheld`](super::Quarantine::withheld), and send nothing: the quarantine lasts for this
    /// long.
    Wait(Duration),
}
