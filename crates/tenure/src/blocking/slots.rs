use std::time::Duration;

use tenure_core::{Holder, Timing};

use super::{Slot, block_on};
use crate::{Error, HeldSlot};

/// A request for any slot of a group, for a blocking thread: see [`tenure::Slots`](crate::Slots).
///
/// ```
/// use tenure::blocking::Coordinator;
/// use tenure::store::Memory;
/// use tenure::{ErrorKind, GroupFull};
///
/// # fn main() -> Result<(), tenure::Error> {
/// let coordinator = Coordinator::connect(Memory::new())?;
/// let first = coordinator.slots("indexers", 2)?.acquire()?; // blocks until a slot is free
/// let second = coordinator.slots("indexers", 2)?.acquire()?;
/// println!("slot {} has token {}", first.index(), first.token());
///
/// let full = coordinator.slots("indexers", 2)?.try_acquire().unwrap_err();
/// assert_eq!(full.kind(), ErrorKind::Held);
/// assert_eq!(GroupFull::of(&full).unwrap().holders.len(), 2);
///
/// first.check()?; // at the top of every step
/// first.release()?;
/// second.release()
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until acquire() or try_acquire() is called"]
pub struct Slots(pub(super) crate::Slots);

impl Slots {
    same! { choices of Slots:
        ttl(ttl: Duration);
        timing(timing: Timing);
        holder(holder: Holder);
        value(value: &str);
        wait(limit: Duration);
        strict();
        manual();
        without_witness();
        heed_tree(limit: Option<Duration>);
    }

    /// Blocks until a slot is granted, at most as long as [`wait`](Self::wait) allows: see
    /// [`Slots::acquire`](crate::Slots::acquire).
    ///
    /// Nothing interrupts the thread. A program that must be able to exit sets a limit, and tries again.
    #[track_caller]
    pub fn acquire(self) -> Result<Slot, Error> {
        block_on(self.0.acquire()).map(Slot::new)
    }

    /// Tries once: a slot, or an error of kind [`Held`](crate::ErrorKind::Held) that names the holders.
    /// [`GroupFull::of`](crate::GroupFull::of) lists them.
    #[track_caller]
    pub fn try_acquire(self) -> Result<Slot, Error> {
        block_on(self.0.try_acquire()).map(Slot::new)
    }

    /// Sets the number of slots of the group: see [`Slots::resize`](crate::Slots::resize).
    #[track_caller]
    pub fn resize(&mut self, slots: u32) -> Result<u16, Error> {
        block_on(self.0.resize(slots))
    }

    same! { waits of Slots:
        size() -> Result<Option<u16>, Error>;
        holders() -> Result<Vec<HeldSlot>, Error>;
    }
}
