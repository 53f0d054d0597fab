//! Users of groups of slots.

use std::time::Duration;

use tenure::{Coordinator, ErrorKind, SlotGroup};
use tenure_store::Key;

use super::User;
use super::waiting::Waiting;
use crate::driver::oracle::SlotWaiter;
use crate::driver::world::world;
use crate::driver::{PublicFuture, Reached};
use crate::time::SECOND;

impl User {
    pub(super) async fn slot(&self, id: u64, coordinator: &Coordinator) {
        let (group, slots) = (world().plan.group.clone(), world().plan.slots);
        let Ok(slot_group) = coordinator.slot_group(group.as_str()) else { return };
        self.administer(&slot_group).await;
        let size = match self.maybe_dropped(PublicFuture::GroupSize, slot_group.size()).await {
            Some(Ok(Some(size))) => size,
            _ => slots,
        };
        // Some programs have another number in their configuration.
        let size = if world().chance(100) { size + 1 } else { size };
        let ttl = self.ttl();
        let wait = world().draw(|rng| rng.pick(&[0, ttl, 3 * ttl]));
        let Ok(request) = coordinator.slots(group.as_str(), size.into()) else { return };
        let request = request.ttl(Duration::from_nanos(ttl)).wait(Duration::from_nanos(wait));
        let keys = (0..size).filter_map(|index| Key::group_slot(&group, index).ok());
        let waiting: Vec<_> = keys.map(|key| Waiting::new(self.process, &key)).collect();
        let began = world().now.get();
        let limit = wait + 4 * ttl + 40 * SECOND;
        let acquired = if wait == 0 {
            self.call(PublicFuture::TryAcquireSlot, limit, request.try_acquire()).await
        } else {
            let _waiter = SlotWaiter::new(&group, size);
            self.call(PublicFuture::AcquireSlot, limit, request.acquire()).await
        };
        let slot = match acquired {
            Some(Ok(slot)) => slot,
            Some(Err(error)) => {
                match error.kind() {
                    ErrorKind::Invalid => world().reach(Reached::SizeRefused),
                    ErrorKind::Held => world().reach(Reached::GroupFull),
                    _ => {}
                }
                return self.note(12, format_args!("is not granted a slot of {group}: {error}"));
            }
            None => return self.note(13, format_args!("drops its acquire of a slot of {group}")),
        };
        world().reach(Reached::Slot);
        let owned = self.own(&slot);
        world().judge_slot(&owned.0, size, began);
        world().judge_granted(self.process, id, &owned.0);
        drop(waiting);
        self.use_lease(id, coordinator, slot.into_lease(), owned, ttl).await;
    }

    /// Sometimes looks at the group, or resizes it.
    async fn administer(&self, group: &SlotGroup) {
        match world().draw(|rng| rng.below(20)) {
            0 => {
                let slots = world().draw(|rng| rng.between(1, 3)) as u32;
                let resized = self.maybe_dropped(PublicFuture::GroupResize, group.resize(slots)).await;
                if let Some(Ok(_)) = resized {
                    world().reach(Reached::Resized);
                }
            }
            1 => {
                let holders = self.maybe_dropped(PublicFuture::GroupHolders, group.holders());
                self.within(20 * SECOND, holders).await;
            }
            _ => {}
        }
    }
}
