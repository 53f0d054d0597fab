//! Leases on top of the contract, clause by clause: one file each.
//!
//! The library itself takes them, as a user would. The checks verify that this store supports leases: that the promises
//! of the contract are sufficient in the situations for which leases exist.

mod answers;
mod connect;
mod expiry;
mod foreign;
mod owner;
mod pauses;
mod recovery;
mod release;
mod renewal;
mod tokens;

use crate::check::Clause;

/// The clauses in the order of the report. Each check has separate keys, and checks may run at the same time.
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

/// The checks that act on the complete store, and would disturb others: they lose the next write over any connection,
/// and restore or restart the store. The latter come last, because connections may not survive them.
pub(crate) const WHOLE_STORE: &[Clause] = &[answers::CLAUSE, recovery::CLAUSE];
