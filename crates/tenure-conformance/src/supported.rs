use crate::stop::Stop;

/// Whether a [`Harness`](crate::Harness) could do what the suite asked for. Exhaustive, as every yes or no is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a hook that is not supported must make its check skipped, not passed"]
pub enum Supported {
    /// It was done.
    Yes,
    /// It cannot be done here, and this is why.
    No(String),
}

impl Supported {
    /// Goes on with the check, or ends it as skipped.
    pub(crate) fn or_skip(self) -> Result<(), Stop> {
        match self {
            Self::Yes => Ok(()),
            Self::No(reason) => Err(Stop::Skipped(reason)),
        }
    }
}
