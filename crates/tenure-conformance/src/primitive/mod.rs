//! The primitives that the library builds on records and leases, clause by clause: one file each.
//!
//! They are written once, over the contract, so every store has all of them. The checks verify that the promises of this
//! store carry them, in the situations for which each of them exists.

mod doubt;
mod election;
mod entries;
mod revisions;
mod set;
mod slots;

use crate::check::Clause;

/// The clauses in the order of the report; those that wait longest come first. Each check has separate keys, and checks may run at the same time.
pub(crate) const CLAUSES: &[Clause] =
    &[set::CLAUSE, slots::CLAUSE, election::CLAUSE, entries::CLAUSE, revisions::CLAUSE];

/// The checks that lose the next write over any connection, and would disturb others.
pub(crate) const WHOLE_STORE: &[Clause] = &[doubt::CLAUSE];
