//! Groups of slots: at most `n` holders at a time, each with a lease of its own.
//!
//! The decisions are those of [`SlotMachine`](tenure_core::slots::SlotMachine). This module turns its effects into
//! calls. A slot is an ordinary lease, which the keeper keeps. The size of the group is a plain key.

mod group_full;
mod held_slot;
mod outlived_slots;
mod request;
mod seeker;
mod size_key;
mod slot;
mod slot_group;
mod slot_hints;

pub use group_full::GroupFull;
pub use held_slot::HeldSlot;
pub use request::Slots;
pub use slot::Slot;
pub use slot_group::SlotGroup;
