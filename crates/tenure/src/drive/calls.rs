//! Calls on the store: from effects to answers.

use std::sync::Arc;

use bytes::Bytes;
use tenure_store::{Applied, Expect, Key, Put, Reading, Store, StoreError};

use super::recorder::AttemptOutcome;
use crate::machine::{Content, Fault, Input, Look, Outcome};
use crate::record;

/// What a call gave, and what the store said if it failed.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) input: Input,
    pub(super) error: Option<Arc<str>>,
}

pub(super) async fn read(store: Arc<dyn Store>, key: Key) -> Answer {
    match store.get(&key).await {
        Ok(reading) => Answer { input: Input::Read(Ok(look(reading))), error: None },
        Err(error) => Answer { input: Input::Read(Err(fault(&error))), error: Some(sentence(&error)) },
    }
}

pub(super) async fn write(store: Arc<dyn Store>, key: Key, value: Bytes, expect: Expect) -> Answer {
    match store.put(&key, value, expect).await {
        Ok(Put::Applied(Applied { version, time })) => {
            Answer { input: Input::Written(Outcome::Applied { version, time }), error: None }
        }
        Ok(Put::Conflict(_)) => Answer { input: Input::Written(Outcome::Conflict), error: None },
        Err(error) => {
            Answer { input: Input::Written(Outcome::Fault(fault(&error))), error: Some(sentence(&error)) }
        }
    }
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

/// The error with its causes, in one sentence.
fn sentence(error: &StoreError) -> Arc<str> {
    error.to_string().into()
}
