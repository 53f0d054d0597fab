//! Commands that run to their end.

use std::io;
use std::process::{Command, Stdio};

/// Runs a command to its end, and returns its output. The error has the command and what it wrote.
pub(crate) fn ran(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?} failed: {said}")))
}
