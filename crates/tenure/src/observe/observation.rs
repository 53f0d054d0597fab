use std::sync::Arc;

use tenure_core::machine::Standing;
use tenure_core::record::Record;
use tenure_store::Key;

use crate::clock::WallTime;
use crate::{Error, ErrorKind};

/// What somebody who only looks has seen of a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observation {
    /// The key.
    pub key: Key,
    /// Its record; `None` if there is none, or none of ours.
    pub record: Option<Arc<Record>>,
    /// How it stands.
    pub standing: Standing,
    /// When it was seen, by this machine's wall clock. For people.
    pub seen_at: WallTime,
}

/// What a listing gives: each key, and what was seen of it.
pub type Observations = Vec<(Key, Result<Observation, Error>)>;

impl Observation {
    /// The record, if there is one. What is there and is none of ours is an error.
    pub(crate) fn into_record(self, store: &str) -> Result<Option<Arc<Record>>, Error> {
        match self.standing {
            Standing::Foreign(what) => {
                let key = &self.key;
                let sentence = format!("lease {key} on {store} has no record of ours: {what}. Look at it");
                Err(Error::new(ErrorKind::Corrupt, sentence))
            }
            _ => Ok(self.record),
        }
    }
}
