use std::process::Command;
use std::time::{Duration, Instant};

use super::{Done, text};

/// Starts a command repeatedly for 30 s, each time in a new session, and waits for none of them.
pub(super) fn fork_storm(command: &[&str]) -> Done {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        Command::new("setsid").args(["--fork"]).args(command).status().map_err(text)?;
    }
    Ok(())
}
