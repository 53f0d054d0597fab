//! A real NATS server.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::daemon::Daemon;
use crate::program::Program;
use crate::server::StartError;

/// A real NATS server on loopback, with its own port. It passes messages on, and keeps none. It is killed when this is
/// dropped or when this process ends in any way.
///
/// ```no_run
/// use tenure_testkit::NatsServer;
///
/// let Some(server) = NatsServer::shared() else { return };
/// let url = server.url();
/// # drop(url);
/// ```
#[derive(Debug)]
pub struct NatsServer {
    daemon: Daemon,
}

impl NatsServer {
    /// Starts a server and waits until it serves.
    pub fn start() -> Result<Self, StartError> {
        Daemon::on_free_ports(|| {
            let server = Self { daemon: Daemon::with_disk(Program::in_cache("nats-server"), 1, None)? };
            server.run()?;
            Ok(server)
        })
    }

    /// Starts a server; `None`, after a call of [`skipped`](crate::skipped), if it is not installed.
    #[track_caller]
    pub fn start_or_skip() -> Option<Self> {
        StartError::or_skip(Self::start())
    }

    /// The server that all tests of this process share; the first caller starts it. `None`, after a call of
    /// [`skipped`](crate::skipped), if it is not installed. Each test uses its own subjects.
    #[track_caller]
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<NatsServer>> = OnceLock::new();
        SHARED.get_or_init(Self::start_or_skip).as_ref()
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.daemon.address()
    }

    /// The URL of the server: `nats://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// The end of its output since it was first started.
    pub fn output(&self) -> String {
        self.daemon.output()
    }

    /// Kills it if it runs, and starts it again with the same port. Returns when it serves.
    #[track_caller]
    pub fn restart(&self) {
        self.daemon.kill();
        self.run().unwrap_or_else(|error| panic!("{error}"));
    }

    fn run(&self) -> Result<(), StartError> {
        let mut command = Command::new(&self.daemon.program().path);
        command.args(["--addr", "127.0.0.1", "--port", &self.address().port().to_string()]);
        self.daemon.run(&command, |_| self.greets().is_some())
    }

    /// The first line that it sends to a client.
    fn greets(&self) -> Option<String> {
        let stream = TcpStream::connect(self.address()).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        line.starts_with("INFO ").then_some(line)
    }
}
