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
    /// A restart of the machine loses every entry, and ends every program that sees them, because the store is in its
    /// memory. [`keeps_acknowledged`](Self::keeps_acknowledged) then means: until that restart. Leases stay safe. Plain
    /// keys are lost, and tokens depend on the machine's clock afterwards.
    pub lost_at_reboot: bool,
    /// After each event that may have lost acknowledged writes, the store grants nothing until every lease from before
    /// it has run out. With a [`ttl_max`](Self::ttl_max), this makes leases safe on a store that may lose such writes,
    /// but not plain keys.
    pub quarantine: bool,
    /// The option of the URL by which an operator accepted that acknowledged writes may be lost, such as
    /// `accept=restart`; `None` if there is none. Leases are allowed then. After a loss two may hold one lease, and only
    /// the fence protects.
    pub accepted_loss: Option<&'static str>,
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
    /// Longest ttl of a holder on this store; `None` if there is no limit. The quarantine is as long.
    pub ttl_max: Option<Duration>,
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
            (
                self.keeps_acknowledged || self.forgets_safely() || self.accepted_loss.is_some(),
                "keeping acknowledged writes",
            ),
            (self.reach > Reach::Nothing, "a reach"),
            (self.write_interval < Duration::MAX, "how often a key may be written"),
        ];
        needed.iter().filter(|(promised, _)| !promised).map(|(_, name)| *name).collect()
    }

    /// True if plain keys may be changed: the store keeps each change, or an operator accepted that it may lose some. An
    /// operator who left the quarantine on has not accepted the losses of a restart.
    pub fn allows_plain_keys(&self) -> bool {
        self.keeps_acknowledged || (self.accepted_loss.is_some() && !self.quarantine)
    }

    /// True if leases are safe although the store may lose acknowledged writes.
    fn forgets_safely(&self) -> bool {
        self.quarantine && self.ttl_max.is_some()
    }
}

impl Default for Guarantees {
    fn default() -> Self {
        Self {
            atomic_create: false,
            atomic_replace: false,
            linearizable_reads: false,
            keeps_acknowledged: false,
            lost_at_reboot: false,
            quarantine: false,
            accepted_loss: None,
            unique_versions: false,
            reach: Reach::Nothing,
            clock: StoreClock::Nothing,
            clock_tick: Duration::from_secs(1),
            watch: false,
            write_interval: Duration::MAX,
            ttl_max: None,
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

    #[test]
    fn a_store_that_may_forget_needs_a_quarantine_and_a_longest_ttl() {
        let missing = |quarantine, ttl_max| {
            let guarantees = Guarantees { quarantine, ttl_max, ..Guarantees::default() };
            guarantees.missing_for_leases().contains(&"keeping acknowledged writes")
        };
        let minute = Some(Duration::from_secs(60));
        assert!(!missing(true, minute));
        assert!(missing(true, None), "a lease could outlast any quarantine");
        assert!(missing(false, minute), "a forgotten grant could be given again at once");
    }
    #[test]
    fn an_accepted_loss_allows_leases_and_without_a_quarantine_also_plain_keys() {
        let accepted = Guarantees { accepted_loss: Some("accept=restart"), ..Guarantees::default() };
        assert!(!accepted.missing_for_leases().contains(&"keeping acknowledged writes"));
        assert!(accepted.allows_plain_keys());
        assert!(!Guarantees { quarantine: true, ..accepted }.allows_plain_keys());
        assert!(!Guarantees::default().allows_plain_keys());
        assert!(Guarantees { keeps_acknowledged: true, ..Guarantees::default() }.allows_plain_keys());
    }
}
