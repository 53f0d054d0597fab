//! Kinds of requests, and the meaning of their answers.

use tenure_store::Reason;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Read,
    /// A read with `If-None-Match`: returns a value only if it has changed.
    ReadAgain,
    /// A write on the condition that there is no object.
    Create,
    /// A write on the condition that the object has a given version.
    Replace,
    List,
}

impl RequestKind {
    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Replace)
    }

    /// Meaning of the answer that the object is certainly missing.
    pub(crate) fn meaning_of_missing(self) -> AnswerMeaning {
        match self {
            Self::Read | Self::ReadAgain => AnswerMeaning::Absent,
            Self::Replace => AnswerMeaning::Conflict,
            Self::Create | Self::List => AnswerMeaning::Unknown,
        }
    }
}

/// Meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerMeaning {
    /// The request succeeded.
    Done,
    /// The object does not exist.
    Absent,
    /// The object has not changed.
    Unchanged,
    /// The object is not the expected one, so the write did not happen.
    Conflict,
    /// The write may have happened, or may still happen.
    Unknown,
    /// The store requests fewer calls.
    Throttled,
    /// The request certainly had no effect.
    Refused(Reason),
}

/// Flaw of credentials that a server refuses. Others, which a service hands out later, may not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CredentialsFlaw {
    /// They were valid once.
    Expired,
    /// The server does not know them: they may have expired long ago, or be those of another server.
    NotKnown,
}
