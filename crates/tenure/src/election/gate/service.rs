use std::fmt;
use std::task::{Context, Poll, ready};

use tenure_store::BoxFuture;
use tower_service::Service;

use super::{BoxError, Follower, LeaderGateLayer};
use crate::Ran;

/// A service behind a gate: see the [module](super).
pub struct LeaderGate<S, F> {
    inner: S,
    /// True if the service is ready for a call.
    inner_ready: bool,
    gate: LeaderGateLayer<F>,
}

impl<S, F> LeaderGate<S, F> {
    pub(super) fn new(inner: S, gate: LeaderGateLayer<F>) -> Self {
        Self { inner, inner_ready: false, gate }
    }
}

impl<S, F, Request> Service<Request> for LeaderGate<S, F>
where
    S: Service<Request>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    F: Follower<S::Response> + Clone + Send + Sync + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    /// Ready at once on a follower, because the gate does not call the service there.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.gate.election.is_leader() && !self.inner_ready {
            ready!(self.inner.poll_ready(context)).map_err(Into::into)?;
            self.inner_ready = true;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // A node that has become the leader since `poll_ready` may not call a service that is not ready.
        if !self.gate.election.is_leader() || !std::mem::take(&mut self.inner_ready) {
            return Box::pin(std::future::ready(self.gate.follower.outcome(self.gate.not_leader())));
        }
        let (answer, gate) = (self.inner.call(request), self.gate.clone());
        Box::pin(async move {
            match gate.election.run_if_leader(answer).await {
                Ok(Ran::Done(answer)) => answer.map_err(Into::into),
                Ok(Ran::Skipped) | Err(_) => gate.follower.outcome(gate.not_leader()),
            }
        })
    }
}

impl<S: Clone, F: Clone> Clone for LeaderGate<S, F> {
    /// The clone of a service is not ready.
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.gate.clone())
    }
}

impl<S: fmt::Debug, F> fmt::Debug for LeaderGate<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gate = f.debug_struct("LeaderGate");
        gate.field("inner", &self.inner).field("election", self.gate.election.name()).finish_non_exhaustive()
    }
}
