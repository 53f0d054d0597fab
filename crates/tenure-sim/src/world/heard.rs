use std::fmt;

use tenure_core::machine::{Content, Input, Look};
use tenure_core::record::State;

/// Displays an answer in a few words.
pub(crate) struct AnswerWords<'a>(pub(crate) &'a Input);

impl fmt::Display for AnswerWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Input::Read(Ok(Look { content: Content::Record(record, version), .. })) => {
                let state = match &record.state {
                    State::Vacant => "vacant",
                    State::Held => "held",
                    State::Revoked(_) => "revoked",
                    _ => "kept",
                };
                let (token, nonce) = (record.token, record.nonce);
                write!(f, "read: {state}, token {token}, version {version}, nonce {nonce}")
            }
            Input::Read(Ok(Look { content: Content::Absent, .. })) => f.write_str("read: nothing there"),
            Input::Read(Ok(Look { content: Content::Foreign { what, .. }, .. })) => write!(f, "read: {what}"),
            Input::Read(Err(fault)) => write!(f, "read: {fault:?}"),
            Input::Written(outcome) => write!(f, "write: {outcome:?}"),
            input => write!(f, "{input:?}"),
        }
    }
}
