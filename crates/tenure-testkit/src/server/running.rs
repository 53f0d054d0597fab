//! A server that runs.

use crate::process::Process;
use crate::translator::Translator;

/// The process of a server, and the translator in front of it, if it has one.
#[derive(Debug)]
pub(crate) struct Running {
    // Dropped before the process: the pending requests end first.
    pub(crate) front: Option<Translator>,
    pub(crate) process: Process,
}
