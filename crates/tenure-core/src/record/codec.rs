//! The record as bytes: format version 1, frozen in `docs/rfcs/0001-record-format.md`.
//!
//! Reading is strict, because the reader of a record may replace it next. Bytes that this version does not completely
//! understand are [`Foreign`], and are never overwritten. Writing is canonical: one record has exactly one text.
//!
//! The limits fit together. A record within each limit fits into [`RECORD_MAX`] even if every character must be
//! escaped, so [`encode`] cannot fail on a record that [`decode`] accepted. Whatever an earlier writer left in the
//! unknown fields, a holder can always renew and release.

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

use super::Ttl;

pub use decode::decode;
pub use encode::{encode, try_encode};
pub use foreign::Foreign;
pub use rules::check;

/// The format version of every record that this version writes, and the only one that it reads.
const FORMAT: u64 = 1;

/// Maximum size of a record, in bytes. Longer input is not parsed.
///
/// It is the sum of all the other limits with every character escaped, rounded up. The fields do not share it as a
/// budget.
pub const RECORD_MAX: usize = 64 * 1024;

/// Maximum size of all fields of later versions together, in bytes of JSON.
const UNKNOWN_MAX: usize = 8 * 1024;

/// Maximum number of fields of later versions.
const UNKNOWN_FIELDS_MAX: usize = 64;

/// Maximum length of the name and of the boot id of a witness, in bytes.
const WITNESS_TEXT_MAX: usize = 64;

/// Longest time between two renewals, in milliseconds: the longest ttl.
const RENEWS_MAX: u64 = Ttl::MAX.as_millis();

/// The largest whole number that JSON readers in every language hold exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The field names that have a meaning in version 1. No unknown field can have one of them.
const KNOWN: [&str; 22] = [
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
    "last_success",
    "process",
];
