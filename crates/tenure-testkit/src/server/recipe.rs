//! The way to run one kind of server.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::home::Home;
use crate::port::Port;
use crate::process::Process;

/// The differences between servers. A new server implements this trait and is added to [`Kind`](super::Kind).
pub(crate) trait Recipe: Debug + Sync {
    /// Number of ports that it needs. The first one serves S3.
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
}

pub(crate) const ACCESS_KEY: &str = "tenure";
pub(crate) const SECRET_KEY: &str = "tenure-secret";
pub(crate) const REGION: &str = "us-east-1";
