use std::time::Duration;

/// What a store promises, as configured. **The default promises nothing.**
///
/// Every field is a promise, so that a forgotten one is refused rather than believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantees {
    /// Of any number of racing creates of one key exactly one is applied.
    pub atomic_create: bool,
    /// Of any number of racing replaces of one version exactly one is applied.
    pub atomic_replace: bool,
    /// A read sent after a write was answered shows that write or a later one.
    pub linearizable_reads: bool,
    /// A write that was acknowledged is not lost, by failover, restart or otherwise.
    pub keeps_acknowledged: bool,
    /// Equal bytes never give an equal version. (Content hashes do: Tenure puts a nonce into every write.)
    pub unique_versions: bool,
    /// How far apart the programs may be that see the same keys.
    pub reach: Reach,
    /// What the store's own clock is good for.
    pub clock: StoreClock,
    /// Whether [`Store::watch`](crate::Store::watch) gives hints.
    pub watch: bool,
    /// The shortest interval at which one key may be written.
    pub write_interval: Duration,
    /// The largest value in bytes.
    pub value_max: usize,
}

/// How far apart the programs may be that see the same keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reach {
    /// Nobody is promised to see anything.
    #[default]
    Nothing,
    /// One process.
    Process,
    /// One machine: all its processes share a kernel.
    Machine,
    /// Any number of machines.
    Network,
}

/// What the store's own clock is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StoreClock {
    /// Nothing: there is none, or it cannot be trusted to go forward.
    #[default]
    Nothing,
    /// Raising the floor of tokens: a wall clock that is roughly right, and may be stepped.
    Floors,
    /// Telling the age of a version too: a clock that does not jump.
    Ages,
}

impl Guarantees {
    /// What leases need and this store does not promise, in words. Empty when nothing is missing.
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
    }
}
