//! How one kind of server is run.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::home::Home;
use crate::port::Port;
use crate::process::Process;

/// What differs between the servers. A new one implements this and is named in [`Kind`](super::Kind).
pub(crate) trait Recipe: Debug + Sync {
    /// How many ports it needs. The first one is where it speaks S3.
    fn ports(&self) -> usize;

    /// What must run before it does and as long as the server is there, whether it is stopped meanwhile or not: the first ones
    /// first.
    fn backing(&self, home: &Home, ports: &[Port]) -> io::Result<Vec<Process>> {
        let _ = (home, ports);
        Ok(Vec::new())
    }

    /// The command that runs it in the foreground, and whatever files that needs.
    fn command(&self, program: &Path, home: &Home, ports: &[Port]) -> io::Result<Command>;

    /// Whether it serves.
    fn is_ready(&self, ports: &[Port]) -> bool;

    /// Creates a bucket.
    fn create_bucket(&self, home: &Home, ports: &[Port], name: &str) -> io::Result<()>;
}

pub(crate) const ACCESS_KEY: &str = "tenure";
pub(crate) const SECRET_KEY: &str = "tenure-secret";
pub(crate) const REGION: &str = "us-east-1";
