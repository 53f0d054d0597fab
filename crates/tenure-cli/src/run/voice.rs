use std::io::IsTerminal;

use serde_json::{Value, json};

use crate::output;

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
            Self::People { .. } => format!("tenure: {}", event.sentence),
            Self::Json => {
                let mut object = json!({ "event": event.name });
                if let (Some(object), Some(fields)) = (object.as_object_mut(), event.fields.as_object()) {
                    object.extend(fields.clone());
                }
                object.to_string()
            }
        };
        output::say(&line);
    }
}
