//! Plain keys: a small value under a key, with a revision, an owner and an optional ttl.
//!
//! A [`KeyMachine`] is one operation on one key, without I/O, clock or randomness. It takes the same [`Input`]s and
//! [`Ambient`] world as the machine of a lease, requests reads and writes by the same [`Effect`]s, and returns one
//! [`KeyAnswer`] when it is done. The decisions that only plain keys have are in [`KeyRules`]; floors, tokens, nonces and
//! proofs are those of [`Rules`](crate::machine::Rules). `docs/rfcs/0009-plain-keys.md` has the reasons.
//!
//! A change of an entry is a grant: it replaces a version that was seen, with a new term, and its token is the entry's
//! revision. A missing record is planted first.

mod key_answer;
mod key_denied;
mod key_machine;
mod key_params;
mod key_rules;
mod outstanding;
mod seen_entry;
#[cfg(test)]
mod tests;
mod writes;

pub use key_answer::KeyAnswer;
pub use key_denied::KeyDenied;
pub use key_machine::KeyMachine;
pub use key_params::{KeyOperation, KeyOwner, KeyParams};
pub use key_rules::KeyRules;
pub use seen_entry::SeenEntry;

#[cfg(doc)]
use crate::machine::{Ambient, Effect, Input};
