/// Kind of a record: the use of its key. It never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A lease.
    #[default]
    Lease,
    /// A plain key. Its text names the feature `key` in `crit`, so that a program without plain keys never takes it for
    /// a lease.
    Key,
}

impl Kind {
    /// The feature that the text of a record of this kind requires.
    pub(super) const fn feature(self) -> Option<&'static str> {
        match self {
            Self::Lease => None,
            Self::Key => Some("key"),
        }
    }
}
