//! The record as bytes: format version 1, frozen in `docs/rfcs/0001-record-format.md`.
//!
//! Reading is strict, because whoever reads a record may soon replace it: what is not understood completely is
//! [`Foreign`], and nothing is ever written over it. Writing is canonical: one record has exactly one text.
//!
//! The limits fit together. A record that keeps each of them fits into [`RECORD_MAX`] even when every character has to
//! be escaped, so [`encode`] cannot fail on what [`decode`] accepted: whatever an earlier writer left in the unknown
//! fields, a holder can always renew and let go.

mod decode;
mod encode;
mod field;
mod foreign;
mod object;
mod rules;
#[cfg(test)]
mod tests;
mod time;
mod writer;

pub use decode::decode;
pub use encode::{encode, try_encode};
pub use foreign::Foreign;
pub use rules::check;

/// The format version that is written, and the only one that is read.
const FORMAT: u64 = 1;

/// The largest record, in bytes. Anything longer is not even parsed.
///
/// It is the sum of all the other limits with every character escaped, rounded up, and not a budget that they share.
pub const RECORD_MAX: usize = 64 * 1024;

/// The most room that fields of later versions may take together, in bytes of JSON.
const UNKNOWN_MAX: usize = 8 * 1024;

/// The largest number of fields of later versions.
const UNKNOWN_FIELDS_MAX: usize = 64;

/// The longest name and boot id of a witness, in bytes.
const WITNESS_TEXT_MAX: usize = 64;

/// The largest whole number: what JSON readers in every language hold exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The names that version 1 gives a meaning to. No unknown field can have one of them.
const KNOWN: [&str; 20] = [
    "tenure",
    "crit",
    "state",
    "reserved",
    "revoked",
    "closed",
    "kept_by",
    "term",
    "token",
    "ttl_ms",
    "nonce",
    "sequence",
    "witness",
    "secret_sha256",
    "holder",
    "value",
    "history",
    "granted_at",
    "written_at",
    "unstoppable",
];
