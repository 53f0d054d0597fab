//! Users of elections.

use std::time::Duration;

use futures_util::future::{Either, select};
use tenure::Coordinator;
use tenure::clock::Clock;

use super::waiting::Waiting;
use super::{User, give_up};
use crate::driver::Reached;
use crate::driver::bounded::bounded;
use crate::driver::world::world;
use crate::time::SECOND;

impl User {
    pub(super) async fn campaign(&self, coordinator: &Coordinator) {
        let key = self.key();
        let ttl = world().draw(|rng| rng.pick(&world().plan.ttls));
        let Ok(election) = coordinator.election(key.as_str()) else { return };
        let Ok(mut campaign) = election.ttl(Duration::from_nanos(ttl)).campaign() else { return };
        let waiting = Waiting::new(self.process, &key);
        let limit = self.clock.sleep_until(self.clock.read() + Duration::from_nanos(3 * ttl));
        let next = Box::pin(self.maybe_dropped("campaign", campaign.next()));
        let Either::Left((Some(Ok(term)), _)) = select(next, limit).await else {
            return;
        };
        world().reach(Reached::Term);
        let owned = self.own(term.lease());
        drop(waiting);
        self.sleep(world().draw(|rng| rng.skewed(0, ttl))).await;
        if world().chance(500) {
            give_up(&owned.0);
            let resign = bounded(self.process, "resign", 2 * ttl + 6 * SECOND, term.resign());
            self.maybe_dropped("resign", resign).await.map(drop).unwrap_or_default();
        }
        drop(term);
        drop(campaign);
        drop(owned);
    }
}
