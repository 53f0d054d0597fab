use std::fmt;

use crate::judge::Judged;
use crate::measure::Measured;
use crate::quoting::Quoting;
use crate::ttl::Advice;

/// Everything that a probe found about a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Qualification {
    /// Name of the store.
    pub store: String,
    /// Every check of the contract, with its judgement.
    pub checks: Vec<Judged>,
    /// The form of ETags that the server accepts, with or without quotes; `None` for a store without ETags.
    pub quoting: Option<Quoting>,
    /// True if equal bytes have equal versions; `None` if the probe could not determine it.
    pub equal_bytes_share_a_version: Option<bool>,
    /// Measurements. A refused store is not measured.
    pub measured: Option<Measured>,
    /// Recommended ttl, with the arithmetic.
    pub advice: Option<Advice>,
    /// The final result.
    pub fitness: Fitness,
}

/// The final result for a store.
///
/// Exhaustive: the caller acts on each of the three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// The probe found no problem.
    Fit,
    /// The store is usable for leases. Another feature does not work there, or the user must know a limit.
    FitWithLimits(Vec<String>),
    /// The store must not be used: two holders could act at once.
    Refused(Vec<String>),
}

impl Fitness {
    /// The reasons against the store, each as a sentence.
    pub fn reasons(&self) -> &[String] {
        match self {
            Self::Fit => &[],
            Self::FitWithLimits(reasons) | Self::Refused(reasons) => reasons,
        }
    }
}

impl fmt::Display for Fitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fit => "fit",
            Self::FitWithLimits(_) => "fit with limits",
            Self::Refused(_) => "refused",
        })
    }
}
