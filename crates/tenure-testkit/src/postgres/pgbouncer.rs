//! A pooler in front of PostgreSQL.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use super::{PostgresServer, SUPERUSER};
use crate::daemon::Daemon;
use crate::program::Program;
use crate::server::StartError;
use crate::system_user::SystemUser;

/// PgBouncer in transaction mode in front of a [`PostgresServer`]: each transaction of a client may run on another
/// connection to the server. It has at most four connections to the server for all clients of a database.
#[derive(Debug)]
pub struct PgBouncer {
    daemon: Daemon,
}

impl PgBouncer {
    /// Starts it; `None`, after a call of [`skipped`](crate::skipped), if it is not installed.
    #[track_caller]
    pub fn start_or_skip(server: &PostgresServer) -> Option<Self> {
        StartError::or_skip(Daemon::on_free_ports(|| Self::start_once(server)))
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.daemon.address()
    }

    /// The URL of a database of the server through the pooler, as the superuser. It demands no password.
    pub fn url_to(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@{}/{database}", self.address())
    }

    /// The end of its output.
    pub fn output(&self) -> String {
        self.daemon.output()
    }

    fn start_once(server: &PostgresServer) -> Result<Self, StartError> {
        let daemon = Daemon::with_disk(Program::of_system("pgbouncer", "/usr/sbin/pgbouncer"), 1, None)?;
        let settings = daemon.home().path().join("settings.ini");
        let password =
            server.setup.password.as_ref().map_or_else(String::new, |word| format!(" password='{word}'"));
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={SUPERUSER}{password}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 500\nserver_tls_sslmode = prefer\n\
             server_login_retry = 1\n\
             ignore_startup_parameters = extra_float_digits,options\n",
            server.address().port(),
            daemon.address().port(),
        );
        let written = fs::write(&settings, text);
        written.map_err(|error| daemon.failed(error.to_string()))?;
        let mut command = SystemUser::command(server.user, Path::new("/usr/sbin/pgbouncer"));
        command.arg(settings);
        daemon.run(&command, |_| TcpStream::connect(daemon.address()).is_ok())?;
        Ok(Self { daemon })
    }
}
