//! Leases on top of the contract, clause by clause: one file each.
//!
//! They are taken by the library itself, as a user would. What is checked is that this store carries them: that what
//! the contract promises is enough in the situations for which leases exist.

mod answers;
mod connect;
mod expiry;
mod foreign;
mod owner;
mod pauses;
mod process;
mod recovery;
mod release;
mod renewal;
mod tokens;
mod wire;
mod world;

use crate::check::Clause;

/// In the order in which they are reported. Each check has keys of its own, and they may be made at the same time.
pub(crate) const CLAUSES: &[Clause] = &[
    connect::CLAUSE,
    owner::CLAUSE,
    renewal::CLAUSE,
    expiry::CLAUSE,
    release::CLAUSE,
    pauses::CLAUSE,
    foreign::CLAUSE,
    tokens::CLAUSE,
];

/// The checks that act on the whole store, and would disturb others: the next write over whichever connection is lost, the
/// store is restored or restarted. The latter come last, because connections may not survive them.
pub(crate) const WHOLE_STORE: &[Clause] = &[answers::CLAUSE, recovery::CLAUSE];
