use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tenure::record::State;
use tenure::{Key, Observation};

use crate::duration;
use crate::lease_view::{FREE, IN_USE};
use crate::output::plain;

/// The leader of an election in output. The fields and their names are a contract: `docs/reference/command/elect.md`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct LeaderView {
    name: String,
    /// `None` if there is no leader.
    pub(crate) holder: Option<String>,
    address: Option<String>,
    labels: BTreeMap<String, String>,
    value: Option<String>,
    token: Option<u64>,
    granted_at: Option<String>,
    held_ms: Option<u64>,
    left_ms: Option<u64>,
    judged: Option<bool>,
    /// The process that asked the leader to resign, and its reason.
    by: Option<String>,
    because: Option<String>,
}

impl LeaderView {
    /// An election without a leader.
    pub(crate) fn none(key: &Key) -> Self {
        Self { name: key.to_string(), ..Self::default() }
    }

    /// The holder leads until it has released, or its record has run out. A value of an earlier leader may be in a
    /// record without one, and is not shown.
    pub(crate) fn observed(seen: &Observation) -> Self {
        let mut view = Self::none(&seen.key);
        let Some(record) = seen.record.as_ref().filter(|_| seen.standing.is_held()) else { return view };
        let Some(holder) = &record.holder else { return view };
        view.holder = Some(holder.id().to_string());
        view.address = holder.address().map(str::to_owned);
        view.labels = holder.labels().clone();
        view.value = Some(record.value.to_string()).filter(|value| !value.is_empty());
        view.token = Some(record.token.get());
        view.granted_at = Some(record.granted_at.to_string());
        view.held_ms = Some(seen.seen_at.as_millis().saturating_sub(record.granted_at.as_millis()));
        if let Some(left) = seen.standing.remaining() {
            (view.left_ms, view.judged) = (Some(duration::millis_up(left.at_most)), Some(left.judged));
        }
        if let State::Revoked(revocation) = &record.state {
            (view.by, view.because) = (Some(revocation.by.to_string()), Some(revocation.because.to_string()));
        }
        view
    }

    pub(crate) fn is_led(&self) -> bool {
        self.holder.is_some()
    }

    /// The leader in one line of text.
    pub(crate) fn sentence(&self) -> String {
        let name = plain(&self.name);
        let Some(holder) = &self.holder else { return format!("{name}: {}\n", FREE.paint("no leader")) };
        let text = |text: &Option<String>| text.as_deref().map(plain);
        let millis = |millis: Option<u64>| Duration::from_millis(millis.unwrap_or_default());
        let address = text(&self.address).map(|address| format!(" at {address}")).unwrap_or_default();
        let judged = if self.judged == Some(false) { ", expiry not yet confirmed" } else { "" };
        let asked = match (text(&self.by), text(&self.because)) {
            (Some(by), Some(because)) => format!(", asked to resign by {by} because {because}"),
            _ => String::new(),
        };
        format!(
            "{name}: {} by {}{address}, token {}, since {} ({}), at most {} left{judged}{asked}\n",
            IN_USE.paint("led"),
            plain(holder),
            self.token.unwrap_or_default(),
            self.granted_at.as_deref().unwrap_or_default(),
            duration::at_least(millis(self.held_ms)),
            duration::at_most(millis(self.left_ms)),
        )
    }
}
