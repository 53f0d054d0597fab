//! The contract between Tenure and a store: one read and one atomic conditional write on one key.
//!
//! This crate is tiny on purpose and changes almost never: a store depends on it and on nothing else of Tenure.
//!
//! What is *not* here matters most. There is **no unconditional write, no delete and no expiry**: a record outlives
//! everybody, because it carries the token that must never go back. And the three ways in which a write can fail to
//! be confirmed are three types: [`Refused`] (certainly no effect), [`Unknown`] (it may have happened, or may happen
//! yet) and [`Throttled`] (come back later). No store may turn the second into one of the others.
//!
//! What an operator may remove, years later and only where tokens keep growing all the same, is no part of the contract
//! and has a small trait of its own: [`Administration`]. What tries a store out cleans up by [`Scratch::sweep`], which takes
//! nothing that a lease rests on.
//!
//! # Write a store
//!
//! Implement [`Store`], declare its [`Guarantees`] (the default promises nothing, so a forgotten declaration is
//! refused rather than believed), and run the public suite in `tenure-conformance` against it.
//!
//! ```
//! use tenure_store::{Guarantees, Key, Reach};
//!
//! // A forgotten declaration promises nothing, and such a store is never granted on.
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
mod prefix;
mod reading;
mod scratch;
mod store;
mod time;
mod version;

pub use administration::{Administration, Removal};
pub use answer::{Applied, Conflict, Put};
pub use error::{BoxError, Reason, Refused, StoreError, Throttled, Unknown};
pub use expect::Expect;
pub use guarantees::{Guarantees, Reach, StoreClock};
pub use identity::Identity;
pub use key::{Key, KeyError};
pub use prefix::Prefix;
pub use reading::{Entry, Reading};
pub use scratch::Scratch;
pub use store::{BoxFuture, BoxStream, Store, StoreFuture};
pub use time::StoreTime;
pub use version::Version;
