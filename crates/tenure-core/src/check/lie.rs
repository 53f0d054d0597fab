use tenure_store::{Expect, Key, Store};

use crate::{Error, ErrorKind};

/// An act of a store that its declared guarantees exclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// A create over an entry that exists was accepted.
    Create,
    /// A replace of a version that no entry ever has was accepted.
    Replace,
    /// A write was acknowledged, and a read that was sent after that shows nothing.
    Vanished,
    /// A create was refused because there is an entry, and a read that was sent after that shows nothing.
    Hidden,
    /// An entry has the empty version, which names nothing.
    EmptyVersion,
    /// An entry has the version that the store says no entry ever has.
    ImpossibleVersion,
    /// The version of an entry changed without a write.
    UnsteadyVersion,
}

impl Lie {
    /// Number of lies that convict a store. One alone may be an operator who deleted the scratch key at that moment.
    pub(super) const LIES_TO_REFUSE: u32 = 2;

    /// The writes that a store must refuse; accepting one is the lie.
    pub(super) const FORBIDDEN: [Self; 2] = [Self::Create, Self::Replace];

    /// Condition of the write that the store must refuse.
    pub(super) fn expect(self, store: &dyn Store) -> Expect {
        match self {
            Self::Replace => Expect::Version(store.identity().impossible_version),
            _ => Expect::Absent,
        }
    }

    /// Name of the write, which is part of the value that it writes.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace of a version that never existed",
            _ => "create over what exists",
        }
    }

    /// The error of a store that fails the safety check with this lie.
    pub(super) fn refusal(self, store: &dyn Store) -> Error {
        let (promised, seen) = match self {
            Self::Create => ("atomic create", "it accepted a create over an existing entry"),
            Self::Replace => ("atomic replace", "it accepted a replace of a version that never existed"),
            Self::Vanished => (
                "linearizable reads and keeping acknowledged writes",
                "a read sent after a create was acknowledged did not show the entry",
            ),
            Self::Hidden => (
                "linearizable reads",
                "it refused a create because there is an entry, and a read sent after that did not show one",
            ),
            Self::EmptyVersion => ("atomic replace", "it gave an entry an empty version"),
            Self::ImpossibleVersion => {
                ("atomic replace", "it gave an entry the version that it declares impossible")
            }
            Self::UnsteadyVersion => ("atomic replace", "the version of an entry changed without a write"),
        };
        let message = format!(
            "{store} promises {promised}, but {seen} ({key}), and this happened more than once. Two holders could act \
             at once, so nothing is granted on it: use another store",
            key = Key::scratch(),
        );
        Error::new(ErrorKind::Unsupported, message)
    }
}
