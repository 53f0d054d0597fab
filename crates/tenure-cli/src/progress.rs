use std::io::IsTerminal;

use serde_json::{Value, json};

use crate::output;

/// Messages on standard error while the command works. Under `tenure run`, standard error otherwise belongs to the
/// child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressOutput {
    /// Errors only.
    Quiet,
    /// One JSON object per event.
    Json,
    /// Sentences.
    People { on_terminal: bool },
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// Its name, in JSON.
    pub(crate) name: &'static str,
    /// Its fields, in JSON.
    pub(crate) fields: Value,
    /// Its sentence.
    pub(crate) sentence: String,
    /// Its importance.
    pub(crate) importance: Importance,
}

/// Importance of an event for a reader of sentences. JSON has all events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Importance {
    /// JSON only.
    Detail,
    /// For a terminal.
    Interactive,
    /// For a log, too.
    News,
    /// Always, even with `--quiet`.
    Trouble,
}

impl ProgressOutput {
    pub(crate) fn new(quiet: bool, json: bool) -> Self {
        match (json, quiet) {
            (true, _) => Self::Json,
            (false, true) => Self::Quiet,
            (false, false) => Self::People { on_terminal: std::io::stderr().is_terminal() },
        }
    }

    pub(crate) fn say(self, notice: &Notice) {
        let heard = match self {
            Self::Json => true,
            Self::Quiet => notice.importance == Importance::Trouble,
            Self::People { on_terminal } => match notice.importance {
                Importance::Detail => false,
                Importance::Interactive => on_terminal,
                Importance::News | Importance::Trouble => true,
            },
        };
        if !heard {
            return;
        }
        if self != Self::Json {
            return output::say_without_waiting(&format!("tenure: {}", notice.sentence));
        }
        let mut object = json!({ "event": notice.name });
        if let (Some(object), Some(fields)) = (object.as_object_mut(), notice.fields.as_object()) {
            object.extend(fields.clone());
        }
        output::say_without_waiting(&object.to_string());
    }
}
