use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tenure::{HeldSlot, Key};

use crate::duration;
use crate::output::plain;

/// A group in output.
#[derive(Debug, Serialize)]
pub(super) struct GroupView {
    pub(super) group: String,
    /// The number of slots; `None` if no contender ever wanted one, or if it cannot be read.
    pub(super) slots: Option<u16>,
    /// The number of held slots; `None` if they cannot be read.
    pub(super) held: Option<usize>,
    /// True if a part of the group cannot be read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) unreadable: bool,
}

/// A held slot in output.
#[derive(Debug, Serialize)]
pub(super) struct HeldSlotView {
    slot: u16,
    holder: String,
    address: Option<String>,
    labels: BTreeMap<String, String>,
    token: u64,
    ttl_ms: Option<u64>,
    left_ms: u64,
    judged: bool,
    granted_at: String,
    written_at: String,
    value: Option<String>,
    /// True if the group was shrunk since: its holder finishes, and the slot is not granted again.
    beyond: bool,
    #[serde(skip)]
    left: Duration,
}

impl GroupView {
    pub(super) const HEAD: [&'static str; 3] = ["GROUP", "SLOTS", "HELD"];

    pub(super) fn unused(group: &Key) -> Self {
        Self { group: group.to_string(), slots: None, held: Some(0), unreadable: false }
    }

    pub(super) fn row(&self) -> [String; 3] {
        let none = if self.unreadable { "unreadable" } else { "-" };
        let slots = self.slots.map_or_else(|| none.to_owned(), |slots| slots.to_string());
        let held = self.held.map_or_else(|| none.to_owned(), |held| held.to_string());
        [plain(&self.group), slots, held]
    }

    /// The group as a sentence.
    pub(super) fn words(&self) -> String {
        let (group, held) = (plain(&self.group), self.held.unwrap_or_default());
        match self.slots {
            None => format!("{group}: not used yet"),
            Some(1) => format!("{group}: 1 slot, {held} held"),
            Some(slots) => format!("{group}: {slots} slots, {held} held"),
        }
    }
}

impl HeldSlotView {
    pub(super) const HEAD: [&'static str; 4] = ["SLOT", "HOLDER", "TOKEN", "LEFT AT MOST"];

    pub(super) fn of(held: &HeldSlot, slots: Option<u16>) -> Self {
        let (record, holder) = (&held.record, held.record.holder.as_ref());
        Self {
            slot: held.index,
            holder: held.holder().to_owned(),
            address: holder.and_then(|holder| holder.address()).map(str::to_owned),
            labels: holder.map(|holder| holder.labels().clone()).unwrap_or_default(),
            token: record.token.get(),
            ttl_ms: record.ttl.map(|ttl| ttl.as_millis()),
            left_ms: duration::millis_up(held.remaining.at_most),
            judged: held.remaining.judged,
            granted_at: record.granted_at.to_string(),
            written_at: record.written_at.to_string(),
            value: Some(record.value.to_string()).filter(|value| !value.is_empty()),
            beyond: slots.is_none_or(|slots| held.index >= slots),
            left: held.remaining.at_most,
        }
    }

    pub(super) fn row(&self) -> [String; 4] {
        let judged = if self.judged { "" } else { ", expiry not yet confirmed" };
        let beyond = if self.beyond { ", beyond the size" } else { "" };
        [
            self.slot.to_string(),
            plain(&self.holder),
            self.token.to_string(),
            format!("{}{judged}{beyond}", duration::at_most(self.left)),
        ]
    }
}
