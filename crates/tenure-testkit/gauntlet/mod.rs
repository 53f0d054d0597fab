//! Leases under network faults, on any store. The tests of a store include this directory: it needs the library, which the
//! test kit does not depend on.
#![allow(clippy::disallowed_methods, reason = "real servers need real time")]
#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

mod arena;
mod book;
mod ground;
mod healthy;
mod machine;
mod outcome;
mod part;
mod patient;
mod server_faults;
mod tally;

pub(crate) use arena::{Family, Size, gauntlet};
pub(crate) use ground::Ground;
pub(crate) use healthy::{LEASES, healthy_on};
pub(crate) use part::{QUOTA, a_tenth_on, seed};
pub(crate) use server_faults::{none_is_lost_while, one_holds_while};
