use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::Patience;
use tenure_core::slots::{GroupSize, SlotParams};
use tenure_core::{Holder, Timing};
use tenure_store::{Key, Prefix, Reach};
use tokio_util::sync::CancellationToken;

use super::seeker::SlotSeeker;
use super::size_key::SizeKey;
use super::{HeldSlot, Slot, SlotGroup};
use crate::Error;
use crate::keeper::Connection;
use crate::keys::Keys;
use crate::lease::Request;
use crate::observe::Observers;

/// A request for any slot of a group: at most `n` holders at a time, each with a lease of its own.
///
/// The number of slots is stored with the group by its first contender. A contender with another number fails, and the
/// error has both numbers. [`resize`](Self::resize) changes it.
///
/// ```
/// use tenure::store::Memory;
/// use tenure::{Coordinator, ErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tenure::Error> {
/// let coordinator = Coordinator::connect(Memory::new()).await?;
/// let first = coordinator.slots("indexers", 2)?.acquire().await?;
/// let second = coordinator.slots("indexers", 2)?.acquire().await?;
/// assert_ne!(first.index(), second.index());
///
/// let full = coordinator.slots("indexers", 2)?.try_acquire().await.unwrap_err();
/// assert_eq!(full.kind(), ErrorKind::Held);
///
/// first.run(async { /* work on half of the documents */ }).await?;
/// first.release().await?;
/// let third = coordinator.slots("indexers", 2)?.try_acquire().await?;
/// assert_eq!(third.index(), first.index());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until acquire() or try_acquire() is awaited"]
pub struct Slots {
    group: Key,
    size: GroupSize,
    /// The request for the lease of a slot.
    request: Request,
    observers: Arc<Observers>,
    /// Where the size is.
    keys: Keys,
}

impl Slots {
    pub(crate) fn new(
        connection: Connection,
        observers: Arc<Observers>,
        keys: Keys,
        group: Key,
        slots: u32,
    ) -> Result<Self, Error> {
        let size = GroupSize::new(slots)?;
        let request = Request::new(connection, Key::group_slot(&group, 0)?);
        Ok(Self { group, size, request, observers, keys })
    }

    /// Sets the ttl of the slot, with the default timing for it.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with(|request| request.ttl(ttl))
    }

    /// Sets all durations.
    pub fn timing(self, timing: Timing) -> Self {
        self.with(|request| request.timing(timing))
    }

    /// Sets the holder, instead of the coordinator's default. The name is informational.
    pub fn holder(self, holder: Holder) -> Self {
        self.with(|request| request.holder(holder))
    }

    /// A small value to write with the grant, which other processes can read. It stays in the record of the slot after
    /// the release.
    pub fn value(self, value: &str) -> Self {
        self.with(|request| request.value(value))
    }

    /// Sets the longest wait of [`acquire`](Self::acquire). Default: unlimited.
    pub fn wait(self, limit: Duration) -> Self {
        self.with(|request| request.wait(limit))
    }

    /// Ends the lease of the slot at the first failed renewal, instead of at the deadline.
    pub fn strict(self) -> Self {
        self.with(Request::strict)
    }

    /// Disables automatic renewal: only [`Lease::renew`](crate::Lease::renew) renews.
    pub fn manual(self) -> Self {
        self.with(Request::manual)
    }

    /// Disables the witness: the slot is meant to outlive this process, and runs out by its ttl alone.
    pub fn without_witness(self) -> Self {
        self.with(Request::without_witness)
    }

    /// Heeds the tree, as [`Request::heed_tree`] does: a slot whose former work still runs on this machine is not taken.
    pub fn heed_tree(self, limit: Option<Duration>) -> Self {
        self.with(|request| request.heed_tree(limit))
    }

    fn with(self, step: impl FnOnce(Request) -> Request) -> Self {
        Self { request: step(self.request), ..self }
    }

    /// Waits until a slot is granted, at most as long as [`wait`](Self::wait) allows. If the group is full until
    /// then, the error is that of [`try_acquire`](Self::try_acquire).
    ///
    /// On arrival, a contender reads each slot at most once. In a full group it then makes at most four calls per ttl,
    /// whatever the number of slots. A released slot is found at once where the store gives hints. Where its listings show
    /// stamps, as in a bucket, a slot of a group of at least four is found by the next listing, within 0.4 ttl, or
    /// within 1.3 ttl while other slots change hands often. Elsewhere it takes a quarter of a ttl for each slot and two
    /// more, plus a tenth. A contender waits for a group of one slot as for a lease.
    ///
    /// Cancel-safe: dropping the future leaves at worst one unused grant, which the keeper vacates, or which lapses
    /// after one ttl.
    pub async fn acquire(self) -> Result<Slot, Error> {
        let patience = self.request.patience();
        self.acquire_within(patience).await
    }

    /// Tries once: a slot, or an error of kind [`Held`](crate::ErrorKind::Held) that names the holders.
    /// [`GroupFull::of`](crate::GroupFull::of) lists them.
    ///
    /// Cancel-safe, as [`acquire`](Self::acquire) is.
    pub async fn try_acquire(self) -> Result<Slot, Error> {
        self.acquire_within(Patience::Once).await
    }

    /// The number of slots that the group has stored; `None` if no contender ever wanted one.
    pub async fn size(&self) -> Result<Option<u16>, Error> {
        self.slot_group()?.size().await
    }

    /// Sets the number of slots of the group, as [`SlotGroup::resize`] does. This request then has that number, too.
    pub async fn resize(&mut self, slots: u32) -> Result<u16, Error> {
        let former = self.slot_group()?.resize(slots).await?;
        self.size = GroupSize::new(slots)?;
        Ok(former)
    }

    /// The held slots, by index, as [`SlotGroup::holders`] lists them.
    pub async fn holders(&self) -> Result<Vec<HeldSlot>, Error> {
        self.slot_group()?.holders().await
    }

    fn slot_group(&self) -> Result<SlotGroup, Error> {
        let connection = self.request.connection().clone();
        SlotGroup::new(connection, Arc::clone(&self.observers), self.keys.clone(), self.group.clone())
    }

    async fn acquire_within(self, patience: Patience) -> Result<Slot, Error> {
        let connection = self.request.connection().clone();
        let timing = self.request.parse(patience)?.timing;
        let hint_pause = match connection.guarantees.reach {
            Reach::Process | Reach::Machine => Duration::ZERO,
            // A read may cost a call on a network.
            _ => timing.retry(),
        };
        let watches = connection.guarantees.watch;
        let size_key = SizeKey::new(self.keys, &connection, &self.group)?;
        let cancelled = CancellationToken::new();
        let _cancels = cancelled.clone().drop_guard();
        connection
            .visit(move |store| {
                Box::pin(async move {
                    let group = Prefix::of_group(&self.group)?;
                    let stamps = !watches && store.list_stamped(&group).is_some();
                    let params = SlotParams { size: self.size, timing, patience, hint_pause, stamps };
                    let seeker =
                        SlotSeeker::new(store, self.group, self.request, self.observers, size_key, params)?;
                    seeker.run(cancelled).await
                })
            })
            .await
    }
}
