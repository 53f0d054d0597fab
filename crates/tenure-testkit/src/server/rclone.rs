//! `rclone serve s3`: not safe. It accepts every condition and ignores it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use super::recipe::{ACCESS_KEY, Recipe, SECRET_KEY};
use crate::home::Home;
use crate::http;
use crate::port::Port;

#[derive(Debug)]
pub(crate) struct Rclone;

impl Recipe for Rclone {
    fn ports(&self) -> usize {
        1
    }

    fn command(&self, program: &Path, home: &Home, ports: &[Port]) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.args(["serve", "s3", "--addr"]).arg(ports[0].address().to_string());
        command.arg("--auth-key").arg(format!("{ACCESS_KEY},{SECRET_KEY}"));
        command.arg("--cache-dir").arg(home.path().join("cache"));
        // By default it caches for minutes that a bucket is missing; with a cache time of zero it is never idle.
        command.args(["--dir-cache-time", "1ms"]);
        // Ignores the settings of the user who runs the tests.
        command.args(["--config", "/dev/null"]).arg(home.data());
        Ok(command)
    }

    /// Any answer means ready: only its listener has to start.
    fn is_ready(&self, ports: &[Port]) -> bool {
        http::status(ports[0].address(), "GET", "/", "").is_ok()
    }

    /// A directory in its data directory is a bucket.
    fn create_bucket(&self, home: &Home, _: &[Port], name: &str) -> io::Result<()> {
        fs::create_dir_all(home.data().join(name))?;
        // Longer than it caches that the bucket is missing.
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    }
}
