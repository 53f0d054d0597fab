use super::{BoxError, NotLeader};

/// The act of a gate on a node that does not lead.
pub trait Follower<Response> {
    /// The outcome of a request.
    fn outcome(&self, not_leader: NotLeader) -> Result<Response, BoxError>;
}

/// Fails with [`NotLeader`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Failing;

impl<Response> Follower<Response> for Failing {
    fn outcome(&self, not_leader: NotLeader) -> Result<Response, BoxError> {
        Err(not_leader.into())
    }
}

/// Answers with a response that is made of [`NotLeader`].
#[derive(Clone, Copy, Debug)]
pub struct Answering<F>(pub(super) F);

impl<Response, F: Fn(NotLeader) -> Response> Follower<Response> for Answering<F> {
    fn outcome(&self, not_leader: NotLeader) -> Result<Response, BoxError> {
        Ok((self.0)(not_leader))
    }
}
