use std::time::Duration;

use tenure_core::machine::Patience;
use tokio::sync::watch;
use tower_layer::Layer;

use super::{Answering, Failing, LeaderGate, NotLeader};
use crate::election::LeaderView;
use crate::election::leader_watcher::LeaderWatcher;
use crate::election::read_pace::ReadPace;
use crate::{Election, Error};

/// Wraps services in a [`LeaderGate`]. It observes the leader as long as it, or a service that it wrapped, exists.
#[derive(Clone, Debug)]
pub struct LeaderGateLayer<F = Failing> {
    pub(super) election: Election,
    view: watch::Receiver<LeaderView>,
    max_age: Duration,
    pub(super) follower: F,
}

impl LeaderGateLayer {
    /// A gate of this election, which fails with [`NotLeader`] on followers. Fails if the durations of the election
    /// cannot be used on its store.
    pub fn new(election: &Election) -> Result<Self, Error> {
        let pace = ReadPace::of(&election.request.parse(Patience::Forever)?);
        let (election, view) = (election.clone(), watch_leader(election, pace));
        Ok(Self { election, view, max_age: pace.ttl.as_duration(), follower: Failing })
    }
}

impl<F> LeaderGateLayer<F> {
    /// Largest age of the knowledge about the leader. Older knowledge names no leader. Default: the ttl of the election.
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// Answers with this response on followers, instead of failing: for example, a redirect to the leader.
    pub fn answering<A, Response>(self, answer: A) -> LeaderGateLayer<Answering<A>>
    where
        A: Fn(NotLeader) -> Response + Clone,
    {
        let Self { election, view, max_age, follower: _ } = self;
        LeaderGateLayer { election, view, max_age, follower: Answering(answer) }
    }
}

impl<F> LeaderGateLayer<F> {
    /// The answer on this node while it does not lead.
    pub(super) fn not_leader(&self) -> NotLeader {
        let election = &self.election;
        let LeaderView { leader, as_of, .. } = self.view.borrow().clone();
        let age = as_of.map(|as_of| election.request.connection().clock.now().since(as_of));
        // A node that has just lost its term must not send its callers to itself.
        let leader = leader.filter(|leader| leader.token > election.seat.latest());
        let leader = leader.filter(|_| age.is_some_and(|age| age <= self.max_age));
        NotLeader { election: election.name().clone(), leader, age }
    }
}

impl<S, F: Clone> Layer<S> for LeaderGateLayer<F> {
    type Service = LeaderGate<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        LeaderGate::new(inner, self.clone())
    }
}

/// The latest knowledge about the leader, as long as the receiver exists.
fn watch_leader(election: &Election, pace: ReadPace) -> watch::Receiver<LeaderView> {
    LeaderWatcher::start(election.request.connection(), &election.observers, election.name(), pace, None)
}
