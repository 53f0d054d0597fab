//! A group of slots: at most `n` holders, each with a lease of its own.
//!
//! A [`SlotMachine`] is one contender for any slot of a group, as pure code: inputs in, effects out. It decides which
//! slot is tried, read or waited for. Each slot is an ordinary lease, which a [`Machine`](crate::machine::Machine)
//! acquires and keeps. The size of the group is a plain key.
//!
//! ```text
//!            size agrees        a slot is free        granted              size still agrees
//!   Sizing ─────────────▶ Seeking ─────────▶ Trying ─────────▶ Proving ──────────────────────▶ Holding
//!     │                   ▲  │  ▲   denied     │                  │  another size
//!     │ another size      │  │  └──────────────┘                  ▼
//!     └──────────▶ Ended ◀┘  └─ full: reads and             release, Ended
//!                               listings, at most
//!                               four per ttl
//! ```
//!
//! The decisions are in [`SlotRules`], one named function each.

mod allowance;
mod effect;
mod group_listing;
mod group_size;
mod input;
mod machine;
mod memory;
mod params;
mod rules;
mod stamped;

pub use effect::{SlotEffect, SlotEvent, SlotHolder};
pub use group_listing::GroupListing;
pub use group_size::GroupSize;
pub use input::{SizeAnswer, SlotInput, SlotSight};
pub use machine::SlotMachine;
pub use memory::SlotMemory;
pub use params::SlotParams;
pub use rules::{SlotRules, Suspicion};
pub use stamped::Stamped;
