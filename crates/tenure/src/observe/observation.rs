use std::sync::Arc;

use tenure_core::machine::Standing;
use tenure_core::record::Record;
use tenure_store::Key;

use crate::clock::WallTime;
use crate::{Error, ErrorKind};

/// One observer's view of a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observation {
    /// The key.
    pub key: Key,
    /// Its record; `None` if there is none, or the value is not a Tenure record.
    pub record: Option<Arc<Record>>,
    /// Its standing.
    pub standing: Standing,
    /// Time of the observation, by this machine's wall clock. Informational.
    pub seen_at: WallTime,
}

/// Result of a listing: each key with its observation.
pub type Observations = Vec<(Key, Result<Observation, Error>)>;

impl Observation {
    /// The record, if there is one. A value that is not a Tenure record is an error.
    pub(crate) fn into_record(self, store: &str) -> Result<Option<Arc<Record>>, Error> {
        match self.standing {
            Standing::Foreign(what) => {
                let key = &self.key;
                let sentence = format!("lease {key} on {store} has no Tenure record: {what}");
                Err(Error::new(ErrorKind::Corrupt, sentence))
            }
            _ => Ok(self.record),
        }
    }
}
