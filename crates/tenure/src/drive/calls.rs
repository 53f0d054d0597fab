//! Calls on the store: from effects to answers.

use std::sync::Arc;

use bytes::Bytes;
use tenure_store::{Applied, Expect, Key, Put, Reading, Reason, Store, StoreError, Version};

use super::recorder::AttemptOutcome;
use crate::machine::{Content, Fault, Input, Look, Outcome};
use crate::{Kind, record};

/// What a call gave, and what the store said if it failed.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) input: Input,
    pub(super) error: Option<Arc<str>>,
}

pub(super) async fn read(store: Arc<dyn Store>, key: Key) -> Answer {
    match store.get(&key).await {
        Ok(reading) => Answer { input: Input::Read(Ok(look(reading))), error: None },
        Err(error) => {
            Answer { input: Input::Read(Err(fault(&error))), error: Some(error.to_string().into()) }
        }
    }
}

pub(super) async fn write(store: Arc<dyn Store>, key: Key, value: Bytes, expect: Expect) -> Answer {
    match store.put(&key, value, expect.clone()).await {
        Ok(Put::Applied(Applied { version, .. })) if !is_new(&version, &expect) => {
            // Whoever else saw this version could replace what we wrote. Nothing may be built on it.
            let refused = Fault::Refused(Reason::Unsupported);
            let error = format!("the store gave a write the version {version:?}, which is no new one");
            Answer { input: Input::Written(Outcome::Fault(refused)), error: Some(error.into()) }
        }
        Ok(Put::Applied(Applied { version, time })) => {
            Answer { input: Input::Written(Outcome::Applied { version, time }), error: None }
        }
        Ok(Put::Conflict(_)) => Answer { input: Input::Written(Outcome::Conflict), error: None },
        Err(error) => Answer {
            input: Input::Written(Outcome::Fault(fault(&error))),
            error: Some(error.to_string().into()),
        },
    }
}

fn is_new(version: &Version, expect: &Expect) -> bool {
    !version.as_str().is_empty() && *expect != Expect::Version(version.clone())
}

pub(super) fn look(reading: Reading) -> Look {
    let Some(entry) = reading.entry else {
        return Look { content: Content::Absent, age: None, time: reading.time };
    };
    let content = match record::decode(&entry.value) {
        Ok(record) => Content::Record(Arc::new(record), entry.version),
        Err(foreign) => Content::Foreign { what: foreign.to_string().into(), version: entry.version },
    };
    Look { content, age: entry.age, time: reading.time }
}

pub(super) fn outcome(input: &Input) -> AttemptOutcome {
    let fault = match input {
        Input::Read(Ok(_)) => return AttemptOutcome::Answered,
        Input::Written(Outcome::Applied { .. }) => return AttemptOutcome::Applied,
        Input::Written(Outcome::Conflict) => return AttemptOutcome::Conflict,
        Input::Read(Err(fault)) | Input::Written(Outcome::Fault(fault)) => fault,
        _ => unreachable!("not the answer to a call"),
    };
    match fault {
        Fault::Unknown => AttemptOutcome::Unknown,
        Fault::Throttled(_) => AttemptOutcome::Throttled,
        Fault::Refused(_) => AttemptOutcome::Refused,
    }
}

pub(super) fn fault(error: &StoreError) -> Fault {
    match error {
        StoreError::Refused(refused) => Fault::Refused(refused.reason),
        StoreError::Unknown(_) => Fault::Unknown,
        StoreError::Throttled(throttled) => Fault::Throttled(throttled.after),
    }
}

/// What to do about an error of the store.
pub(super) fn kind(error: &StoreError) -> Kind {
    match error {
        StoreError::Refused(refused) => refused_kind(refused.reason),
        StoreError::Unknown(_) | StoreError::Throttled(_) => Kind::Unavailable,
    }
}

/// What to do about a call that was refused.
pub(crate) fn refused_kind(reason: Reason) -> Kind {
    match reason {
        Reason::Unreachable | Reason::Denied => Kind::Unavailable,
        Reason::Unsupported => Kind::Unsupported,
        Reason::Invalid => Kind::Invalid,
        Reason::Damaged => Kind::Corrupt,
    }
}
