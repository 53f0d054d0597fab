use std::fmt;
use std::sync::Arc;

/// The store's opaque stamp of one write of one key: an ETag, a generation, a revision, a row version.
///
/// Versions can only be compared for equality. A larger number is *not* a later write: many stores reset the number
/// when an entry is created again.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// The version as the store itself writes it.
    pub fn new(stamp: impl Into<Arc<str>>) -> Self {
        Self(stamp.into())
    }

    /// The stamp, to send back to the store that made it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({})", self.0)
    }
}
