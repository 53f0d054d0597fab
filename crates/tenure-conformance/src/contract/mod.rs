//! The contract of `tenure-store`, clause by clause: one file each.

mod clock;
mod create;
mod guarantees;
mod keeps;
mod keys;
mod list;
mod races;
mod reads;
mod referee;
mod removal;
mod replace;
mod unknown;
mod values;
mod versions;
mod watch;

use crate::check::Clause;

/// The clauses in the order of their checks: later ones depend on earlier ones. The restart comes last, because
/// connections may not survive it.
pub(crate) const CLAUSES: &[Clause] = &[
    guarantees::CLAUSE,
    create::CLAUSE,
    replace::CLAUSE,
    reads::CLAUSE,
    values::CLAUSE,
    keys::CLAUSE,
    versions::CLAUSE,
    races::CLAUSE,
    unknown::CLAUSE,
    list::CLAUSE,
    watch::CLAUSE,
    clock::CLAUSE,
    clock::AGES,
    removal::CLAUSE,
    keeps::CLAUSE,
];
