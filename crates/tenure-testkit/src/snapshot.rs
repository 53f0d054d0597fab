//! Copies of a server's data.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::home::Home;
use crate::ran::ran;

/// A copy of all data of a server at one instant, as a snapshot of its disk would be.
#[derive(Debug)]
pub struct Snapshot(Home);

impl Snapshot {
    pub(crate) fn take(data: &Path) -> io::Result<Self> {
        let copy = Home::new("snapshot")?;
        ran(Command::new("cp").arg("-a").arg(data.join(".")).arg(copy.data()))?;
        Ok(Self(copy))
    }

    /// Copies the data into an empty directory.
    pub(crate) fn restore(&self, data: &Path) -> io::Result<()> {
        ran(Command::new("cp").arg("-a").arg(self.0.data().join(".")).arg(data)).map(drop)
    }
}
