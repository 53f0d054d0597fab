use std::cell::OnceCell;
use std::io::IsTerminal;

use serde_json::{Value, json};
use tenure::clock::{BootClock, Clock};
use tenure::{Key, Lease};

use crate::output;

/// Events on standard error while a command works for one lease, or for a slot of one group. Under `tenure run`, standard
/// error otherwise belongs to the child.
#[derive(Debug)]
pub(crate) struct ProgressOutput {
    verbosity: Verbosity,
    /// True if each event is a JSON object; false if it is a sentence.
    json: bool,
    on_terminal: bool,
    /// The lease or the group, as the user named it.
    name: String,
    /// URL of the store.
    store: String,
    /// The grant of this command, once there is one.
    granted: OnceCell<Grant>,
}

/// Number of events that the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// `--quiet`.
    Quiet,
    Normal,
    /// `--verbose`.
    Verbose,
}

/// The holder and the token that every event has after the grant.
#[derive(Debug)]
struct Grant {
    holder: String,
    token: u64,
    slot: Option<u16>,
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// Its name, in JSON.
    pub(crate) name: &'static str,
    /// The fields that other events do not have, in JSON. A holder or token among them is that of another holder.
    pub(crate) fields: Value,
    /// Its sentence.
    pub(crate) sentence: String,
    /// Its importance.
    pub(crate) importance: Importance,
}

/// The readers that an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Importance {
    /// `--verbose` only, in JSON too.
    Verbose,
    /// JSON only: for people, the error at the end of the command says it.
    Machine,
    /// JSON and `--verbose`.
    Detail,
    /// JSON, `--verbose`, and logs: a person at a terminal sees the command itself.
    Log,
    /// Every reader, except with `--quiet`.
    News,
    /// Every reader, even with `--quiet`.
    Trouble,
}

impl Verbosity {
    pub(crate) fn of(quiet: bool, verbose: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Verbose,
            (false, false) => Self::Normal,
        }
    }
}

impl ProgressOutput {
    /// The events of a command that works for the lease or the group with this name.
    pub(crate) fn new(verbosity: Verbosity, json: bool, name: &str, store: &str) -> Self {
        Self {
            verbosity,
            json,
            on_terminal: std::io::stderr().is_terminal(),
            name: name.to_owned(),
            store: store.to_owned(),
            granted: OnceCell::new(),
        }
    }

    /// From now on, events have the holder, the token and the slot of this lease.
    pub(crate) fn grant(&self, lease: &Lease) {
        let _ = self.granted.set(Grant {
            holder: lease.holder().id().to_string(),
            token: lease.token().get(),
            slot: lease.key().slot_index(),
        });
    }

    /// True if each event is a JSON object.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) fn say(&self, notice: &Notice) {
        if !self.wants(notice.importance) {
            return;
        }
        if self.json {
            output::say_without_waiting(&self.object(notice).to_string());
        } else {
            output::say_without_waiting(&format!("tenure: {}", notice.sentence));
        }
    }

    fn wants(&self, importance: Importance) -> bool {
        let verbose = self.verbosity == Verbosity::Verbose;
        match importance {
            Importance::Verbose => verbose,
            Importance::Machine => self.json,
            _ if self.json => true,
            Importance::Detail => verbose,
            Importance::Log => verbose || self.verbosity == Verbosity::Normal && !self.on_terminal,
            Importance::News => self.verbosity != Verbosity::Quiet,
            Importance::Trouble => true,
        }
    }

    /// The event in JSON. The first fields are the same in all events: `docs/reference/command/run.md`.
    fn object(&self, notice: &Notice) -> Value {
        let granted = self.granted.get();
        let mut object = json!({
            "event": notice.name,
            "time": BootClock::new().wall().to_string(),
            "name": self.name,
            "token": granted.map(|grant| grant.token),
            "holder": granted.map(|grant| &grant.holder),
            "store": self.store,
        });
        if let Some(slot) = granted.and_then(|grant| grant.slot) {
            object["slot"] = json!(slot);
        }
        if let (Some(object), Some(fields)) = (object.as_object_mut(), notice.fields.as_object()) {
            object.extend(fields.clone());
        }
        object
    }
}

/// The slot in front of other fields, if the key is one.
pub(crate) fn with_slot(key: &Key, fields: Value) -> Value {
    let Some(slot) = key.slot_index() else { return fields };
    let mut all = json!({ "slot": slot });
    if let (Value::Object(all), Value::Object(fields)) = (&mut all, fields) {
        all.extend(fields);
    }
    all
}
