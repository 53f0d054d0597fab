use std::time::Duration;

/// The guarantees of a store, as configured. **The default guarantees nothing.**
///
/// Every field is a guarantee: a store that forgets to declare one fails the check, and Tenure does not assume it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantees {
    /// Exactly one of any number of racing creates of one key is applied.
    pub atomic_create: bool,
    /// Exactly one of any number of racing replaces of one version is applied.
    pub atomic_replace: bool,
    /// A read sent after a write was answered shows that write or a later one.
    pub linearizable_reads: bool,
    /// An acknowledged write is never lost, neither by failover nor by restart nor otherwise.
    pub keeps_acknowledged: bool,
    /// Equal bytes never give an equal version. (Content hashes do: Tenure puts a nonce into every write.)
    pub unique_versions: bool,
    /// Distance between the programs that see the same keys.
    pub reach: Reach,
    /// Use of the store's own clock.
    pub clock: StoreClock,
    /// Tick of the store's own clock: the distance between a time that it shows and the next later one. The default is
    /// that of the HTTP header `Date`, one second.
    ///
    /// After a deletion, a clock with a tick may still show the time from before the deletion. So the first grant of a
    /// planted record waits for the next tick.
    ///
    /// Zero if the clock counts writes: after each write it is later than every time that the writer has seen. Then
    /// the first grant does not wait.
    pub clock_tick: Duration,
    /// True if [`Store::watch`](crate::Store::watch) gives hints.
    pub watch: bool,
    /// Minimum interval between two writes of one key.
    pub write_interval: Duration,
    /// Maximum size of a value, in bytes.
    pub value_max: usize,
}

/// Distance between the programs that see the same keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reach {
    /// No program is guaranteed to see anything.
    #[default]
    Nothing,
    /// One process.
    Process,
    /// One machine: all its processes share a kernel.
    Machine,
    /// Any number of machines.
    Network,
}

/// Use of the store's own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StoreClock {
    /// None: there is no clock, or it may go backwards.
    #[default]
    Nothing,
    /// It raises the floor of tokens: a wall clock that is roughly right, and may be stepped.
    Floors,
    /// It also measures the age of a version: a clock that does not jump.
    Ages,
}

impl Guarantees {
    /// Names of the guarantees that leases need and this store does not declare. Empty if none is missing.
    pub fn missing_for_leases(&self) -> Vec<&'static str> {
        let needed = [
            (self.atomic_create, "atomic create"),
            (self.atomic_replace, "atomic replace"),
            (self.linearizable_reads, "linearizable reads"),
            (self.keeps_acknowledged, "keeping acknowledged writes"),
            (self.reach > Reach::Nothing, "a reach"),
            (self.write_interval < Duration::MAX, "how often a key may be written"),
        ];
        needed.iter().filter(|(promised, _)| !promised).map(|(_, name)| *name).collect()
    }
}

impl Default for Guarantees {
    fn default() -> Self {
        Self {
            atomic_create: false,
            atomic_replace: false,
            linearizable_reads: false,
            keeps_acknowledged: false,
            unique_versions: false,
            reach: Reach::Nothing,
            clock: StoreClock::Nothing,
            clock_tick: Duration::from_secs(1),
            watch: false,
            write_interval: Duration::MAX,
            value_max: 0,
        }
    }
}

impl std::fmt::Display for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::Process => "one process",
            Self::Machine => "one machine",
            Self::Network => "the network",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_promises_nothing_and_every_gap_is_named() {
        let missing = Guarantees::default().missing_for_leases();
        assert_eq!(
            missing,
            [
                "atomic create",
                "atomic replace",
                "linearizable reads",
                "keeping acknowledged writes",
                "a reach",
                "how often a key may be written"
            ]
        );
        assert_eq!(Guarantees::default().value_max, 0, "not even room for a record is promised");
        assert_eq!(Guarantees::default().clock, StoreClock::Nothing);
        assert!(!Guarantees::default().clock_tick.is_zero(), "a clock is assumed to be coarse");
    }
}
