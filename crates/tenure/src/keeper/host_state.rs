use std::sync::Arc;

use super::logbook_client::LogbookClient;
use crate::host::witness::WitnessLocation;
use crate::host::workers::Workers;
use crate::trust::Trust;

/// Local state of a coordinator beside its store. The keeper and the observers share it.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    /// Threads that wait for the disk.
    pub(crate) workers: Arc<Workers>,
    /// Directory of the witnesses.
    pub(crate) location: Option<Arc<WitnessLocation>>,
    /// Sightings of earlier processes.
    pub(crate) logbook: Option<Arc<LogbookClient>>,
    /// Trust in the store.
    pub(crate) trust: Arc<Trust>,
}
