//! The property test of a fence: writers with random tokens, retries, crashes and lost answers, on the real resource.
//!
//! Afterwards no admitted write may be followed by an admitted write under a smaller token (S3). A resource whose writes
//! can be listed shows all of them; another one shows the latest. A write without a clear answer may have been made or not.
//!
//! Implement [`Resource`] for the fence, and call [`run`]. The suite must also fail on a fence that admits stale
//! writes: run it on such a fence, too.

mod history;
mod plan;

use std::fmt;

use tenure_store::Token;

use crate::{FenceError, FencingToken};
pub use history::History;
pub use plan::Plan;

/// A fenced resource under test. Each [`writer`](Self::writer) is another process: it shares no memory with the others.
pub trait Resource: Sync {
    /// A writer.
    type Writer: Writer;

    /// A new writer, with a connection and a memory of its own.
    fn writer(&self) -> impl Future<Output = Self::Writer> + Send;

    /// The writes that the resource shows: the latest one, or all in their order if it keeps them.
    fn shown(&self) -> impl Future<Output = Vec<Shown>> + Send;
}

/// One process that writes.
pub trait Writer: Send {
    /// Writes this number under this token. Each number is written once.
    fn write(
        &mut self,
        token: &FencingToken,
        number: u64,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Raises the fence; `None` if the fence has no seal.
    fn seal(&mut self, token: &FencingToken) -> impl Future<Output = Option<Result<(), FenceError>>> + Send;
}

/// A write that the resource shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The token of the write, if the resource shows it.
    pub token: Option<Token>,
    /// The number that was written.
    pub number: u64,
}

/// What a run of the suite has seen. The counts show that it tried what it claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Admitted writes and seals.
    pub admitted: u64,
    /// Stale writes and seals that were refused.
    pub refused: u64,
    /// Writes without a clear answer.
    pub unknown: u64,
    /// Writers that crashed and began again with an empty memory.
    pub crashes: u64,
}

/// Runs the plan on the resource. The error says which admitted write broke the rule.
pub async fn run<R: Resource>(resource: &R, plan: Plan) -> Result<Counts, String> {
    plan.run(resource).await
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { admitted, refused, unknown, crashes } = self;
        write!(
            f,
            "{admitted} admitted, {refused} refused, {unknown} without a clear answer, {crashes} crashes"
        )
    }
}
