use serde::Serialize;
use tenure::{Error, Key, KeyEntry, Keys};

use crate::duration;
use crate::output::plain;

/// An entry in output. The fields and their names are a contract: `docs/reference/command/kv.md`.
#[derive(Debug, Default, Serialize)]
pub(super) struct KeyView {
    pub(super) key: String,
    pub(super) value: Option<String>,
    pub(super) revision: Option<u64>,
    owner: Option<String>,
    /// True if this user is the owner.
    mine: bool,
    ttl_ms: Option<u64>,
    left_ms: Option<u64>,
    judged: Option<bool>,
    changed_at: Option<String>,
    written_at: Option<String>,
    /// Reason why the key could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip)]
    left: Option<std::time::Duration>,
}

impl KeyView {
    /// A key without an entry.
    pub(super) fn absent(key: &Key) -> Self {
        Self { key: key.to_string(), ..Self::default() }
    }

    /// A key that could not be read.
    pub(super) fn unreadable(key: &Key, error: &Error) -> Self {
        Self { problem: Some(error.to_string()), ..Self::absent(key) }
    }

    /// The entry, seen by this owner, if the owner is known.
    pub(super) fn of(entry: &KeyEntry, owner: Option<&Keys>) -> Self {
        let millis = |span| duration::millis_up(span);
        Self {
            value: Some(entry.value.to_string()),
            revision: Some(entry.revision.get()),
            owner: entry.owner.as_ref().map(|owner| owner.id().to_string()),
            mine: owner.is_some_and(|owner| owner.owns(entry)),
            ttl_ms: entry.ttl.map(millis),
            left_ms: entry.remaining.map(|remaining| millis(remaining.at_most)),
            judged: entry.remaining.map(|remaining| remaining.judged),
            changed_at: Some(entry.changed_at.to_string()),
            written_at: Some(entry.written_at.to_string()),
            left: entry.remaining.map(|remaining| remaining.at_most),
            ..Self::absent(&entry.key)
        }
    }

    /// The entry without its value, as part of a sentence.
    pub(super) fn words(&self) -> String {
        let owner = self.owner.as_deref().map(plain).unwrap_or_default();
        let left = self.left.map(|left| format!(", at most {} left", duration::at_most(left)));
        let judged = if self.judged == Some(false) { ", expiry not yet confirmed" } else { "" };
        let revision = self.revision.unwrap_or_default();
        format!("revision {revision} of {owner}{}{judged}", left.unwrap_or_default())
    }

    /// The cells of a table, in the order of [`Self::HEAD`].
    pub(super) fn row(&self) -> [String; 5] {
        let nothing = || "-".to_owned();
        let value = match (&self.problem, &self.value) {
            (Some(problem), _) => format!("({})", plain(problem)),
            (None, value) => plain(value.as_deref().unwrap_or_default()),
        };
        [
            plain(&self.key),
            self.owner.as_deref().map_or_else(nothing, plain),
            self.revision.map_or_else(nothing, |revision| revision.to_string()),
            self.left.map_or_else(nothing, duration::at_most),
            value,
        ]
    }

    pub(super) const HEAD: [&'static str; 5] = ["NAME", "OWNER", "REVISION", "LEFT AT MOST", "VALUE"];
}
