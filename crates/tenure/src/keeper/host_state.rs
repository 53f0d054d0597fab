use std::sync::Arc;

use super::logbook_client::LogbookClient;
use crate::host::witness::WitnessLocation;
use crate::host::workers::Workers;
use crate::trust::Trust;

/// What a coordinator has on this machine beside its store. The keeper and the observers share it.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    /// Threads that wait for the disk.
    pub(crate) workers: Arc<Workers>,
    /// Where witnesses lie.
    pub(crate) location: Option<Arc<WitnessLocation>>,
    /// What was seen before.
    pub(crate) logbook: Option<Arc<LogbookClient>>,
    /// Whether the store is trusted.
    pub(crate) trust: Arc<Trust>,
}
