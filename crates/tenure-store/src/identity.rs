use std::path::PathBuf;

use crate::Version;

/// The identity of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// A well-formed version that no write of this store ever has: the store must refuse every replace of it. The
    /// safety check sends such writes.
    pub impossible_version: Version,

    /// Name of this exact store as configured, without credentials. Tenure remembers verdicts under it. Two stores that
    /// could keep their guarantees differently never have the same name: another endpoint, bucket or prefix, or
    /// conditions in another form. With `None`, Tenure remembers nothing, and checks the store at every connect.
    pub place: Option<String>,

    /// Directory on this machine for the witnesses of all users of this store; `None` if the store has none. For a
    /// store that reaches beyond one process, the library then chooses one. It also chooses one if locks do not work in
    /// the directory that is named here.
    ///
    /// A witness is a small locked file that shows the other processes on the machine whether its holder is alive. The
    /// directory must be on a file system whose locks are local to this kernel. All programs on the machine that use
    /// the store must use the same directory. The store itself ignores files that end in `.witness`.
    pub witness_directory: Option<PathBuf>,

    /// True if the members of the group of [`witness_directory`](Self::witness_directory) share the store: each member
    /// can then read the witnesses of the others.
    pub shares_witnesses: bool,
}

impl Identity {
    /// A store without remembered verdicts and without a directory for witnesses.
    pub fn new(impossible_version: Version) -> Self {
        Self { impossible_version, place: None, witness_directory: None, shares_witnesses: false }
    }

    /// Sets the place.
    pub fn with_place(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Sets the directory for witnesses.
    pub fn with_witness_directory(self, directory: impl Into<Option<PathBuf>>) -> Self {
        Self { witness_directory: directory.into(), ..self }
    }

    /// Shares the witnesses with the group of their directory.
    pub fn with_shared_witnesses(self, shared: bool) -> Self {
        Self { shares_witnesses: shared, ..self }
    }
}
