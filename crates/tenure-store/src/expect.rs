use crate::Version;

/// The condition of a write: the entry that must be there.
///
/// Exhaustive: a store sends exactly this condition, and cannot send one that it does not know. There is no variant
/// without a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There must be no entry.
    Absent,
    /// The entry must have exactly this version.
    Version(Version),
}
