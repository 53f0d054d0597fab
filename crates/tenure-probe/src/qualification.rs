use std::fmt;

use crate::judge::Judged;
use crate::measure::Measured;
use crate::quoting::Quoting;
use crate::ttl::Advice;

/// Everything that a probe found out about a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Qualification {
    /// What the store is called.
    pub store: String,
    /// Every check of the contract, judged.
    pub checks: Vec<Judged>,
    /// Whether its ETags are wanted with or without quotes, where it has any.
    pub quoting: Option<Quoting>,
    /// Whether equal bytes have equal versions; `None` if nobody could tell.
    pub equal_bytes_share_a_version: Option<bool>,
    /// How fast it is. Stores that are refused are not measured.
    pub measured: Option<Measured>,
    /// Which ttl fits it, with the arithmetic.
    pub advice: Option<Advice>,
    /// The final word.
    pub fitness: Fitness,
}

/// The final word about a store.
///
/// Exhaustive: whoever asks acts on each of the three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// Nothing speaks against it.
    Fit,
    /// It can be used for leases. Something else does not work there, or something has to be kept in mind.
    FitWithLimits(Vec<String>),
    /// It must not be used: two could act at once.
    Refused(Vec<String>),
}

impl Fitness {
    /// What speaks against the store, each as a sentence.
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
