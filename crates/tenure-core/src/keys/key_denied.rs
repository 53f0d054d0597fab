use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Key, Reason};

use super::SeenEntry;
use crate::machine::denied::refusal;
use crate::machine::{Denied, Fault};
use crate::record::Record;
use crate::{Error, ErrorKind, Token};

/// Reason why an operation on a plain key failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum KeyDenied {
    /// The entry belongs to another owner, which alone renews and releases it.
    NotOwner(SeenEntry),
    /// There is no entry: it ran out, was released, or never existed.
    NoEntry,
    /// Another participant's record is there, and an own write may have been applied before it.
    Overtaken(Option<Arc<Record>>),
    /// The store did not answer in time.
    Unavailable(Option<Fault>),
    /// The store holds back changes, and can be asked again after this time. The source of the error says why.
    Withheld(Duration),
    /// The store refused the call.
    Refused(Reason),
    /// The value is not a record that this version understands.
    Foreign(Arc<str>),
    /// The record is a lease, not a plain key.
    Lease(Arc<Record>),
    /// The revision went back: a record was restored, or changed from outside.
    WentBack {
        /// The greatest revision seen before.
        seen: Token,
    },
    /// The time in the store's answers does not advance, so it is no floor of revisions.
    ClockStands,
    /// The revision is at the top of its range.
    RevisionsExhausted,
}

impl KeyDenied {
    /// The error of an operation that failed for this reason. With `in_doubt`, a write of the operation may have been
    /// applied, or may still be.
    pub fn error(&self, key: &Key, store: &str, in_doubt: bool) -> Error {
        let doubt = if in_doubt { IN_DOUBT } else { "" };
        let title = if key.is_of_slots() { key.titled() } else { format!("key {key}") };
        // The size of a group is withheld as a grant of one of its slots is.
        let kind = match self {
            Self::Withheld(_) if key.is_of_slots() => ErrorKind::Held,
            _ => self.kind(),
        };
        let error = Error::new(kind, format!("{title} on {store} {}{doubt}", self.sentence()));
        match self {
            Self::Refused(reason) => error.of_denial(&Denied::Refused(*reason)),
            Self::Withheld(after) => error.of_denial(&Denied::Withheld(*after)),
            _ => error,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotOwner(_) | Self::NoEntry => ErrorKind::Lost,
            Self::Overtaken(_) | Self::Unavailable(_) | Self::Withheld(_) => ErrorKind::Unavailable,
            Self::Refused(reason) => (*reason).into(),
            Self::ClockStands => Reason::Unsupported.into(),
            Self::Lease(_) => ErrorKind::Invalid,
            Self::Foreign(_) | Self::WentBack { .. } | Self::RevisionsExhausted => ErrorKind::Corrupt,
        }
    }

    /// The part of the message after the name of the key.
    fn sentence(&self) -> String {
        match self {
            Self::NotOwner(entry) => format!(
                "is an entry of {} (revision {}), and only its owner renews and releases it: act as that owner, or replace \
                 the entry by its revision",
                name_of_owner(&entry.record),
                entry.record.token
            ),
            Self::NoEntry => {
                "has no entry: it ran out, was released, or never existed. Create an entry if you still need one"
                    .to_owned()
            }
            Self::Overtaken(Some(record)) => format!(
                "shows revision {} of {} after an answer of the store was lost",
                record.token,
                name_of_owner(record)
            ),
            Self::Overtaken(None) => "was deleted after an answer of the store was lost".to_owned(),
            Self::Unavailable(_) => "could not be reached in time: try again later".to_owned(),
            Self::Withheld(after) => format!(
                "cannot be changed yet, because the store holds back changes: wait, or try again in {}s",
                after.as_millis().div_ceil(1_000)
            ),
            Self::Refused(reason) => format!("was not reached: {}", refusal(*reason)),
            Self::Foreign(what) => format!("has a value that this version does not overwrite: {what}"),
            Self::Lease(record) => match &record.holder {
                Some(holder) => format!(
                    "is a lease of {} (token {}), not a plain key: use another name",
                    holder.id(),
                    record.token
                ),
                None => "is a lease without a holder, not a plain key: use another name".to_owned(),
            },
            Self::WentBack { seen } => format!(
                "went back in time: revision {seen} was seen before, and the store now shows a smaller one. Nothing was \
                 changed: find out what deleted or restored the record, then restart this process"
            ),
            Self::ClockStands => {
                "was not changed, because the time in the store's answers stands still: a cache on the way may answer \
                 instead of the store, so let it forward every request, or set the clock of the store"
                    .to_owned()
            }
            Self::RevisionsExhausted => {
                "is at the top of its range of revisions, and nothing was changed: use another key".to_owned()
            }
        }
    }
}

fn name_of_owner(record: &Record) -> &str {
    record.holder.as_ref().map_or("no owner", |holder| holder.id())
}

const IN_DOUBT: &str =
    ". The change may have been applied, or may still be: read the key before trying again";
