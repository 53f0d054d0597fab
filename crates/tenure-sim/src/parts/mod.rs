//! Parts of both worlds: the agenda, clocks, the network and the store.

mod agenda;
mod clock;
mod life;
mod passage;
mod slab;
mod store;
mod timer;

pub(crate) use agenda::Agenda;
pub(crate) use clock::Clock;
pub(crate) use life::Life;
pub(crate) use passage::{Cut, Departure, Link, Passage};
pub(crate) use slab::Slab;
pub(crate) use store::Store;
pub(crate) use timer::{Timer, TimerEntry};
