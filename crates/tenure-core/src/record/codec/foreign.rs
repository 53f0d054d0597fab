use super::{FORMAT, RECORD_MAX};

/// The reason why bytes are not a record that this version may replace.
///
/// For a program, every kind means the same: never overwrite, and report it. They differ in what an operator does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Foreign {
    /// The bytes are not JSON: another program's data, or a write that was cut short.
    #[error(
        "the bytes are not a Tenure record: they are not JSON ({why}); find out which program wrote them, or use \
         another key"
    )]
    NotJson {
        /// The message of the JSON parser, or of the check before it.
        why: String,
    },
    /// The bytes are JSON without the number `tenure` that every record begins with.
    #[error("the bytes are JSON of another program, not a Tenure record; use another key")]
    OtherProgram,
    /// The record has a newer format.
    #[error(
        "the record has format version {found} and this program reads version {FORMAT}; upgrade this program"
    )]
    NewerVersion {
        /// The format version of the record.
        found: u64,
    },
    /// The record requires features that this version does not have.
    #[error("the record needs features that this program does not have: {names:?}; upgrade this program")]
    UnknownCrit {
        /// The names of the features, shortened and at most eight of them.
        names: Vec<String>,
    },
    /// The record is in a state that this version does not know.
    #[error("the record is in the state {found:?}, which this program does not know; upgrade this program")]
    UnknownState {
        /// The name of the state, shortened.
        found: String,
    },
    /// The lease is kept alive by something other than its own renewals, which this version cannot judge.
    #[error("the lease is kept alive by {found:?}, which this program cannot judge; upgrade this program")]
    KeptBySession {
        /// The JSON of `kept_by`, shortened.
        found: String,
    },
    /// A part inside a field is unknown. It would be lost in a rewrite.
    #[error(
        "the record has a part that this program does not know and would lose: {field:?}; upgrade this program"
    )]
    UnknownPart {
        /// Path of the part, such as `holder.zone`, shortened.
        field: String,
    },
    /// The value is larger than any record.
    #[error(
        "{bytes} bytes are too many for a record of Tenure, which has at most {RECORD_MAX}; find out which program \
         wrote them"
    )]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// A field is missing, occurs twice, or breaks a rule of version 1.
    #[error("the record is damaged: {field:?} {why}; inspect it, and repair it by hand")]
    Damaged {
        /// Path of the field, such as `history[3].token`, shortened.
        field: String,
        /// The problem, as the second part of a sentence that begins with the field.
        why: String,
    },
}

impl Foreign {
    pub(super) fn damaged(field: &str, why: impl Into<String>) -> Self {
        Self::Damaged { field: field.to_owned(), why: why.into() }
    }

    /// The same error about a part of `outer`.
    pub(super) fn within(self, outer: &str) -> Self {
        let join = |inner: String| match (outer, inner.as_str()) {
            ("", _) => inner,
            (_, "") => outer.to_owned(),
            _ => format!("{outer}.{inner}"),
        };
        match self {
            Self::Damaged { field, why } => Self::Damaged { field: join(field), why },
            Self::UnknownPart { field } => Self::UnknownPart { field: join(field) },
            other => other,
        }
    }
}

/// The first characters of a text from outside: a message must not grow with its length.
pub(super) fn excerpt(text: &str) -> String {
    const CHARS_MAX: usize = 64;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
