use std::sync::Arc;

use super::notes::Notes;
use super::trust::Trust;
use crate::witness::Shelf;

/// What a coordinator has on this machine beside its store. The keeper and the observers share it.
#[derive(Clone, Debug)]
pub(super) struct Local {
    /// Where witnesses lie.
    pub(super) shelf: Option<Arc<Shelf>>,
    /// What was seen before.
    pub(super) notes: Option<Arc<Notes>>,
    /// Whether the store is trusted.
    pub(super) trust: Arc<Trust>,
}
