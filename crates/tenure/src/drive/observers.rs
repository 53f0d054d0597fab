use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_store::{Key, Store, StoreError};

use super::calls;
use crate::machine::{Content, Observer};
use crate::record::Record;
use crate::{Error, Kind};

/// Those who look at keys from outside, one per key, so that nobody is shown an older token after a newer one.
#[derive(Debug, Default)]
pub(super) struct Observers(Mutex<HashMap<Key, Observer>>);

impl Observers {
    /// The record of a key as it is now; `None` if there is none.
    pub(super) async fn look(
        &self,
        store: &dyn Store,
        name: &str,
        key: &Key,
    ) -> Result<Option<Arc<Record>>, Error> {
        let mut older = None;
        // An answer that was overtaken by a newer one is asked for again; one that stays older has gone back.
        for _ in 0..LOOKS_MAX {
            let reading = store.get(key).await.map_err(|error| unreadable(name, key, error))?;
            match calls::look(reading).content {
                Content::Absent => return Ok(None),
                Content::Foreign { what, .. } => {
                    let sentence = format!("lease {key} on {name} has no record of ours: {what}. Look at it");
                    return Err(Error::new(Kind::Corrupt, sentence));
                }
                content @ Content::Record(..) => match self.show(key, &content) {
                    Some(record) => return Ok(Some(record)),
                    None => older = Some(content),
                },
            }
        }
        let token = match older {
            Some(Content::Record(record, _)) => record.token,
            _ => unreachable!("only an older record is looked at again"),
        };
        Err(Error::new(
            Kind::Corrupt,
            format!(
                "lease {key} on {name} went back in time: it shows token {token}, and a greater one was shown before. Look \
                 what restored the record"
            ),
        ))
    }

    fn show(&self, key: &Key, content: &Content) -> Option<Arc<Record>> {
        let mut observers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if observers.len() >= KEYS_MAX && !observers.contains_key(key) {
            observers.clear();
        }
        observers.entry(key.clone()).or_default().show(content)
    }
}

fn unreadable(store: &str, key: &Key, error: StoreError) -> Error {
    let kind = calls::kind(&error);
    Error::new(kind, format!("lease {key} on {store} could not be read: {error}")).because(error)
}

/// How often a look is repeated when it was overtaken.
const LOOKS_MAX: u32 = 3;

/// How many keys are remembered: beyond that, what was shown before is forgotten.
const KEYS_MAX: usize = 100_000;
