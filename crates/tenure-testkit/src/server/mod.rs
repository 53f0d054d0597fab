//! Real S3 servers.

mod administration;
mod ceph;
mod error;
mod kind;
mod minio;
mod rclone;
mod recipe;
mod seaweedfs;
mod session;
mod setup;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use error::StartError;
pub use kind::Kind;
pub(crate) use recipe::{ACCESS_KEY, REGION, SECRET_KEY};
pub use session::Session;
pub use setup::Setup;

use crate::home::Home;
use crate::port::Port;
use crate::process::Process;
use crate::skipped;

/// A real server on loopback, with its own ports and directory. It is killed, and its directory is deleted, when this
/// is dropped or when this process ends in any way.
///
/// All methods take `&self`, so that one thread can stop and restart the server while others use it.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    setup: Setup,
    program: PathBuf,
    ports: Vec<Port>,
    // Dropped before the home: no process may write to a directory while it is deleted.
    process: Mutex<Option<Process>>,
    _backing: Vec<Process>,
    home: Home,
}

impl Server {
    /// Starts a server and waits until it serves.
    pub fn start(kind: Kind) -> Result<Self, StartError> {
        Self::start_with(kind, Setup::new())
    }

    /// Starts a server with this setup, and waits until it serves.
    pub fn start_with(kind: Kind, setup: Setup) -> Result<Self, StartError> {
        let program = kind.installed();
        if !program.is_file() {
            return Err(StartError::Missing { kind, path: program });
        }
        let mut tries = 1;
        loop {
            let error = match Self::start_once(kind, setup.clone(), program.clone()) {
                Ok(server) => return Ok(server),
                Err(error) => error,
            };
            // A process that ignores the reservations took a port in between.
            let taken = matches!(&error, StartError::Failed { output, .. } if output.contains(TAKEN));
            if !taken || tries == TRIES {
                return Err(error);
            }
            tries += 1;
        }
    }

    /// Starts a server; `None`, after a call of [`skipped`], if it is not installed.
    #[track_caller]
    pub fn start_or_skip(kind: Kind) -> Option<Self> {
        Self::start_with_or_skip(kind, Setup::new())
    }

    /// Starts a server with this setup; `None`, after a call of [`skipped`], if it is not installed.
    #[track_caller]
    pub fn start_with_or_skip(kind: Kind, setup: Setup) -> Option<Self> {
        match Self::start_with(kind, setup) {
            Ok(server) => Some(server),
            Err(missing @ StartError::Missing { .. }) => {
                skipped(&missing.to_string());
                None
            }
            Err(failed) => panic!("{failed}"),
        }
    }

    /// The server that all tests of this process share; the first caller starts it. `None`, after a call of
    /// [`skipped`], if it is not installed. Each test uses its own bucket or prefix, and leaves the server running.
    #[track_caller]
    pub fn shared(kind: Kind) -> Option<&'static Self> {
        static SHARED: [OnceLock<Option<Server>>; Kind::ALL.len()] =
            [const { OnceLock::new() }; Kind::ALL.len()];
        SHARED[kind as usize].get_or_init(|| Self::start_or_skip(kind)).as_ref()
    }

    /// The kind of server.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The URL of the server: `http://127.0.0.1:PORT`, or `https:` if it is set up so.
    pub fn endpoint(&self) -> String {
        let scheme = if self.setup.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address())
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.ports[0].address()
    }

    /// The id of the only credentials that it knows.
    pub fn access_key(&self) -> &'static str {
        ACCESS_KEY
    }

    /// The secret of the only credentials that it knows.
    pub fn secret_key(&self) -> &'static str {
        SECRET_KEY
    }

    /// The region that it reports.
    pub fn region(&self) -> &'static str {
        REGION
    }

    /// The usual environment variables with its credentials, for commands. Static credentials keep clients from asking
    /// a metadata address for others.
    pub fn environment(&self) -> [(&'static str, &'static str); 3] {
        [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY), ("AWS_REGION", REGION)]
    }

    /// Creates a bucket if it does not exist. Names have at least three letters.
    #[track_caller]
    pub fn create_bucket(&self, name: &str) {
        if let Err(error) = self.kind.recipe().create_bucket(&self.home, &self.ports, name) {
            panic!("{} did not create the bucket {name}: {error}\n{}", self.kind.program(), self.output());
        }
    }

    /// Sends SIGTERM, and waits until the server has exited. Ports and data are kept for [`restart`](Self::restart).
    pub fn stop(&self) {
        if let Some(process) = self.process().take() {
            process.stop();
        }
    }

    /// Kills it as a power cut of its machine would. Ports and data are kept for [`restart`](Self::restart).
    pub fn kill(&self) {
        if let Some(process) = self.process().take() {
            process.kill();
        }
    }

    /// Kills it if it runs, and starts it again with the same ports and data. Returns when it serves.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        if let Err(error) = self.run() {
            panic!("{error}");
        }
    }

    /// The end of its output since it was first started.
    pub fn output(&self) -> String {
        let said = std::fs::read(self.home.log()).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(OUTPUT)..]).into_owned()
    }

    fn start_once(kind: Kind, setup: Setup, program: PathBuf) -> Result<Self, StartError> {
        let failed = |error: std::io::Error| StartError::Failed {
            kind,
            why: error.to_string(),
            output: String::new(),
        };
        let home = Home::new(kind.program()).map_err(failed)?;
        let ports: Vec<_> = (0..kind.recipe().ports()).map(|_| Port::reserve()).collect();
        let backing = kind.recipe().backing(&home, &ports).map_err(failed)?;
        let server = Self { kind, setup, program, ports, process: Mutex::new(None), _backing: backing, home };
        server.run()?;
        Ok(server)
    }

    fn run(&self) -> Result<(), StartError> {
        let failed = |why: String| StartError::Failed { kind: self.kind, why, output: self.output() };
        let recipe = self.kind.recipe();
        let command = recipe.command(&self.program, &self.home, &self.ports).and_then(|mut command| {
            command.envs(self.setup.variables.iter().map(|(name, value)| (name, value)));
            if let Some(certificate) = &self.setup.certificate {
                minio::encrypt(&mut command, &self.home, certificate)?;
            }
            Ok(command)
        });
        let process = command.and_then(|command| Process::start(&command, &self.home));
        let process = process.map_err(|error| failed(error.to_string()))?;
        let started = Instant::now();
        let is_ready = || match &self.setup.certificate {
            Some(_) => minio::is_ready_encrypted(&self.ports),
            None => recipe.is_ready(&self.ports),
        };
        while !is_ready() {
            if process.has_ended() {
                return Err(failed("it ended by itself".to_owned()));
            }
            if started.elapsed() > PATIENCE {
                return Err(failed(format!("it was not ready after {} s", PATIENCE.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        *self.process() = Some(process);
        Ok(())
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Longest time until a server serves, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Number of attempts, each with other ports.
const TRIES: usize = 5;

/// Output of a server written in Go if its port is taken.
const TAKEN: &str = "address already in use";

/// Number of bytes of its output to show.
const OUTPUT: usize = 4000;
