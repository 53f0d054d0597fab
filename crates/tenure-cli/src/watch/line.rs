use std::time::Duration;

use serde::Serialize;
use tenure::record::{End, Record};
use tenure::{Change, ChangeKind, Key, WatchEvent};

use crate::duration;
use crate::lease_view::{FREE, IN_USE, LeaseView, SUSPECT};
use crate::output::plain;

/// One event in output. The fields and their names are a contract: `docs/reference/command/watch.md`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Line {
    event: &'static str,
    seen_at: String,
    name: Option<String>,
    token: Option<u64>,
    holder: Option<String>,
    written_at: Option<String>,
    by: Option<String>,
    because: Option<String>,
    successor: Option<String>,
    message: Option<String>,
    since: Option<String>,
    lease: Option<LeaseView>,
    #[serde(skip)]
    away_for: Duration,
}

impl Line {
    /// `None` for an event that this command does not know.
    pub(super) fn of(event: &WatchEvent) -> Option<Self> {
        Some(match event {
            WatchEvent::Stands(seen) => {
                let record = seen.record.as_deref();
                Self {
                    token: record.filter(|record| record.ttl.is_some()).map(|record| record.token.get()),
                    holder: record.and_then(|record| Some(record.holder.as_ref()?.id().to_string())),
                    written_at: record.map(|record| record.written_at.to_string()),
                    lease: Some(LeaseView::observed(seen)),
                    ..Self::of_key("stands", seen.seen_at, &seen.key)
                }
            }
            WatchEvent::Changed(change) => Self::changed(change)?,
            WatchEvent::Problem { key, error, seen_at } => {
                Self { message: Some(error.to_string()), ..Self::of_key("problem", *seen_at, key) }
            }
            WatchEvent::Unavailable { error, seen_at } => {
                Self { message: Some(error.to_string()), ..Self::new("unavailable", *seen_at) }
            }
            WatchEvent::Available { since, seen_at } => Self {
                since: Some(since.to_string()),
                away_for: Duration::from_millis(seen_at.as_millis().saturating_sub(since.as_millis())),
                ..Self::new("available", *seen_at)
            },
            _ => return None,
        })
    }

    fn new(event: &'static str, seen_at: impl ToString) -> Self {
        Self { event, seen_at: seen_at.to_string(), ..Self::default() }
    }

    fn of_key(event: &'static str, seen_at: impl ToString, key: &Key) -> Self {
        Self { name: Some(key.to_string()), ..Self::new(event, seen_at) }
    }

    fn changed(change: &Change) -> Option<Self> {
        let mut line = Self {
            token: change.token.map(|token| token.get()),
            holder: change.holder.as_ref().map(ToString::to_string),
            written_at: change.written_at.map(|at| at.to_string()),
            ..Self::of_key("", change.seen_at, &change.key)
        };
        line.event = match &change.kind {
            ChangeKind::Granted => "granted",
            ChangeKind::Renewed => "renewed",
            ChangeKind::Revoked { by, because } => line.with_cause("revoked", by, because),
            ChangeKind::Ended(End::Released) => "released",
            ChangeKind::Ended(End::RanOut) => "ran-out",
            ChangeKind::Ended(End::Died) => "died",
            ChangeKind::Ended(End::Revoked { by, because }) => line.with_cause("taken", by, because),
            ChangeKind::Ended(End::Other(word)) => line.with_message("ended", word),
            ChangeKind::Ended(_) => "ended",
            ChangeKind::Reserved { successor } => {
                line.successor = Some(successor.to_string());
                "reserved"
            }
            ChangeKind::Closed { by, because } => line.with_cause("closed", by, because),
            ChangeKind::Appeared => "appeared",
            ChangeKind::Gone => "gone",
            ChangeKind::PlainKey => "key",
            ChangeKind::Foreign(what) => line.with_message("foreign", what),
            ChangeKind::Missed => "missed",
            _ => return None,
        };
        Some(line)
    }

    fn with_cause(&mut self, event: &'static str, by: &str, because: &str) -> &'static str {
        (self.by, self.because) = (Some(by.to_owned()), Some(because.to_owned()));
        event
    }

    fn with_message(&mut self, event: &'static str, message: &str) -> &'static str {
        self.message = Some(message.to_owned());
        event
    }

    /// The event in one line of text.
    pub(super) fn sentence(&self) -> String {
        let what = self.event_words();
        match &self.name {
            Some(name) => format!("{}  {}: {what}\n", self.seen_at, plain(name)),
            None => format!("{}  {what}\n", self.seen_at),
        }
    }

    fn event_words(&self) -> String {
        let text = |text: &Option<String>| plain(text.as_deref().unwrap_or_default());
        let (by, message) = (text(&self.by), text(&self.message));
        let by = match text(&self.because).as_str() {
            "" => format!("by {by}"),
            because => format!("by {by} because {because}"),
        };
        let token = self.token.map(|token| format!("token {token}")).unwrap_or_default();
        let holder = format!("{}, {token}", text(&self.holder));
        match self.event {
            "stands" => self.lease.as_ref().map(LeaseView::standing).unwrap_or_default(),
            "granted" => format!("{} to {holder}", IN_USE.paint("granted")),
            "renewed" => format!("{} by {holder}", IN_USE.paint("renewed")),
            "revoked" => format!("{} {by}: {holder}, is asked to release", IN_USE.paint("revoked")),
            "released" => format!("{} by {holder}", FREE.paint("released")),
            "ran-out" if self.holder.is_none() => {
                format!("{}: the reservation has run out", FREE.paint("free"))
            }
            "ran-out" => format!("{}: {holder}, did not renew it in time", FREE.paint("run out")),
            "died" => format!("{}: {holder}, is dead", FREE.paint("died")),
            "taken" => format!("{} from {holder}, {by}", FREE.paint("taken over")),
            "ended" => format!("{} ({message}): {holder}", FREE.paint("ended")),
            "reserved" => format!("{} for {}", IN_USE.paint("reserved"), text(&self.successor)),
            "closed" => format!("{} {by}, and never granted again", SUSPECT.paint("closed")),
            "appeared" if self.token.is_some() => {
                format!("{} again, the last {token}", SUSPECT.paint("there is a record"))
            }
            "appeared" => SUSPECT.paint("there is a record"),
            "gone" => SUSPECT.paint("the record was deleted"),
            "key" => format!("{}, not a lease", SUSPECT.paint("plain key")),
            "foreign" => format!("{}: {message}", SUSPECT.paint("foreign")),
            "missed" => {
                let kept = Record::HISTORY_MAX;
                format!(
                    "{}: the record remembers the last {kept}",
                    SUSPECT.paint("terms may be missing here")
                )
            }
            "unavailable" => format!("{}: {message}", SUSPECT.paint("the store is unavailable")),
            "available" => {
                let away_for = duration::at_least(self.away_for);
                format!("{}, after {away_for}", FREE.paint("the store is available again"))
            }
            _ => format!("{}: {message}", SUSPECT.paint(self.event)),
        }
    }
}
