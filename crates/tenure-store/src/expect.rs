use crate::Version;

/// What the entry must be for a write to happen. There is no variant for "whatever is there".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There must be no entry.
    Absent,
    /// The entry must have exactly this version.
    Version(Version),
}
