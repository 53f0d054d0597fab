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
mod release;
mod renewal;
mod tokens;
mod wire;
mod world;

use crate::check::Clause;

/// In the order in which they are checked: the restore of a backup and the restart come last, because connections may
/// not survive them.
pub(crate) const CLAUSES: &[Clause] = &[
    connect::CLAUSE,
    owner::CLAUSE,
    renewal::CLAUSE,
    expiry::CLAUSE,
    release::CLAUSE,
    pauses::CLAUSE,
    answers::CLAUSE,
    foreign::CLAUSE,
    tokens::CLAUSE,
];
