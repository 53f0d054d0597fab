use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_core::record::Record;
use tenure_core::{Holder, Token};

use crate::clock::WallTime;

/// The leader of an election, as an observer saw it. Two nodes with the same name have different tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The leader, with its address and labels.
    pub holder: Arc<Holder>,
    /// The token of its term.
    pub token: Token,
    /// The value that it announced.
    pub value: Arc<str>,
    /// Time of its grant, by its own wall clock. Informational.
    pub since: WallTime,
}

impl Leader {
    /// The leader that a held record names.
    pub(super) fn of(record: &Record) -> Option<Self> {
        let (holder, value) = (Arc::clone(record.holder.as_ref()?), Arc::clone(&record.value));
        Some(Self { holder, token: record.token, value, since: record.granted_at })
    }

    /// The name of the leader. Informational: it does not identify a node.
    pub fn name(&self) -> &str {
        self.holder.id()
    }

    /// The address at which the leader can be reached, if it announced one.
    pub fn address(&self) -> Option<&str> {
        self.holder.address()
    }

    /// The labels of the leader, by name.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        self.holder.labels()
    }
}
