//! The contract between Tenure and a store: one read and one atomic conditional write on one key.
//!
//! This crate is deliberately tiny and almost never changes: a store depends on it and on nothing else of Tenure.
//!
//! The contract has **no unconditional write, no delete and no expiry**: a record is kept forever, because it carries
//! the token that must never go back. A write without confirmation is one of three types: [`Refused`] (certainly no
//! effect), [`Unknown`] (it may have happened, or may still happen) and [`Throttled`] (come back later). No store may
//! turn the second into one of the others.
//!
//! An operator may remove old records, if tokens keep growing without them. That is not part of the contract, and has
//! its own small trait: [`Administration`]. Programs that test a store clean up with [`Scratch::sweep`], which removes
//! nothing that a lease depends on.
//!
//! # Write a store
//!
//! Implement [`Store`], declare its [`Guarantees`], and run the public suite in `tenure-conformance` against it. The
//! default guarantees nothing, so a forgotten declaration is an error and not an assumption.
//!
//! ```
//! use tenure_store::{Guarantees, Key, Reach};
//!
//! // A forgotten declaration guarantees nothing, and Tenure grants nothing on such a store.
//! assert_eq!(Guarantees::default().reach, Reach::Nothing);
//! assert!(Guarantees::default().missing_for_leases().contains(&"atomic create"));
//!
//! // Hostile names do not become keys.
//! assert!(Key::parse("billing/nightly").is_ok());
//! assert!(Key::parse("../etc/passwd").is_err());
//! ```

mod administration;
mod answer;
mod error;
mod expect;
mod guarantees;
mod identity;
mod key;
mod listed;
mod open_error;
mod prefix;
mod purpose;
mod quarantine;
mod reading;
mod scratch;
mod store;
mod time;
mod token;
mod version;
mod write;

pub use administration::{Administration, Removal};
pub use answer::{Applied, Conflict, Put};
pub use error::{BoxError, Reason, Refused, StoreError, Throttled, Unknown};
pub use expect::Expect;
pub use guarantees::{Guarantees, Reach, StoreClock};
pub use identity::Identity;
pub use key::{Key, KeyError};
pub use listed::{Listed, Stamp};
pub use open_error::OpenError;
pub use prefix::Prefix;
pub use purpose::Purpose;
pub use quarantine::{Admission, Quarantine, QuarantineRules, RunMarks, RunSighting, StandardQuarantine};
pub use reading::{Entry, Reading};
pub use scratch::Scratch;
pub use store::{BoxFuture, BoxStream, Store, StoreFuture};
pub use time::StoreTime;
pub use token::{Token, TokenError};
pub use version::Version;
pub use write::Write;
