//! The witness: a lock in the local kernel, held as long as a process acts under a term.
//!
//! Process ids are unreliable: they are reused, shifted by namespaces, and hidden. The kernel releases a lock when its
//! last owner is gone, and not before. So a contender first creates a [`Lock`]: a small locked file under a random name
//! that is never used again, which its record then names. If another contender finds that file unlocked, with the nonce
//! of the record listed in it, no process acts under the record any more. Any other finding, and any error, proves
//! nothing.
//!
//! ```text
//!   holder                                       contender
//!   create, lock, list the nonce, send it        read the record, check: same file? locked? nonce listed?
//!   …                                            watch the file
//!   dies: the kernel unlocks it           ────▶  check again: no process acts, replace the record
//! ```
//!
//! The lock has two parts ([`WitnessPart`]). A holder locks *guards*, and a child that does the work locks *tree*.
//! After the ttl, *tree* alone tells a contender that the work of the former term still runs.
//!
//! `docs/concepts/witness.md` says what a witness proves, and what it does not.

mod directory;
pub(crate) mod files;
mod location;
mod lock;
mod lock_mapping;
pub(crate) mod locked_file;
mod machine_dirs;
mod mapped_file;
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
