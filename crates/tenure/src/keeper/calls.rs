//! Calls on the store: from effects to answers.

use std::sync::Arc;

use bytes::Bytes;
use tenure_core::machine::{Content, Fault, Input, Look, Outcome, Recalled, Write};
use tenure_core::record;
use tenure_store::{Applied, Expect, Key, Put, Reading, Reason, Store, StoreError, Throttled, Version};

use super::logbook_client::{self, LogbookClient};
use super::recorder::AttemptOutcome;
use crate::trust::breach::Breach;

/// The answer to a call, with the error of the store if it failed.
#[derive(Debug)]
pub(crate) struct CallAnswer {
    pub(crate) input: Input,
    pub(crate) error: Option<Arc<str>>,
    /// Earlier sighting of the version that a read returned.
    pub(crate) recalled: Option<Recalled>,
    /// A promise that the answer breaks.
    pub(crate) breach: Option<Breach>,
}

impl CallAnswer {
    pub(crate) fn new(input: Input, error: Option<Arc<str>>) -> Self {
        Self { input, error, recalled: None, breach: None }
    }
}

/// Reads a key. With `logbook` this is the first read of the key: earlier sightings on this machine count.
pub(crate) async fn read(store: Arc<dyn Store>, key: Key, logbook: Option<Arc<LogbookClient>>) -> CallAnswer {
    let look = match store.get(&key).await {
        Ok(reading) => look(reading),
        Err(error) => {
            return CallAnswer::new(Input::Read(Err(fault(&error))), Some(error.to_string().into()));
        }
    };
    let recalled = match logbook {
        Some(logbook) if logbook_client::is_worth_logging(&look, store.guarantees().clock) => {
            logbook.recall(&key).await
        }
        _ => None,
    };
    CallAnswer { recalled, ..CallAnswer::new(Input::Read(Ok(look)), None) }
}

pub(crate) async fn write(store: Arc<dyn Store>, key: Key, value: Bytes, write: Write) -> CallAnswer {
    let (expect, purpose) = (write.expect.clone(), write.for_store());
    let sent = tenure_store::Write::new(value, write.expect).for_purpose(purpose);
    match store.write(&key, sent).await {
        Ok(Put::Applied(Applied { version, .. })) if !is_new(&version, &expect) => {
            // Another process that saw this version could replace the record. The write must not count as applied.
            let refused = Fault::Refused(Reason::Unsupported);
            let breach = Breach::OldVersion(version);
            let error = format!("the store broke a promise: {breach}");
            let answer = CallAnswer::new(Input::Written(Outcome::Fault(refused)), Some(error.into()));
            CallAnswer { breach: Some(breach), ..answer }
        }
        Ok(Put::Applied(Applied { version, time, .. })) => {
            CallAnswer::new(Input::Written(Outcome::Applied { version, time }), None)
        }
        Ok(Put::Conflict(_)) => CallAnswer::new(Input::Written(Outcome::Conflict), None),
        Err(error) => {
            CallAnswer::new(Input::Written(Outcome::Fault(fault(&error))), Some(error.to_string().into()))
        }
    }
}

/// Answer to a write of a record that could not be decoded again. The write is not sent.
pub(crate) fn unwritable(foreign: &record::Foreign) -> CallAnswer {
    let refused = Fault::Refused(Reason::Invalid);
    let error = format!("the record is not written, because it could not be read back: {foreign}");
    CallAnswer::new(Input::Written(Outcome::Fault(refused)), Some(error.into()))
}

/// True if a write under this condition can have got this version.
pub(crate) fn is_new(version: &Version, expect: &Expect) -> bool {
    !version.as_str().is_empty() && *expect != Expect::Version(version.clone())
}

pub(crate) fn look(reading: Reading) -> Look {
    let Some(entry) = reading.entry else {
        return Look { content: Content::Absent, age: None, time: reading.time };
    };
    let content = match record::decode(&entry.value) {
        Ok(record) => Content::Record(Arc::new(record), entry.version),
        Err(foreign) => Content::Foreign { what: foreign.to_string().into(), version: entry.version },
    };
    Look { content, age: entry.age, time: reading.time }
}

pub(crate) fn outcome(input: &Input) -> AttemptOutcome {
    let fault = match input {
        Input::Read(Ok(_)) => return AttemptOutcome::Answered,
        Input::Written(Outcome::Applied { .. }) => return AttemptOutcome::Applied,
        Input::Written(Outcome::Conflict) => return AttemptOutcome::Conflict,
        Input::Read(Err(fault)) | Input::Written(Outcome::Fault(fault)) => fault,
        _ => unreachable!("not the answer to a call"),
    };
    match fault {
        Fault::Unknown => AttemptOutcome::Unknown,
        Fault::Throttled(_) | Fault::Withheld(_) => AttemptOutcome::Throttled,
        Fault::Refused(_) => AttemptOutcome::Refused,
    }
}

/// True if the answer shows that the store has trouble, or cannot be reached.
pub(crate) fn is_sign_of_trouble(input: &Input) -> bool {
    let (Input::Read(Err(fault)) | Input::Written(Outcome::Fault(fault))) = input else { return false };
    match fault {
        Fault::Unknown | Fault::Throttled(_) | Fault::Withheld(_) => true,
        Fault::Refused(reason) => *reason == Reason::Unreachable,
    }
}

pub(crate) fn fault(error: &StoreError) -> Fault {
    match error {
        StoreError::Refused(refused) => Fault::Refused(refused.reason),
        StoreError::Unknown(_) => Fault::Unknown,
        StoreError::Throttled(Throttled { after, cause: Some(_), .. }) => {
            Fault::Withheld(after.unwrap_or_default())
        }
        StoreError::Throttled(throttled) => Fault::Throttled(throttled.after),
    }
}
