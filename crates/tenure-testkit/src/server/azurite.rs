//! Azurite, Microsoft's emulator of Azure Blob Storage: atomic conditions, and ETags that change with every write.

use std::io;
use std::path::Path;
use std::process::Command;

use super::recipe::{ACCOUNT, ACCOUNT_KEY, Recipe};
use crate::home::Home;
use crate::http;
use crate::port::Port;
use crate::shared_key::SharedKey;

#[derive(Debug)]
pub(crate) struct Azurite;

impl Recipe for Azurite {
    fn ports(&self) -> usize {
        1
    }

    fn command(&self, program: &Path, home: &Home, ports: &[Port]) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.args(["--blobHost", "127.0.0.1", "--blobPort"]).arg(ports[0].number().to_string());
        command.arg("--location").arg(home.data());
        // Clients may be newer than the emulator. It contacts no other machine.
        command.args(["--skipApiVersionCheck", "--disableTelemetry", "--silent"]);
        // Ignores the settings of the user who runs the tests.
        command.env("AZURITE_ACCOUNTS", "");
        Ok(command)
    }

    /// Any answer means ready: it listens when its data is loaded.
    fn is_ready(&self, ports: &[Port]) -> bool {
        http::status(ports[0].address(), "GET", "/", "").is_ok()
    }

    /// A container is what other stores call a bucket.
    fn create_bucket(&self, _: &Home, ports: &[Port], name: &str) -> io::Result<()> {
        let target = format!("/{ACCOUNT}/{name}?restype=container");
        let headers = SharedKey { account: ACCOUNT, key: ACCOUNT_KEY }.sign(("PUT", &target), &[], b"");
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match http::ask(ports[0].address(), ("PUT", &target), &headers, "")? {
            // Created, or existed already.
            (201 | 409, _) => Ok(()),
            (status, answer) => Err(io::Error::other(format!("it answered {status}: {answer}"))),
        }
    }

    /// It writes its index every five seconds, and when it stops.
    fn survives_kill(&self) -> bool {
        false
    }
}
