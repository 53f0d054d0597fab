/// Outcome of work that runs only on the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the work may have been skipped"]
pub enum Ran<T> {
    /// The work ran to its end while this node led.
    Done(T),
    /// This node does not lead, and the work was not started.
    Skipped,
}

impl<T> Ran<T> {
    /// The output of the work; `None` if it was skipped.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(output) => Some(output),
            Self::Skipped => None,
        }
    }
}
