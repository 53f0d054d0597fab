//! The decisions about several leases at once. Every mutant of the simulation replaces exactly one rule.

use std::fmt;

use tenure_store::Key;

use crate::Instant;
use crate::machine::{Patience, Standard};

/// The decisions about several leases at once, each with its correct implementation.
pub trait SetRules: fmt::Debug + Send + Sync {
    /// Puts the keys into the order in which they are acquired: the same for every contender, whatever order its caller
    /// wrote. Each contender then waits only for keys behind those it holds, so no two wait for each other.
    fn order(&self, keys: &mut [Key]) {
        keys.sort();
    }

    /// True if the set is held, given which of its leases are held at this instant: only if all of them are.
    fn believes(&self, held: &[bool]) -> bool {
        held.iter().all(|held| *held)
    }

    /// True if the leases that were granted are kept when another one is denied. Never: all or nothing.
    fn keeps_part(&self) -> bool {
        false
    }

    /// True if the contender begins again after it lost a lease while it waited for a later one: until the limit of
    /// its wait.
    fn begins_again(&self, patience: Patience, now: Instant) -> bool {
        match patience {
            Patience::Once => false,
            Patience::Until(limit) => now < limit,
            Patience::Forever => true,
        }
    }

    /// True if the belief in the set ends with the first lease that is lost. Always: the others alone permit nothing.
    fn ends_with_first(&self) -> bool {
        true
    }

    /// True if the other leases are released after the first one is lost. Always: no work runs under them.
    fn releases_others(&self) -> bool {
        true
    }
}

impl SetRules for Standard {}
