//! Users that only look.

use std::time::Duration;

use futures_util::StreamExt;
use tenure::{Coordinator, WatchEvent};
use tenure_store::Prefix;

use super::User;
use crate::Invariant;
use crate::driver::world::world;
use crate::driver::{PublicFuture, Reached};
use crate::time::SECOND;

impl User {
    pub(super) async fn observe(&self, id: u64, coordinator: &Coordinator) {
        let key = self.key();
        let before = world().oracle.borrow().shown.get(&(id, key.clone())).copied().unwrap_or_default();
        let everything = Prefix::default();
        match world().draw(|rng| rng.below(6)) {
            0 => {
                let all = coordinator.observe_all(&everything);
                self.within(20 * SECOND, self.maybe_dropped(PublicFuture::ObserveAll, all)).await;
            }
            1 => {
                let holders = coordinator.holders(&everything);
                self.within(20 * SECOND, self.maybe_dropped(PublicFuture::Holders, holders)).await;
            }
            _ => {}
        }
        let observe = coordinator.observe(key.as_str());
        let Some(Ok(seen)) = self.call(PublicFuture::Observe, 20 * SECOND, observe).await else { return };
        let Some(record) = seen.record else { return };
        let world = world();
        world.reach(Reached::Observed);
        let token = record.token.get();
        if token < before && !world.plan.lies {
            let sentence = format!("process {} saw token {token} of {key} after {before}", self.process);
            world.violate(Invariant::S8, sentence);
        }
        let mut oracle = world.oracle.borrow_mut();
        let shown = oracle.shown.entry((id, key)).or_default();
        *shown = (*shown).max(token);
    }

    pub(super) async fn watch(&self, coordinator: &Coordinator) {
        let key = self.key();
        let mut watch = coordinator.watch(&Prefix::of(&key));
        let ends = self.clock.read() + Duration::from_nanos(2 * self.ttl_most());
        let mut highest = 0;
        loop {
            let left = ends.since(self.clock.read()).as_nanos() as u64;
            let next = self.within(left, self.maybe_dropped(PublicFuture::Watch, watch.next())).await;
            let event = match next {
                Some(Some(Some(event))) => event,
                // The next call gets the event of one that was dropped.
                Some(None) => continue,
                Some(Some(None)) | None => return,
            };
            let WatchEvent::Changed(change) = event else { continue };
            let token = change.token.map_or(0, |token| token.get());
            let world = world();
            world.reach(Reached::Watched);
            if token < highest && !world.plan.lies {
                let sentence = format!(
                    "the watch of process {} went from token {highest} of {key} to {token}",
                    self.process
                );
                return world.violate(Invariant::S8, sentence);
            }
            highest = highest.max(token);
        }
    }
}
