//! What a key holds: the record, version 1.
//!
//! The format is frozen in `docs/rfcs/0001-record-format.md`. Records are only ever replaced whole, by a conditional
//! write, and a record that is not fully understood is never replaced at all.

#[doc(inline)]
pub use tenure_core::record::{
    Closure, End, Foreign, Nonce, Past, RECORD_MAX, Record, Revocation, State, Ttl, Unstoppable, Witness,
    decode, encode,
};
