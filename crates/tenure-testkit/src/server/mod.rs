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

/// A real server on loopback, with ports and a folder of its own. It ends, and the folder goes, when it is dropped or when
/// this process ends in whatever way.
///
/// Everything takes `&self`, so that one thread can do to it what servers suffer while others use it.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    setup: Setup,
    program: PathBuf,
    ports: Vec<Port>,
    // Before the home: nobody writes to a folder that goes.
    process: Mutex<Option<Process>>,
    _backing: Vec<Process>,
    home: Home,
}

impl Server {
    /// Starts one and waits until it serves.
    pub fn start(kind: Kind) -> Result<Self, StartError> {
        Self::start_with(kind, Setup::new())
    }

    /// Starts one that is set up like this, and waits until it serves.
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
            // Somebody who knows nothing of our reservations took a port in the moment between.
            let taken = matches!(&error, StartError::Failed { output, .. } if output.contains(TAKEN));
            if !taken || tries == TRIES {
                return Err(error);
            }
            tries += 1;
        }
    }

    /// Starts one; `None`, loudly, where it is not installed.
    #[track_caller]
    pub fn start_or_skip(kind: Kind) -> Option<Self> {
        Self::start_with_or_skip(kind, Setup::new())
    }

    /// Starts one that is set up like this; `None`, loudly, where it is not installed.
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

    /// The one that all tests of this process share, started by the first that asks; `None`, loudly, where it is not installed.
    /// Each test takes a bucket or a prefix of its own, and leaves the server running.
    #[track_caller]
    pub fn shared(kind: Kind) -> Option<&'static Self> {
        static SHARED: [OnceLock<Option<Server>>; Kind::ALL.len()] =
            [const { OnceLock::new() }; Kind::ALL.len()];
        SHARED[kind as usize].get_or_init(|| Self::start_or_skip(kind)).as_ref()
    }

    /// Which server it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where it serves: `http://127.0.0.1:PORT`, or `https:` where it was set up so.
    pub fn endpoint(&self) -> String {
        let scheme = if self.setup.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address())
    }

    /// Where it serves.
    pub fn address(&self) -> SocketAddr {
        self.ports[0].address()
    }

    /// The id of the only credentials it knows.
    pub fn access_key(&self) -> &'static str {
        ACCESS_KEY
    }

    /// The secret of the only credentials it knows.
    pub fn secret_key(&self) -> &'static str {
        SECRET_KEY
    }

    /// The region that it says it is in.
    pub fn region(&self) -> &'static str {
        REGION
    }

    /// The usual environment variables with its credentials, for commands. With static credentials nobody asks a metadata
    /// address for others.
    pub fn environment(&self) -> [(&'static str, &'static str); 3] {
        [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY), ("AWS_REGION", REGION)]
    }

    /// Creates a bucket if it is not there. Names have at least three letters.
    #[track_caller]
    pub fn create_bucket(&self, name: &str) {
        if let Err(error) = self.kind.recipe().create_bucket(&self.home, &self.ports, name) {
            panic!("{} did not create the bucket {name}: {error}\n{}", self.kind.program(), self.output());
        }
    }

    /// Asks it to end, and waits until it has. Ports and data are kept for [`restart`](Self::restart).
    pub fn stop(&self) {
        if let Some(process) = self.process().take() {
            process.stop();
        }
    }

    /// Ends it as a power cut of its machine would. Ports and data are kept for [`restart`](Self::restart).
    pub fn kill(&self) {
        if let Some(process) = self.process().take() {
            process.kill();
        }
    }

    /// Ends it if it runs, and starts it again with the same ports and data; returns when it serves.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        if let Err(error) = self.run() {
            panic!("{error}");
        }
    }

    /// The end of what it has said since it was first started.
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

/// How long a server may take until it serves, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often other ports are tried.
const TRIES: usize = 5;

/// What a server written in Go says then.
const TAKEN: &str = "address already in use";

/// How many bytes of its output are shown.
const OUTPUT: usize = 4000;
