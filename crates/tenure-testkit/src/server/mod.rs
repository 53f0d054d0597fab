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
mod seaweedfs;
mod session;
mod setup;

use std::net::SocketAddr;
use std::sync::{Mutex, OnceLock, PoisonError};

pub use dialect::Dialect;
pub use error::StartError;
pub use kind::Kind;
pub(crate) use recipe::{ACCESS_KEY, ACCOUNT, ACCOUNT_KEY, BEARER_TOKEN, REGION, SECRET_KEY};
use rustix::process::Signal;
pub use session::Session;
pub use setup::Setup;

use crate::daemon::Daemon;
use crate::translator::Translator;

/// A real server on loopback, with its own ports and directory. It is killed, and its directory is deleted, when this
/// is dropped or when this process ends in any way.
///
/// All methods take `&self`, so that one thread can stop and restart the server while others use it.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    setup: Setup,
    // Dropped before the process: the pending requests end first.
    front: Mutex<Option<Translator>>,
    daemon: Daemon,
}

impl Server {
    /// Starts a server and waits until it serves.
    pub fn start(kind: Kind) -> Result<Self, StartError> {
        Self::start_with(kind, Setup::new())
    }

    /// Starts a server with this setup, and waits until it serves.
    pub fn start_with(kind: Kind, setup: Setup) -> Result<Self, StartError> {
        Daemon::on_free_ports(|| Self::start_once(kind, setup.clone()))
    }

    /// Starts a server; `None`, after a call of [`skipped`](crate::skipped), if it is not installed.
    #[track_caller]
    pub fn start_or_skip(kind: Kind) -> Option<Self> {
        Self::start_with_or_skip(kind, Setup::new())
    }

    /// Starts a server with this setup; `None`, after a call of [`skipped`](crate::skipped), if it is not installed.
    #[track_caller]
    pub fn start_with_or_skip(kind: Kind, setup: Setup) -> Option<Self> {
        StartError::or_skip(Self::start_with(kind, setup))
    }

    /// The server that all tests of this process share; the first caller starts it. `None`, after a call of
    /// [`skipped`](crate::skipped), if it is not installed. Each test uses its own bucket or prefix, and leaves the server running.
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
        self.daemon.address()
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
        self.daemon.number()
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
        if let Err(error) = self.kind.recipe().create_bucket(self.daemon.home(), self.daemon.ports(), name) {
            panic!("{} did not create the bucket {name}: {error}\n{}", self.kind.program(), self.output());
        }
    }

    /// Sends SIGTERM, and waits until the server has exited. Ports and data are kept for [`restart`](Self::restart).
    pub fn stop(&self) {
        self.end_front();
        self.daemon.stop(Signal::TERM);
    }

    /// Kills it as a power cut of its machine would. Ports and data are kept for [`restart`](Self::restart), except that
    /// Azurite loses the writes of the last five seconds. The stand-ins for Google answer the pending requests first.
    pub fn kill(&self) {
        self.end_front();
        self.daemon.kill();
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
        self.daemon.output()
    }

    fn start_once(kind: Kind, setup: Setup) -> Result<Self, StartError> {
        let recipe = kind.recipe();
        let daemon =
            Daemon::new(kind.installed(), recipe.ports(), |home, ports| recipe.backing(home, ports))?;
        let server = Self { kind, setup, front: Mutex::new(None), daemon };
        server.run()?;
        Ok(server)
    }

    fn run(&self) -> Result<(), StartError> {
        let (recipe, home, ports) = (self.kind.recipe(), self.daemon.home(), self.daemon.ports());
        let command = recipe.command(&self.daemon.program().path, home, ports).and_then(|mut command| {
            command.envs(self.setup.variables.iter().map(|(name, value)| (name, value)));
            if let Some(certificate) = &self.setup.certificate {
                minio::encrypt(&mut command, home, certificate)?;
            }
            Ok(command)
        });
        let command = command.map_err(|error| self.daemon.failed(error.to_string()))?;
        self.daemon.run(&command, |_| match &self.setup.certificate {
            Some(_) => minio::is_ready_encrypted(ports),
            None => recipe.is_ready(ports),
        })?;
        *self.front.lock().unwrap_or_else(PoisonError::into_inner) = recipe.front(ports);
        Ok(())
    }

    fn end_front(&self) {
        drop(self.front.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
