use std::path::PathBuf;

use crate::Version;

/// What names a store, and what is told apart by it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// A well-formed version that no write of this store ever has: a replace of it must always be refused. The check at
    /// connect is made of such writes.
    pub impossible_version: Version,

    /// Names this very store as configured, without credentials, so that a verdict about it can be remembered: two that could
    /// keep their promises differently (another endpoint, bucket or prefix, conditions that are sent in another form) never
    /// have the same. `None`: nothing is remembered of it, and it is checked each time it is connected.
    pub place: Option<String>,

    /// A folder of this machine where the witnesses of all users of this store lie; `None` where it has none. For a store
    /// that reaches beyond one process the library then chooses one, and so it does where no lock is seen to hold in the
    /// folder that is named here.
    ///
    /// A witness is a small locked file by which others on the machine see whether its holder is alive. The folder must
    /// lie on a file system whose locks are this kernel's own affair, and all programs on the machine that use the store
    /// must be given the same one. The store itself passes over files that end in `.witness`.
    pub witness_folder: Option<PathBuf>,
}

impl Identity {
    /// A store of which nothing is remembered, and that has no folder for witnesses.
    pub fn new(impossible_version: Version) -> Self {
        Self { impossible_version, place: None, witness_folder: None }
    }

    /// The same with a place.
    pub fn with_place(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// The same with a folder for witnesses.
    pub fn with_witness_folder(self, folder: impl Into<Option<PathBuf>>) -> Self {
        Self { witness_folder: folder.into(), ..self }
    }
}
