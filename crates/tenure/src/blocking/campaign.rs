use super::{Term, block_on};
use crate::Error;

/// A campaign, for a blocking thread: wins terms again and again.
#[derive(Debug)]
#[must_use = "a campaign does nothing until next() is called"]
pub struct Campaign(pub(super) crate::Campaign);

impl Campaign {
    /// Blocks until this node leads, and returns the term: see [`Campaign::next`](crate::Campaign::next).
    ///
    /// Nothing interrupts the thread. [`Coordinator::shutdown`](super::Coordinator::shutdown) in another thread ends the wait
    /// at once, with an error.
    #[track_caller]
    #[expect(
        clippy::should_implement_trait,
        reason = "it has the name of the asynchronous method, and never ends"
    )]
    pub fn next(&mut self) -> Result<Term, Error> {
        block_on(self.0.next()).map(Term)
    }
}
