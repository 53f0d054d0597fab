use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::{Value, json};

/// What `tenure run` says on standard error, which otherwise belongs to the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// Nothing but errors.
    Quiet,
    /// One JSON object for each event.
    Json,
    /// Sentences. What is only nice to know is said on a terminal alone.
    People { on_terminal: bool },
}

/// What happens, for people and for programs.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// Its name, for programs.
    pub(super) name: &'static str,
    /// More of it, for programs.
    pub(super) fields: Value,
    /// The sentence for people.
    pub(super) sentence: String,
    /// Said to people on a terminal alone.
    pub(super) nice_to_know: bool,
}

impl Voice {
    pub(super) fn new(quiet: bool, json: bool) -> Self {
        match (json, quiet) {
            (true, _) => Self::Json,
            (false, true) => Self::Quiet,
            (false, false) => Self::People { on_terminal: std::io::stderr().is_terminal() },
        }
    }

    pub(super) fn say(self, event: &Event) {
        let line = match self {
            Self::Quiet => return,
            Self::People { on_terminal } if event.nice_to_know && !on_terminal => return,
            Self::People { .. } => format!("tenure: {}\n", event.sentence),
            Self::Json => {
                let mut object = json!({ "event": event.name });
                if let (Some(object), Some(fields)) = (object.as_object_mut(), event.fields.as_object()) {
                    object.extend(fields.clone());
                }
                format!("{object}\n")
            }
        };
        // In one write, so that it does not mix with what the child says. If nobody reads it, nobody misses it.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// A duration for people: whole seconds from two seconds on.
pub(super) fn about(span: Duration) -> String {
    if span >= Duration::from_secs(2) {
        format!("{}s", span.as_secs())
    } else {
        format!("{}ms", span.as_millis())
    }
}
