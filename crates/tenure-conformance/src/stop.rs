/// Why a check ended before its end. Checks are written with `?`.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The store broke the contract, and this is what was seen.
    Failed(String),
    /// The check could not be made, or what it checks was never promised.
    Skipped(String),
}

/// How a check ends.
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
