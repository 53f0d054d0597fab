use crate::Version;

/// What the entry must be for a write to happen.
///
/// Exhaustive: a store sends exactly this condition, and one that it does not know it would not send. There is no variant for
/// "whatever is there".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There must be no entry.
    Absent,
    /// The entry must have exactly this version.
    Version(Version),
}
