//! Users of elections.

use std::time::Duration;

use futures_util::FutureExt;
use tenure::{Campaign, Coordinator, Election, Error, Term};

use super::waiting::Waiting;
use super::{User, give_up};
use crate::driver::world::world;
use crate::driver::{PublicFuture, Reached};
use crate::time::SECOND;

impl User {
    pub(super) async fn elect(&self, coordinator: &Coordinator) {
        let key = self.key();
        let ttl = self.ttl();
        let Ok(election) = coordinator.election(key.as_str()) else { return };
        let election = election.ttl(Duration::from_nanos(ttl));
        let Ok(mut campaign) = election.campaign() else { return };
        let waiting = Waiting::new(self.process, &key);
        match world().draw(|rng| rng.below(4)) {
            0 => return self.observe_leaders(&election, ttl).await,
            1 => {
                drop(campaign);
                return self.lead(&election, waiting, ttl).await;
            }
            _ => {}
        }
        let next = self.maybe_dropped(PublicFuture::Campaign, campaign.next());
        let Some(Some(Ok(term))) = self.within(3 * ttl, next).await else { return };
        world().reach(Reached::Term);
        let owned = self.own(term.lease());
        drop(waiting);
        self.reign(&election, campaign, ttl).await;
        match world().draw(|rng| rng.below(3)) {
            0 => {
                give_up(&owned.0);
                let _ = self.call(PublicFuture::Resign, 2 * ttl + 6 * SECOND, term.resign()).await;
            }
            1 => {
                give_up(&owned.0);
                let _ =
                    self.call(PublicFuture::ResignElection, 2 * ttl + 6 * SECOND, election.resign()).await;
            }
            _ => {}
        }
        drop(term);
        drop(owned);
    }

    /// The leader works for a while.
    async fn reign(&self, election: &Election, campaign: Campaign, ttl: u64) {
        let span = world().draw(|rng| rng.skewed(0, ttl));
        let work = election.run_if_leader(self.sleep(span));
        let _ = self.maybe_dropped(PublicFuture::RunIfLeader, work).await;
        drop(campaign);
    }

    async fn observe_leaders(&self, election: &Election, ttl: u64) {
        let Ok(mut leaders) = election.observe() else { return };
        let follow = async {
            loop {
                if let Some(Err(_)) = self.maybe_dropped(PublicFuture::Leaders, leaders.next()).await {
                    return;
                }
                world().reach(Reached::LeaderSeen);
            }
        };
        self.within(2 * ttl, follow).await;
    }

    /// Leads again and again for a while.
    async fn lead(&self, election: &Election, waiting: Waiting, ttl: u64) {
        let span = world().draw(|rng| rng.skewed(0, 3 * ttl));
        let work = async |term: Term| {
            let owned = self.own(term.lease());
            let span = world().draw(|rng| rng.skewed(0, ttl));
            self.sleep(span).await;
            give_up(&owned.0);
            Ok::<_, Error>(())
        };
        let run = election.run(self.sleep(span), work);
        let _ = self.maybe_dropped(PublicFuture::RunElection, run.boxed_local()).await;
        drop(waiting);
    }
}
