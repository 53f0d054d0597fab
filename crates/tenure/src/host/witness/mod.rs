//! The witness: a lock in the local kernel that is held as long as anybody acts under a term.
//!
//! Process ids lie: they are reused, shifted by namespaces and hidden. What the kernel has locked it gives back when the
//! last one who holds it is gone, and not before. So whoever wants a lease first makes a [`Lock`]: a small file under a
//! random name that is never used again, locked, and named in its record. A contender who finds that very file,
//! unlocked, with the nonce of the record listed in it, knows that nobody acts under the record any more. Anything else,
//! and any error, tells it nothing.
//!
//! ```text
//!   holder                                       contender
//!   create, lock, list the nonce, send it        read the record, look: same file? locked? nonce listed?
//!   …                                            watch the file
//!   dies: the kernel unlocks it           ────▶  look again: nobody acts, replace the record
//! ```
//!
//! The lock has two parts ([`WitnessPart`]). A holder locks *guards*, and a child that acts for it *tree*: after the ttl, *tree*
//! alone tells a contender that the work of the former term goes on.
//!
//! `docs/concepts/witness.md` says what it proves, and what it does not.

mod folder;
mod location;
mod lock;
mod lock_mapping;
mod machine_dirs;
mod name;
mod nonce_ring;
mod ofd;
mod part;
mod survivors;
mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use location::WitnessLocation;
pub(crate) use lock::Lock;
pub(crate) use name::is_name;
pub use part::WitnessPart;
pub use survivors::{Survivor, Survivors};
pub(crate) use sweep::remove_if_dead;
