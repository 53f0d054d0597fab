use std::collections::BTreeMap;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use tenure::clock::WallTime;
use tenure::record::{Record, State};
use tenure::{Error, ErrorKind, Key, Observation, Remaining, Standing, Survivors};

use crate::exit::{self, Failure};
use crate::output::plain;
use crate::term_details::TermDetails;
use crate::{duration, outlived_reports};

/// A lease in output. The fields and their names are a contract: `docs/reference/command/status.md`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct LeaseView {
    pub(crate) name: String,
    pub(crate) state: &'static str,
    /// True if a contender would be granted the lease at once.
    pub(crate) free: bool,
    holder: Option<String>,
    address: Option<String>,
    labels: BTreeMap<String, String>,
    token: Option<u64>,
    ttl_ms: Option<u64>,
    left_ms: Option<u64>,
    judged: Option<bool>,
    held_ms: Option<u64>,
    granted_at: Option<String>,
    written_at: Option<String>,
    value: Option<String>,
    successor: Option<String>,
    by: Option<String>,
    because: Option<String>,
    /// The reason why its holder cannot stop the work under it.
    cannot_stop: Option<String>,
    /// The latest run that succeeded under `--once-per`.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_success: Option<SuccessView>,
    /// The processes of its command that are alive although it has run out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<Process>,
    /// These processes in words.
    #[serde(skip)]
    survivors: String,
    #[serde(flatten)]
    details: TermDetails,
    problem: Option<String>,
}

/// The latest run that succeeded under `--once-per`.
#[derive(Debug, Serialize)]
struct SuccessView {
    token: u64,
    /// The store's time when it was granted.
    began_at: String,
}

/// A process of a command.
#[derive(Debug, Serialize)]
struct Process {
    pid: u32,
    command: String,
}

impl LeaseView {
    /// A lease without a record.
    pub(crate) fn absent(key: &Key) -> Self {
        Self { name: key.to_string(), state: "absent", free: true, ..Self::default() }
    }

    pub(crate) fn observed(seen: &Observation) -> Self {
        let mut lease = Self::absent(&seen.key);
        lease.state = match &seen.standing {
            Standing::Absent => "absent",
            Standing::Vacant => "vacant",
            Standing::Held(_) => "held",
            Standing::Revoked(_) => "revoked",
            Standing::Reserved(_) => "reserved",
            Standing::RanOut => "run-out",
            Standing::Dead => "dead",
            Standing::Closed => "closed",
            Standing::PlainKey => "key",
            Standing::Foreign(_) => "foreign",
            _ => "unknown",
        };
        lease.free = seen.standing.is_free();
        if let Standing::Foreign(what) = &seen.standing {
            lease.problem = Some(what.to_string());
        }
        if let Some(record) = &seen.record {
            lease.describe(record);
            lease.details = TermDetails::of(seen, record);
        }
        if let Some(Remaining { at_most, judged, .. }) = seen.standing.remaining() {
            (lease.left_ms, lease.judged) = (Some(duration::millis_up(at_most)), Some(judged));
        }
        if let Some(record) = seen.record.as_ref().filter(|_| seen.standing.is_held()) {
            let held = seen.seen_at.as_millis().saturating_sub(record.granted_at.as_millis());
            lease.held_ms = Some(held);
        }
        lease
    }

    /// Adds the processes that are alive although the lease has run out. `tenure run` waits for them.
    pub(crate) fn outlived_by(mut self, survivors: &Survivors) -> Self {
        if self.state == "run-out" && survivors.tree {
            (self.state, self.free) = ("outlived", false);
            let processes = survivors.processes.iter();
            let processes = processes.map(|it| Process { pid: it.pid, command: it.command.clone() });
            self.processes = processes.collect();
            self.survivors = outlived_reports::sentence(survivors);
        }
        self
    }

    /// A lease that could not be read.
    pub(crate) fn unreadable(key: &Key, error: &Error) -> Self {
        let state = if error.kind() == ErrorKind::Corrupt { "foreign" } else { "unreadable" };
        Self { state, free: false, problem: Some(error.to_string()), ..Self::absent(key) }
    }

    fn describe(&mut self, record: &Record) {
        if let Some(holder) = &record.holder {
            self.holder = Some(holder.id().to_string());
            self.address = holder.address().map(str::to_owned);
            self.labels = holder.labels().clone();
        }
        let granted = record.token > tenure::Token::ZERO;
        self.token = granted.then(|| record.token.get());
        self.granted_at = granted.then(|| record.granted_at.to_string());
        self.written_at = Some(record.written_at.to_string());
        self.ttl_ms = record.ttl.map(|ttl| ttl.as_millis());
        self.value = Some(record.value.to_string()).filter(|value| !value.is_empty());
        self.cannot_stop = record.cannot_stop().map(|because| because.to_string());
        self.last_success = record.last_success.map(|last| SuccessView {
            token: last.token.get(),
            began_at: WallTime::from_millis(last.began.as_micros() / 1_000).to_string(),
        });
        match &record.state {
            State::Reserved(successor) => self.successor = Some(successor.to_string()),
            State::Revoked(revocation) => {
                (self.by, self.because) =
                    (Some(revocation.by.to_string()), Some(revocation.because.to_string()));
            }
            State::Closed(closure) => {
                (self.by, self.because) = (Some(closure.by.to_string()), Some(closure.because.to_string()));
            }
            // For the others, the standing is enough.
            _ => {}
        }
    }

    /// Fails if the key is a plain key, for commands about one lease.
    pub(crate) fn ensure_lease(&self, store: &str) -> Result<(), Failure> {
        match self.state {
            "key" => {
                let name = plain(&self.name);
                let sentence =
                    format!("{name} on {store} is a plain key, not a lease: `tenure kv get {name}` reads it");
                Err(Failure::new(exit::USAGE, sentence))
            }
            _ => Ok(()),
        }
    }

    /// The ttl, if the record has one.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        self.ttl_ms.map(Duration::from_millis)
    }

    /// The lease in one line of text.
    pub(crate) fn sentence(&self) -> String {
        format!("{}: {}\n", plain(&self.name), self.standing())
    }

    /// The process of its holder and the times of its term, in lines of text.
    pub(crate) fn details(&self) -> String {
        self.details.text()
    }

    /// Its standing, as text.
    pub(crate) fn standing(&self) -> String {
        let holder = self.holder.as_deref().map(plain).unwrap_or_default();
        let token = self.token.map(|token| format!("token {token}")).unwrap_or_default();
        match self.state {
            "held" | "revoked" => {
                let (held, outlook) = (self.held().unwrap_or_default(), self.outlook());
                let unstoppable = self.unstoppable();
                format!("{} by {holder}, {token}, for {held}, {outlook}{unstoppable}", self.word("held"))
            }
            "reserved" => {
                let left = self.left().unwrap_or_default();
                format!("{}, for at most {left}", self.word(&self.long_state()))
            }
            "closed" => format!("{}, and never granted again", self.word(&self.long_state())),
            "outlived" => format!(
                "{}: the lease of {holder}, {token}, has run out, but its command is still alive, {}",
                self.word("run out"),
                self.survivors
            ),
            "run-out" if self.holder.is_some() => {
                format!("{}: the lease of {holder}, {token}, has run out", self.word("free"))
            }
            "run-out" => format!("{}: the reservation has run out", self.word("free")),
            "dead" => format!("{}: {holder}, {token}, is dead", self.word("free")),
            "vacant" if self.token.is_some() => {
                let succeeded = self.last_success.as_ref();
                let succeeded =
                    succeeded.map(|last| format!(", the last success began at {}", last.began_at));
                format!("{}, the last {token}{}", self.word("free"), succeeded.unwrap_or_default())
            }
            "key" if self.holder.is_some() => format!(
                "{} of {holder}, revision {}, not a lease",
                self.word("plain key"),
                self.token.unwrap_or_default()
            ),
            "key" => format!("{} without an entry, not a lease", self.word("plain key")),
            "foreign" => {
                format!("{}: {}", self.word("foreign"), plain(self.problem.as_deref().unwrap_or_default()))
            }
            _ => self.word("free"),
        }
    }

    /// The standing of the present term, beside earlier ones.
    pub(crate) fn present_term(&self) -> String {
        match self.state {
            "held" | "revoked" => format!("{}, {}", self.word("still held"), self.outlook()),
            "run-out" => format!("{}, and not granted since", self.word("run out")),
            "dead" => format!("{}, and not granted since", self.word("died")),
            _ => self.word(&self.long_state()),
        }
    }

    /// Longest remaining time of a held lease, and the thief that has revoked it, if there is one.
    fn outlook(&self) -> String {
        let left = self.left().unwrap_or_default();
        let judged = if self.judged == Some(false) { ", expiry not yet confirmed" } else { "" };
        let revoked =
            if self.state == "revoked" { format!(", {}", self.state_and_cause()) } else { String::new() };
        format!("at most {left} left{judged}{revoked}")
    }

    /// The cells of a table, in the order of [`Self::HEAD`].
    pub(crate) fn row(&self) -> [String; 6] {
        let mut state = self.word(&self.long_state());
        if self.judged == Some(false) {
            state.push_str(", expiry not yet confirmed");
        }
        [
            plain(&self.name),
            self.holder.as_deref().map_or(NOTHING.to_owned(), plain),
            self.token.map_or(NOTHING.to_owned(), |token| token.to_string()),
            self.held().unwrap_or(NOTHING.to_owned()),
            self.left().unwrap_or(NOTHING.to_owned()),
            state,
        ]
    }

    pub(crate) const HEAD: [&'static str; 6] =
        ["NAME", "HOLDER", "TOKEN", "HELD FOR", "LEFT AT MOST", "STATE"];

    fn held(&self) -> Option<String> {
        self.held_ms.map(|held| duration::at_least(Duration::from_millis(held)))
    }

    fn left(&self) -> Option<String> {
        self.left_ms.map(|left| duration::at_most(Duration::from_millis(left)))
    }

    fn long_state(&self) -> String {
        match (self.state, &self.successor) {
            ("revoked" | "closed", _) => self.state_and_cause(),
            ("reserved", Some(successor)) => format!("reserved for {}", plain(successor)),
            ("run-out", _) => "run out".to_owned(),
            ("key", _) => "plain key".to_owned(),
            (state, _) => state.to_owned(),
        }
    }

    fn state_and_cause(&self) -> String {
        let said = |text: &Option<String>| plain(text.as_deref().unwrap_or_default());
        match said(&self.because).as_str() {
            "" => format!("{} by {}", self.state, said(&self.by)),
            because => format!("{} by {} because {because}", self.state, said(&self.by)),
        }
    }

    fn unstoppable(&self) -> String {
        match &self.cannot_stop {
            Some(because) => format!(", its command cannot be stopped, because {}", plain(because)),
            None => String::new(),
        }
    }

    /// A word in the colour of the state: free, in use, or suspect.
    fn word(&self, word: &str) -> String {
        match self.state {
            _ if self.free => FREE.paint(word),
            "foreign" | "unreadable" | "closed" | "key" => SUSPECT.paint(word),
            _ => IN_USE.paint(word),
        }
    }
}

/// The colour of a word about a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colour(AnsiColor);

/// Free.
pub(crate) const FREE: Colour = Colour(AnsiColor::Green);
/// In use.
pub(crate) const IN_USE: Colour = Colour(AnsiColor::Yellow);
/// Suspect: needs attention.
pub(crate) const SUSPECT: Colour = Colour(AnsiColor::Red);

impl Colour {
    pub(crate) fn paint(self, word: &str) -> String {
        let style = Style::new().fg_color(Some(self.0.into()));
        format!("{style}{word}{style:#}")
    }
}

const NOTHING: &str = "-";
