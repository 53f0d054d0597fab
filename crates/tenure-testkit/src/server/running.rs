//! A server that runs.

use crate::process::Process;
use crate::translator::Translator;

/// The process of a server, and the translator in front of it, if it has one.
#[derive(Debug)]
pub(crate) struct Running {
    // Dropped before the translator, so that no client gets an answer about a server that is down.
    pub(crate) process: Process,
    pub(crate) _front: Option<Translator>,
}
