//! The way to run one kind of server.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::home::Home;
use crate::port::Port;
use crate::process::Process;
use crate::translator::Translator;

/// The differences between servers. A new server implements this trait and is added to [`Kind`](super::Kind).
pub(crate) trait Recipe: Debug + Sync {
    /// Number of ports that it needs. The first one serves the clients.
    fn ports(&self) -> usize;

    /// Starts the processes that the server needs, and returns them in the order in which they were started. They run
    /// from before its start until it is dropped, also while it is stopped.
    fn backing(&self, home: &Home, ports: &[Port]) -> io::Result<Vec<Process>> {
        let _ = (home, ports);
        Ok(Vec::new())
    }

    /// The command that runs it in the foreground. Writes the files that the command needs.
    fn command(&self, program: &Path, home: &Home, ports: &[Port]) -> io::Result<Command>;

    /// True if it serves.
    fn is_ready(&self, ports: &[Port]) -> bool;

    /// Creates a bucket.
    fn create_bucket(&self, home: &Home, ports: &[Port], name: &str) -> io::Result<()>;

    /// Starts the translator that clients connect to, if the server does not speak their protocol. It runs while the
    /// server runs.
    fn front(&self, ports: &[Port]) -> Option<Translator> {
        let _ = ports;
        None
    }

    /// True if a killed server has kept every write that it has confirmed.
    fn survives_kill(&self) -> bool {
        true
    }
}

pub(crate) const ACCESS_KEY: &str = "tenure";
pub(crate) const SECRET_KEY: &str = "tenure-secret";
pub(crate) const REGION: &str = "us-east-1";

/// The account of every Azurite, and its published key.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
pub(crate) const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The only token that the translator accepts.
pub(crate) const BEARER_TOKEN: &str = "tenure-token";
