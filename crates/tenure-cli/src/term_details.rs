use std::time::Duration;

use serde::Serialize;
use tenure::clock::WallTime;
use tenure::record::Record;
use tenure::{Observation, ProcessInfo};

use crate::duration;
use crate::output::plain;

/// The process of a holder and the times of its term, for people. The fields and their names are a contract:
/// `docs/reference/command/status.md`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TermDetails {
    process: Option<ProcessView>,
    /// True if the term was granted to a handle.
    by_handle: Option<bool>,
    /// Time between two renewals; absent if the term is renewed on request, or its holder does not say.
    renews_ms: Option<u64>,
    /// By the holder's wall clock.
    next_renewal_at: Option<String>,
    /// By the wall clock of this machine.
    deadline_at: Option<String>,
    #[serde(skip)]
    lines: Vec<(&'static str, String)>,
}

#[derive(Debug, Serialize)]
struct ProcessView {
    host: Option<String>,
    pid: Option<u32>,
    user: Option<String>,
    container: Option<String>,
    command: Option<String>,
}

impl TermDetails {
    /// The details of the term in a record that has a holder.
    pub(crate) fn of(seen: &Observation, record: &Record) -> Self {
        if !record.is_held() || record.is_key() {
            return Self::default();
        }
        let mut details = Self {
            by_handle: Some(record.secret_hash.is_some()),
            renews_ms: record.renews_ms(),
            ..Self::default()
        };
        if let Some(process) = record.holder_process() {
            details.describe(process);
        }
        let granted = record.granted_at;
        let is_held = seen.standing.is_held();
        let ago = format!("{granted}, {} ago", duration::at_least(between(granted, seen.seen_at)));
        details.add("granted", if is_held { ago } else { granted.to_string() });
        if is_held {
            details.expect_renewal(record, seen.seen_at);
        }
        if let Some(remaining) = seen.standing.remaining().filter(|_| is_held) {
            let at = later(seen.seen_at, duration::millis_up(remaining.at_most)).to_string();
            details.add("deadline", format!("at the latest about {at}, unless it is renewed"));
            details.deadline_at = Some(at);
        }
        details
    }

    /// The lines for people, each with its line end.
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|(name, text)| line(name, text)).collect()
    }

    fn describe(&mut self, process: &ProcessInfo) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        self.process = Some(ProcessView {
            host: owned(process.host()),
            pid: process.pid(),
            user: owned(process.user()),
            container: owned(process.container()),
            command: owned(process.command()),
        });
        if let Some(host) = process.host() {
            self.add("host", plain(host));
        }
        let pid = process.pid().map(|pid| format!("pid {pid}"));
        let container = process.container().map(|id| format!("in container {}", plain(id)));
        let user = process.user().map(|user| format!("user {}", plain(user)));
        let parts: Vec<_> = [pid, container, user].into_iter().flatten().collect();
        if !parts.is_empty() {
            self.add("process", parts.join(", "));
        }
        if let Some(command) = process.command() {
            self.add("command", plain(command));
        }
    }

    /// Adds the next renewal, as far as the record tells. It is an estimate: the clocks of holder and reader may
    /// differ.
    fn expect_renewal(&mut self, record: &Record, now: WallTime) {
        let Some(renews) = record.renews_ms() else {
            if self.by_handle == Some(true) {
                self.add("next renewal", "when the process that has the handle runs tenure renew".to_owned());
            }
            return;
        };
        let at = later(record.written_at, renews);
        self.next_renewal_at = Some(at.to_string());
        let late = between(at, now);
        let text = if late.is_zero() {
            format!("expected in about {}", duration::at_most(between(now, at)))
        } else {
            let late = duration::at_least(late);
            format!("was expected about {late} ago: the holder is late, or the clocks differ")
        };
        self.add("next renewal", text);
    }

    fn add(&mut self, name: &'static str, text: String) {
        self.lines.push((name, text));
    }
}

/// A line of details, below the line that scripts read.
pub(crate) fn line(name: &str, text: &str) -> String {
    format!("  {name:<12}  {text}\n")
}

fn later(time: WallTime, millis: u64) -> WallTime {
    WallTime::from_millis(time.as_millis().saturating_add(millis))
}

fn between(earlier: WallTime, later: WallTime) -> Duration {
    Duration::from_millis(later.as_millis().saturating_sub(earlier.as_millis()))
}
