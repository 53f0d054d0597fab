use std::io::IsTerminal;

use serde_json::{Value, json};

use crate::output;

/// What the command says on standard error while it works. Under `tenure run` that otherwise belongs to the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressOutput {
    /// Trouble alone.
    Quiet,
    /// One JSON object for each event.
    Json,
    /// Sentences.
    People { on_terminal: bool },
}

/// What happens, for people and for programs.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// Its name, for programs.
    pub(crate) name: &'static str,
    /// More of it, for programs.
    pub(crate) fields: Value,
    /// The sentence for people.
    pub(crate) sentence: String,
    /// Who wants to hear it.
    pub(crate) importance: Importance,
}

/// How much an event matters to people. Programs are told everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Importance {
    /// To programs alone: people see it for themselves.
    Detail,
    /// To somebody who sits at a terminal.
    Interactive,
    /// To whoever reads the log.
    News,
    /// To everybody, also those who asked for quiet.
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
