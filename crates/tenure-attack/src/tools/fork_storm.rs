use std::process::Command;
use std::time::{Duration, Instant};

use super::{Done, text};

/// Starts a command again and again, each in a session of its own, and waits for none.
pub(super) fn fork_storm(command: &[&str]) -> Done {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        Command::new("setsid").args(["--fork"]).args(command).status().map_err(text)?;
    }
    Ok(())
}
