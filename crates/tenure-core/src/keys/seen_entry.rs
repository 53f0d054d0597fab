use std::sync::Arc;

use crate::machine::Remaining;
use crate::record::Record;

/// An entry of a plain key, as a participant saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenEntry {
    /// Its record: the token is the revision.
    pub record: Arc<Record>,
    /// Its longest remaining time; `None` if it has no ttl and never runs out.
    pub remaining: Option<Remaining>,
}
