use std::sync::Arc;

use super::logbook_client::LogbookClient;
use crate::host::witness::Shelf;
use crate::trust::Trust;

/// What a coordinator has on this machine beside its store. The keeper and the observers share it.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    /// Where witnesses lie.
    pub(crate) shelf: Option<Arc<Shelf>>,
    /// What was seen before.
    pub(crate) notes: Option<Arc<LogbookClient>>,
    /// Whether the store is trusted.
    pub(crate) trust: Arc<Trust>,
}
