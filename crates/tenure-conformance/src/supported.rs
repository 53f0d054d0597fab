use crate::stop::Stop;

/// Answer of a [`Harness`](crate::Harness) to a request of the suite. Exhaustive, like every yes or no.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a hook that is not supported must make its check skipped, not passed"]
pub enum Supported {
    /// The harness did it.
    Yes,
    /// The harness cannot do it, for this reason.
    No(String),
}

impl Supported {
    /// Continues the check, or ends it as skipped.
    pub(crate) fn or_skip(self) -> Result<(), Stop> {
        match self {
            Self::Yes => Ok(()),
            Self::No(reason) => Err(Stop::Skipped(reason)),
        }
    }
}
