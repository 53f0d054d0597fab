/// Reason why a check stopped early. Checks are written with `?`.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The store broke the contract. The text says what the check observed.
    Failed(String),
    /// The check could not run, or its subject was never promised.
    Skipped(String),
}

/// Result of a check.
pub(crate) type CheckResult = Result<(), Stop>;

/// Ends the check as failed.
macro_rules! fail {
    ($($what:tt)+) => {
        return Err($crate::stop::Stop::Failed(format!($($what)+)))
    };
}

/// Ends the check as failed unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            $crate::stop::fail!($($what)+);
        }
    };
}

pub(crate) use {ensure, fail};
