//! The content of a key: the record, version 1.
//!
//! `docs/rfcs/0001-record-format.md` freezes the format. A conditional write always replaces the complete record, and a
//! record that is not fully understood is never replaced.

#[doc(inline)]
pub use tenure_core::record::{
    Closure, End, Foreign, Kind, LastSuccess, Nonce, Past, RECORD_MAX, Record, Revocation, State,
    TermProcess, Ttl, Unstoppable, Witness, decode, encode,
};
