use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use tenure_core::record::Record;
use tenure_core::slots::GroupSize;
use tenure_store::{Key, Prefix};

use super::HeldSlot;
use super::size_key::SizeKey;
use crate::Error;
use crate::keeper::Connection;
use crate::keys::Keys;
use crate::observe::{Observers, slot_keys};

/// A group of slots, without a contender: its size and its holders.
#[derive(Clone, Debug)]
pub struct SlotGroup {
    connection: Connection,
    observers: Arc<Observers>,
    group: Key,
    size: SizeKey,
}

impl SlotGroup {
    pub(crate) fn new(
        connection: Connection,
        observers: Arc<Observers>,
        keys: Keys,
        group: Key,
    ) -> Result<Self, Error> {
        let size = SizeKey::new(keys, &connection, &group)?;
        Ok(Self { connection, observers, group, size })
    }

    /// The name of the group.
    pub fn name(&self) -> &Key {
        &self.group
    }

    /// The number of slots; `None` if no contender ever wanted one.
    pub async fn size(&self) -> Result<Option<u16>, Error> {
        Ok(self.size.read().await?.map(GroupSize::get))
    }

    /// Sets the number of slots of a group, and returns the former one. Contenders that expect another number are
    /// refused from then on.
    ///
    /// A shrink evicts no holder: those of the highest indexes keep their slots until they release them, and no new
    /// holder is granted one. So there may be more holders than slots until then. Fails if the group has no size yet.
    pub async fn resize(&self, slots: u32) -> Result<u16, Error> {
        self.size.replace(GroupSize::new(slots)?).await.map(GroupSize::get)
    }

    /// The held slots, by index. After a shrink, also those beyond the size.
    ///
    /// Costs one listing, and one read for each slot that was ever granted.
    pub async fn holders(&self) -> Result<Vec<HeldSlot>, Error> {
        let (name, prefix) = (self.connection.store.clone(), Prefix::of_group(&self.group)?);
        let (clock, observers) = (Arc::clone(&self.connection.clock), Arc::clone(&self.observers));
        self.connection
            .visit(move |store| {
                Box::pin(async move {
                    let mut keys = slot_keys(&*clock, &*store, &name, &prefix).await?;
                    keys.retain(|key| key.slot_index().is_some());
                    keys.sort_by_key(Key::slot_index);
                    let looks = keys.into_iter().map(|key| {
                        let (store, observers) = (Arc::clone(&store), Arc::clone(&observers));
                        async move { observers.observe(&*store, &key).await }
                    });
                    let seen: Vec<_> = stream::iter(looks).buffered(LOOKS_AT_ONCE).try_collect().await?;
                    observers.flush().await;
                    let held = seen.into_iter().filter_map(|seen| {
                        let remaining = seen.standing.remaining().filter(|_| seen.standing.is_held())?;
                        Some(HeldSlot { index: seen.key.slot_index()?, record: seen.record?, remaining })
                    });
                    Ok(held.collect())
                })
            })
            .await
    }

    /// The record of one slot, held or vacant; `None` if the slot was never granted.
    pub async fn record(&self, index: u16) -> Result<Option<Arc<Record>>, Error> {
        let observed =
            self.observers.observe_one(&self.connection, Key::group_slot(&self.group, index)?).await?;
        observed.into_record(&self.connection.store)
    }

    /// The names of all groups, in order.
    pub(crate) async fn all(connection: &Connection) -> Result<Vec<Key>, Error> {
        let (name, clock) = (connection.store.clone(), Arc::clone(&connection.clock));
        connection
            .visit(move |store| {
                Box::pin(async move {
                    let keys = slot_keys(&*clock, &*store, &name, &Prefix::slots()).await?;
                    let mut groups: Vec<_> = keys.iter().filter_map(Key::group).collect();
                    groups.sort();
                    groups.dedup();
                    Ok(groups)
                })
            })
            .await
    }
}

/// Number of concurrent reads, as in a listing of leases.
const LOOKS_AT_ONCE: usize = 16;
