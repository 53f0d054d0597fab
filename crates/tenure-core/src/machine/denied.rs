use std::sync::Arc;

use tenure_store::{Key, Reason};

use super::{Fault, Lost, Sighting};
use crate::record::{Record, State};
use crate::{Error, ErrorKind, Holder, Token};

/// Why a lease was not granted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Denied {
    /// Somebody else has it.
    Held(Arc<Record>),
    /// Another holder has it and was not asked to release it: that holder cannot stop the work under it.
    Unstoppable(Arc<Record>),
    /// The record of the former holder has run out, and its work is seen to go on.
    Outlived {
        /// That record.
        record: Arc<Record>,
        /// The sighting of its witness.
        sighting: Sighting,
    },
    /// The store did not answer in time.
    Unavailable(Option<Fault>),
    /// The store would not take the call.
    Refused(Reason),
    /// What is there is not a record this version understands.
    Foreign(Arc<str>),
    /// The key was retired.
    Closed(Arc<Record>),
    /// The token went back on a store that has no clock to make up for it.
    WentBack {
        /// The greatest token seen before.
        seen: Token,
    },
    /// The token is at the top of its range.
    TokensExhausted,
    /// The term of the handle is over, or others have it.
    StaleHandle(Lost),
    /// It was not wanted any more.
    Cancelled,
}

impl Denied {
    /// The error of a lease that was not granted to this holder.
    pub fn error(&self, key: &Key, store: &str, holder: &Holder) -> Error {
        let (kind, what) = match self {
            Self::Held(record) => match &record.state {
                State::Reserved(successor) => (
                    ErrorKind::Held,
                    format!(
                        "is reserved for {successor} (token {}): wait, or do something else",
                        record.token
                    ),
                ),
                _ => {
                    let by = record.holder.as_ref().map_or("somebody", |holder| holder.id());
                    let until =
                        format!("for at most {} after its latest renewal", record.ttl.unwrap_or_default());
                    (
                        ErrorKind::Held,
                        format!(
                            "is held by {by} (token {}) {until}: wait, or do something else",
                            record.token
                        ),
                    )
                }
            },
            Self::Unstoppable(record) => {
                let by = record.holder.as_ref().map_or("somebody", |holder| holder.id());
                let because = record.cannot_stop().map_or("", |because| because);
                (
                    ErrorKind::Held,
                    format!(
                        "is held by {by} (token {}), which cannot stop the work under it, and was not asked to: {because}. End \
                     that work, or wait until it ends",
                        record.token
                    ),
                )
            }
            Self::Outlived { record, sighting } => {
                let by = record.holder.as_ref().map_or("somebody", |holder| holder.id());
                (
                    ErrorKind::Held,
                    format!(
                        "was held by {by} (token {}) and has run out, but {}. End it, or wait until it ends",
                        record.token,
                        whose_work(*sighting)
                    ),
                )
            }
            Self::Unavailable(_) => {
                (ErrorKind::Unavailable, format!("could not be granted to {holder} in time: try again later"))
            }
            Self::Refused(reason) => (
                (*reason).into(),
                match reason {
                    Reason::Unsupported => {
                        format!("was not granted to {holder}: the store cannot do what is needed")
                    }
                    Reason::Invalid => {
                        format!("was not granted to {holder}: the store does not accept the call")
                    }
                    Reason::Damaged => format!(
                        "was not granted to {holder}: look at what is stored there, which is no record and was not overwritten"
                    ),
                    Reason::Denied => {
                        format!("was not granted to {holder}: the store denied access, check the credentials")
                    }
                    Reason::Unreachable => format!("was not granted to {holder}: {reason}, try again later"),
                    Reason::Gone => format!("was not granted to {holder}: {reason}, open it anew"),
                    _ => format!("was not granted to {holder}: {reason}"),
                },
            ),
            Self::Foreign(what) => (
                ErrorKind::Corrupt,
                format!(
                    "has no record that this version may overwrite, and nothing was: {what}. Look at it, and move it away"
                ),
            ),
            Self::Closed(record) => match &record.state {
                State::Closed(closure) => (
                    ErrorKind::Invalid,
                    format!(
                        "was closed by {} (token {}): {}. Use another key",
                        closure.by, record.token, closure.because
                    ),
                ),
                _ => (ErrorKind::Invalid, "was closed: use another key".to_owned()),
            },
            Self::WentBack { seen } => (
                ErrorKind::Corrupt,
                format!(
                    "went back in time: token {seen} was seen before, and the store now shows less and has no clock to \
                 make up for it. Nothing is granted; look what deleted or restored the record, and restart to begin anew"
                ),
            ),
            Self::TokensExhausted => (
                ErrorKind::Corrupt,
                "is at the top of its token range, and nothing is granted: use another key".to_owned(),
            ),
            Self::StaleHandle(why) => {
                (ErrorKind::Lost, format!("is not held by {holder} any more, stop acting: {why}"))
            }
            Self::Cancelled => (ErrorKind::Unavailable, format!("is not wanted by {holder} any more")),
        };
        Error::new(kind, format!("lease {key} on {store} {what}"))
    }
}

/// The part of a former term that is alive, in words.
fn whose_work(sighting: Sighting) -> &'static str {
    if sighting.guards_locked {
        "a process of its command is still alive, and so is one that guards it"
    } else {
        "a process of its command is still alive, an orphan that nothing guards any more"
    }
}
