//! Real servers for S3, Azure Blob Storage and Google Cloud Storage.

mod administration;
mod azurite;
mod ceph;
mod dialect;
mod error;
mod google;
mod kind;
mod minio;
mod rclone;
mod recipe;
mod running;
mod seaweedfs;
mod session;
mod setup;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use dialect::Dialect;
pub use error::StartError;
pub use kind::Kind;
pub(crate) use recipe::{ACCESS_KEY, ACCOUNT, ACCOUNT_KEY, BEARER_TOKEN, REGION, SECRET_KEY};
use running::Running;
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
    running: Mutex<Option<Running>>,
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

    /// The URL of the server, for clients: `http://127.0.0.1:PORT`, or `https:` if it is set up so. The URL of Azurite
    /// ends in its account.
    pub fn endpoint(&self) -> String {
        self.endpoint_at(self.address())
    }

    /// The URL of the server, for clients that reach it at another address, such as that of a
    /// [`FaultyProxy`](crate::FaultyProxy).
    pub fn endpoint_at(&self, address: SocketAddr) -> String {
        let scheme = if self.setup.certificate.is_some() { "https" } else { "http" };
        match self.kind.dialect() {
            Dialect::S3 | Dialect::Google => format!("{scheme}://{address}"),
            Dialect::Azure => format!("{scheme}://{address}/{ACCOUNT}"),
        }
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.ports[0].address()
    }

    /// The id of the only credentials that a server of S3 knows.
    pub fn access_key(&self) -> &'static str {
        ACCESS_KEY
    }

    /// The secret of the only credentials that a server of S3 knows.
    pub fn secret_key(&self) -> &'static str {
        SECRET_KEY
    }

    /// The region that a server of S3 reports.
    pub fn region(&self) -> &'static str {
        REGION
    }

    /// Its process id; `None` while it is stopped.
    pub fn process_number(&self) -> Option<i32> {
        self.running().as_ref().map(|running| running.process.number())
    }

    /// The only account of Azurite.
    pub fn account(&self) -> &'static str {
        ACCOUNT
    }

    /// The key of Azurite's account.
    pub fn account_key(&self) -> &'static str {
        ACCOUNT_KEY
    }

    /// The only token that the stand-ins for Google accept. All others get 401.
    pub fn bearer_token(&self) -> &'static str {
        BEARER_TOKEN
    }

    /// The usual environment variables with its credentials, for commands. Static credentials keep clients from asking
    /// a metadata address for others.
    pub fn environment(&self) -> Vec<(&'static str, &'static str)> {
        match self.kind.dialect() {
            Dialect::S3 => vec![
                ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
                ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
                ("AWS_REGION", REGION),
            ],
            Dialect::Azure => {
                vec![("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT), ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY)]
            }
            Dialect::Google => vec![("GOOGLE_OAUTH_ACCESS_TOKEN", BEARER_TOKEN)],
        }
    }

    /// Creates a bucket, or a container of Azure, if it does not exist. Names have at least three letters.
    #[track_caller]
    pub fn create_bucket(&self, name: &str) {
        if let Err(error) = self.kind.recipe().create_bucket(&self.home, &self.ports, name) {
            panic!("{} did not create the bucket {name}: {error}\n{}", self.kind.program(), self.output());
        }
    }

    /// Sends SIGTERM, and waits until the server has exited. Ports and data are kept for [`restart`](Self::restart).
    pub fn stop(&self) {
        if let Some(Running { front, process }) = self.running().take() {
            drop(front);
            process.stop();
        }
    }

    /// Kills it as a power cut of its machine would. Ports and data are kept for [`restart`](Self::restart), except that
    /// Azurite loses the writes of the last five seconds. The stand-ins for Google answer the pending requests first.
    pub fn kill(&self) {
        if let Some(Running { front, process }) = self.running().take() {
            drop(front);
            process.kill();
        }
    }

    /// Kills it if it runs, and starts it again with the same ports and data. Returns when it serves. A server that
    /// would lose data if it were killed is stopped instead.
    #[track_caller]
    pub fn restart(&self) {
        if self.kind.recipe().survives_kill() {
            self.kill()
        } else {
            self.stop()
        }
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
        let server = Self { kind, setup, program, ports, running: Mutex::new(None), _backing: backing, home };
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
        *self.running() = Some(Running { front: recipe.front(&self.ports), process });
        Ok(())
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Longest time until a server serves, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Number of attempts, each with other ports.
const TRIES: usize = 5;

/// Output of a server written in Go or JavaScript if its port is taken.
const TAKEN: &str = "address already in use";

/// Number of bytes of its output to show.
const OUTPUT: usize = 4000;
