//! Real PostgreSQL servers.

mod kind;
mod pgbouncer;
mod setup;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{fs, io};

pub use kind::PostgresKind;
pub use pgbouncer::PgBouncer;
use rustix::process::Signal;
pub use setup::PostgresSetup;

use crate::daemon::Daemon;
use crate::ran::ran;
use crate::server::StartError;
use crate::snapshot::Snapshot;
use crate::system_user::SystemUser;

/// A real PostgreSQL server on loopback, with its own port, data directory and socket directory. It is killed, and its
/// directory is deleted, when this is dropped or when this process ends in any way.
///
/// Its setup names its [kind](PostgresKind). It never runs as root. All methods take `&self`, so
/// that one thread can stop and restart the server while others use it.
///
/// ```no_run
/// use tenure_testkit::PostgresServer;
///
/// let Some(server) = PostgresServer::shared() else { return };
/// server.sql("CREATE DATABASE a_database_for_this_test");
/// let url = server.url_to("a_database_for_this_test");
/// # drop(url);
/// ```
#[derive(Debug)]
pub struct PostgresServer {
    setup: PostgresSetup,
    user: Option<SystemUser>,
    /// The directory with its programs.
    programs: PathBuf,
    daemon: Daemon,
}

impl PostgresServer {
    /// Starts a server and waits until it serves.
    pub fn start(setup: PostgresSetup) -> Result<Self, StartError> {
        Daemon::on_free_ports(|| Self::start_once(setup.clone(), Self::initialize))
    }

    /// Starts a server; `None`, after a call of [`skipped`](crate::skipped), if it is not installed.
    #[track_caller]
    pub fn start_or_skip(setup: PostgresSetup) -> Option<Self> {
        StartError::or_skip(Self::start(setup))
    }

    /// The server with the default setup that all tests of this process share; the first caller starts it. `None`,
    /// after a call of [`skipped`](crate::skipped), if it is not installed. Each test uses its own database or schema,
    /// and leaves the server running.
    #[track_caller]
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<PostgresServer>> = OnceLock::new();
        SHARED.get_or_init(|| Self::start_or_skip(PostgresSetup::new())).as_ref()
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.daemon.address()
    }

    /// The URL of the database `postgres`, as the superuser: `postgres://postgres@127.0.0.1:PORT/postgres`, with the
    /// password if it demands one.
    pub fn url(&self) -> String {
        self.url_at(self.address())
    }

    /// The URL for clients that reach the server at another address, such as that of a proxy.
    pub fn url_at(&self, address: SocketAddr) -> String {
        let password = self.setup.password.as_ref().map_or_else(String::new, |word| format!(":{word}"));
        format!("postgres://{SUPERUSER}{password}@{address}/postgres")
    }

    /// The URL of another database.
    pub fn url_to(&self, database: &str) -> String {
        let url = self.url();
        let (server, _) = url.rsplit_once('/').expect("it ends in a database");
        format!("{server}/{database}")
    }

    /// The directory of its Unix socket, where every local client is trusted.
    pub fn socket_directory(&self) -> PathBuf {
        self.daemon.home().path().join("socket")
    }

    /// Its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.daemon.home().data()
    }

    /// Its process id; `None` while it is stopped.
    pub fn process_number(&self) -> Option<i32> {
        self.daemon.number()
    }

    /// The end of its output since it was first started.
    pub fn output(&self) -> String {
        self.daemon.output()
    }

    /// Executes SQL as the superuser in the database `postgres`, and returns the rows: one per line, columns separated
    /// by `|`. Panics with the server's error.
    #[track_caller]
    pub fn sql(&self, statements: &str) -> String {
        self.sql_in("postgres", statements)
    }

    /// The same in another database.
    #[track_caller]
    pub fn sql_in(&self, database: &str, statements: &str) -> String {
        self.try_sql_in(database, statements).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, with the error instead of a panic.
    pub fn try_sql_in(&self, database: &str, statements: &str) -> Result<String, String> {
        let mut command = self.client("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database]);
        // Each `-c` is a transaction of its own, so a statement such as CREATE DATABASE has to be alone in it.
        command.args(["-c", statements]);
        ran(&mut command).map(|rows| rows.trim_end().to_owned()).map_err(|error| error.to_string())
    }

    /// Stops it in order: it disconnects its clients and writes everything (SIGINT, a "fast" shutdown). Port and data
    /// are kept for [`restart`](Self::restart).
    pub fn stop(&self) {
        self.daemon.stop(Signal::INT);
    }

    /// Kills all its processes, as a power cut of its machine would, except that the kernel keeps what was written
    /// without a sync. Port and data are kept for [`restart`](Self::restart).
    pub fn kill(&self) {
        self.daemon.kill();
    }

    /// Stops all its processes with SIGSTOP: connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.daemon.pause();
    }

    /// Lets it continue after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.daemon.resume();
    }

    /// Kills it if it runs, and starts it again with the same port and data. Returns when it serves.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        self.run().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Kills it if it runs, deletes its data, and starts it again on the same port with a new data directory.
    #[track_caller]
    pub fn restart_without_data(&self) {
        self.kill();
        let emptied = self.daemon.home().empty_data().and_then(|()| self.initialize());
        emptied.unwrap_or_else(|error| panic!("{}", self.daemon.failed(error.to_string())));
        self.run().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Fills its small disk ([`disk`](PostgresSetup::disk)) to the last block.
    #[track_caller]
    pub fn fill_disk(&self) {
        self.daemon.home().fill_data().unwrap_or_else(|error| panic!("the disk cannot be filled: {error}"));
    }

    /// Frees the disk after [`fill_disk`](Self::fill_disk).
    #[track_caller]
    pub fn free_disk(&self) {
        self.daemon.home().free_data().unwrap_or_else(|error| panic!("the disk cannot be freed: {error}"));
    }

    /// A copy of its data as it is now, while the server continues.
    #[track_caller]
    pub fn snapshot(&self) -> Snapshot {
        // While no process writes, the copy is one of a single instant.
        self.pause();
        let copied = Snapshot::take(&self.data_directory());
        self.resume();
        copied.unwrap_or_else(|error| panic!("the data cannot be copied: {error}"))
    }

    /// Kills it if it runs, replaces its data by those of a snapshot, and starts it again on the same port.
    #[track_caller]
    pub fn restart_from(&self, snapshot: &Snapshot) {
        self.kill();
        let home = self.daemon.home();
        let restored = home.empty_data().and_then(|()| snapshot.restore(&home.data()));
        restored.unwrap_or_else(|error| panic!("{}", self.daemon.failed(error.to_string())));
        self.run().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Starts a hot standby of this server, an asynchronous replica that serves reads. A setting
    /// `synchronous_standby_names` of this server can name it: it is called `replica`.
    #[track_caller]
    pub fn replica(&self) -> Self {
        let copy = |replica: &Self| {
            let mut command = self.client("pg_basebackup");
            command.env("PGAPPNAME", "replica").args([
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--no-sync",
            ]);
            ran(command.arg("--pgdata").arg(replica.data_directory())).map(drop)
        };
        let started = Daemon::on_free_ports(|| Self::start_once(self.setup.clone(), copy));
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Makes a standby a primary server, and returns when it accepts writes.
    #[track_caller]
    pub fn promote(&self) {
        assert_eq!(self.sql("SELECT pg_promote()"), "t", "it was not promoted: {}", self.output());
    }

    fn start_once(
        setup: PostgresSetup,
        fill: impl FnOnce(&Self) -> io::Result<()>,
    ) -> Result<Self, StartError> {
        let (kind, client) = (setup.kind, PostgresKind::client());
        if !client.path.is_file() {
            return Err(StartError::missing(&client));
        }
        let daemon = Daemon::with_disk(kind.program(), 1, setup.disk)?;
        let failed = |error: io::Error| daemon.failed(error.to_string());
        let user = SystemUser::instead_of_root(USERS).map_err(failed)?;
        let socket = daemon.home().path().join("socket");
        fs::create_dir(&socket).and_then(|()| SystemUser::own(user, &socket)).map_err(failed)?;
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(daemon.home().data(), private).map_err(failed)?;
        SystemUser::own(user, &daemon.home().data()).map_err(failed)?;
        let programs = kind.programs(daemon.home().path()).map_err(failed)?;
        let server = Self { setup, user, programs, daemon };
        fill(&server).map_err(|error| server.daemon.failed(error.to_string()))?;
        server.run()?;
        Ok(server)
    }

    /// Creates the database cluster in the data directory, and its settings.
    fn initialize(&self) -> io::Result<()> {
        let (home, data) = (self.daemon.home().path(), self.data_directory());
        let password = home.join("password");
        fs::write(&password, self.setup.password.as_deref().unwrap_or("none"))?;
        SystemUser::own(self.user, &password)?;
        let mut command = self.program("initdb");
        command.args(["--no-sync", "--encoding=UTF8", "--locale=C", "--username", SUPERUSER]);
        command.args(["--auth=trust", "--pwfile"]).arg(password).arg("--pgdata").arg(&data);
        if self.setup.disk.is_some() {
            // The default takes the space of a small disk in advance.
            command.arg("--wal-segsize=1");
        }
        ran(&mut command)?;
        let scheme = if self.setup.certificate.is_some() { "hostssl" } else { "host" };
        let method = if self.setup.password.is_some() { "scram-sha-256" } else { "trust" };
        let mut rules = "local all all trust\nlocal replication all trust\n".to_owned();
        for database in ["all", "replication"] {
            rules += &format!("{scheme} {database} all 127.0.0.1/32 {method}\n");
        }
        self.write("pg_hba.conf", &rules)?;
        let mut settings = fs::read_to_string(data.join("postgresql.conf"))?;
        if let Some(certificate) = &self.setup.certificate {
            self.write("server.crt", &certificate.chain)?;
            self.write("server.key", &certificate.key)?;
            settings += "ssl = on\n";
        }
        settings += "max_connections = 500\n";
        for (name, value) in &self.setup.settings {
            writeln!(settings, "{name} = '{}'", value.replace('\'', "''")).expect("a string has room");
        }
        self.write("postgresql.conf", &settings)
    }

    fn run(&self) -> Result<(), StartError> {
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data_directory());
        // Not in the settings, which replicas and snapshots copy.
        command.args(["-c", "listen_addresses=127.0.0.1", "-c"]);
        command.arg(format!("port={}", self.address().port()));
        command.arg("-c").arg(format!("unix_socket_directories={}", self.socket_directory().display()));
        self.daemon.run(&command, |number| is_ready(&self.data_directory(), number))
    }

    /// Writes a file into the data directory that only the server may read.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.data_directory().join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        SystemUser::own(self.user, &path)
    }

    /// A program of the server, as the user that runs it.
    fn program(&self, name: &str) -> Command {
        SystemUser::command(self.user, &self.programs.join(name))
    }

    /// A client program that connects to its socket as the superuser.
    fn client(&self, name: &str) -> Command {
        let client = PostgresKind::client().path.with_file_name(name);
        let mut command = SystemUser::command(self.user, &client);
        // Ignores the settings of the user who runs the tests, and a directory that the other user may not read.
        command.env_clear().env("PGAPPNAME", "tenure-testkit").current_dir("/");
        command.arg("-h").arg(self.socket_directory()).args(["-U", SUPERUSER, "-p"]);
        command.arg(self.address().port().to_string());
        command
    }
}

/// True if the server with this process id accepts connections: it writes its state into a file, as `pg_ctl` expects.
fn is_ready(data: &Path, number: i32) -> bool {
    let state = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let lines: Vec<_> = state.lines().map(str::trim).collect();
    // A file of an earlier run names another process.
    lines.first() == Some(&number.to_string().as_str())
        && matches!(lines.get(7), Some(&("ready" | "standby")))
}

/// The users that may run it instead of root: the first one that exists does.
const USERS: &[&str] = &["postgres", "nobody"];

/// The superuser of every server.
const SUPERUSER: &str = "postgres";
