//! Real servers with the protocol of Redis.

mod cluster;
mod kind;
mod resp;
mod sentinels;
mod setup;

use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

pub use cluster::RedisCluster;
pub use kind::RedisKind;
pub(crate) use resp::RespValue;
use rustix::process::Signal;
pub use sentinels::RedisSentinels;
pub use setup::RedisSetup;

use crate::daemon::Daemon;
use crate::server::StartError;
use crate::snapshot::Snapshot;
use crate::wait_until;

/// A real Redis or Valkey on loopback, with its own port and data directory. It is killed, and its directory is deleted,
/// when this is dropped or when this process ends in any way.
///
/// All methods take `&self`, so that one thread can stop and restart the server while others use it.
///
/// ```no_run
/// use tenure_testkit::{RedisKind, RedisServer, RedisSetup};
///
/// let setup = RedisSetup::new().durable();
/// let Some(server) = RedisServer::start_or_skip(RedisKind::Valkey, setup) else { return };
/// server.command(&["SET", "key", "value"]);
/// server.restart();
/// assert_eq!(server.command(&["GET", "key"]), "value");
/// ```
#[derive(Debug)]
pub struct RedisServer {
    kind: RedisKind,
    setup: RedisSetup,
    daemon: Daemon,
}

impl RedisServer {
    /// Starts a server and waits until it serves.
    pub fn start(kind: RedisKind, setup: RedisSetup) -> Result<Self, StartError> {
        Daemon::on_free_ports(|| {
            let daemon = Daemon::with_disk(kind.program(), 2, setup.disk)?;
            let server = Self { kind, setup: setup.clone(), daemon };
            server.run()?;
            Ok(server)
        })
    }

    /// Starts a server; `None`, after a call of [`skipped`](crate::skipped), if it is not installed.
    #[track_caller]
    pub fn start_or_skip(kind: RedisKind, setup: RedisSetup) -> Option<Self> {
        StartError::or_skip(Self::start(kind, setup))
    }

    /// The server with the default setup that all tests of this process share; the first caller starts it. `None`,
    /// after a call of [`skipped`](crate::skipped), if it is not installed. Each test uses its own prefix, and leaves
    /// the server and its settings as they are.
    #[track_caller]
    pub fn shared(kind: RedisKind) -> Option<&'static Self> {
        static SHARED: [OnceLock<Option<RedisServer>>; RedisKind::ALL.len()] =
            [const { OnceLock::new() }; RedisKind::ALL.len()];
        SHARED[kind as usize].get_or_init(|| Self::start_or_skip(kind, RedisSetup::new())).as_ref()
    }

    /// The kind of server.
    pub fn kind(&self) -> RedisKind {
        self.kind
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.daemon.address()
    }

    /// The URL of the server: `redis://127.0.0.1:PORT`, or `rediss:`, with the password if it demands one.
    pub fn url(&self) -> String {
        self.url_at(self.address())
    }

    /// The URL for clients that reach the server at another address, such as that of a proxy.
    pub fn url_at(&self, address: SocketAddr) -> String {
        let scheme = if self.setup.certificate.is_some() { "rediss" } else { "redis" };
        let password = self.setup.password.as_ref().map_or_else(String::new, |word| format!(":{word}@"));
        format!("{scheme}://{password}{address}")
    }

    /// Its Unix socket, which is never encrypted.
    pub fn socket(&self) -> PathBuf {
        self.daemon.home().path().join("socket")
    }

    /// Its data directory, with `dump.rdb` and `appendonlydir`.
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

    /// Executes a command as a user who may do everything, and returns the reply: the elements of an array as lines, and
    /// nothing as an empty text. Panics with the server's error.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        self.try_command(words).unwrap_or_else(|error| panic!("{words:?}: {error}\n{}", self.output()))
    }

    /// The same, with the error instead of a panic.
    pub fn try_command(&self, words: &[&str]) -> Result<String, String> {
        self.ask(words).map_err(|error| error.to_string())?.lines()
    }

    /// The value of a line of `INFO`, such as `run_id`.
    #[track_caller]
    pub fn info(&self, name: &str) -> String {
        let info = self.command(&["INFO", "everything"]);
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(line, _)| *line == name).map(|(_, value)| value.trim().to_owned());
        found.unwrap_or_else(|| panic!("INFO has no {name}: {info}"))
    }

    /// Sends SIGTERM, and waits until it has exited. It saves a snapshot first if its setup has save points. Port and
    /// data are kept for [`restart`](Self::restart).
    pub fn stop(&self) {
        self.daemon.stop(Signal::TERM);
    }

    /// Kills it as a crash would. Port and data are kept for [`restart`](Self::restart); without `appendonly`, it loses
    /// everything since its last snapshot.
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

    /// Kills it if it runs, and starts it again with the same port and the data that a crash leaves. Returns when it
    /// serves. Call [`stop`](Self::stop) first to keep everything.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        self.run().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Kills it if it runs, deletes its data, and starts it again on the same port.
    #[track_caller]
    pub fn restart_without_data(&self) {
        self.kill();
        let emptied = self.daemon.home().empty_data();
        emptied.unwrap_or_else(|error| panic!("{}", self.daemon.failed(error.to_string())));
        self.run().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Fills its small disk ([`disk`](RedisSetup::disk)) to the last block.
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
        if self.command(&["CONFIG", "GET", "appendonly"]).ends_with("no") {
            self.command(&["SAVE"]);
        }
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

    /// Starts an asynchronous replica of this server, with the same setup, and returns when both have the same data.
    #[track_caller]
    pub fn replica(&self) -> Self {
        let port = self.address().port().to_string();
        let mut setup = self.setup.clone().setting("replicaof", &format!("127.0.0.1 {port}"));
        if let Some(password) = &self.setup.password {
            setup = setup.setting("masterauth", password);
        }
        let replica = Self::start(self.kind, setup).unwrap_or_else(|error| panic!("{error}"));
        wait_until("the replica has the data", || replica.info("master_link_status") == "up");
        replica
    }

    /// Makes a replica a primary server. After a restart, it is a replica again.
    #[track_caller]
    pub fn promote(&self) {
        self.command(&["REPLICAOF", "NO", "ONE"]);
    }

    fn run(&self) -> Result<(), StartError> {
        let settings = self.settings().map_err(|error| self.daemon.failed(error.to_string()))?;
        let mut command = Command::new(&self.daemon.program().path);
        command.arg(settings).args(self.setup.sentinel.then_some("--sentinel"));
        let _ = fs::remove_file(self.socket());
        // It accepts connections while it still loads its data, and answers with an error then.
        self.daemon.run(&command, |_| {
            self.ask(&["PING"])
                .is_ok_and(|reply| !reply.lines().is_err_and(|error| error.starts_with("LOADING")))
        })
    }

    /// Writes its configuration file.
    fn settings(&self) -> io::Result<PathBuf> {
        let home = self.daemon.home().path();
        let mut lines = vec![
            "bind 127.0.0.1".to_owned(),
            format!("dir {}", self.data_directory().display()),
            format!("unixsocket {}", self.socket().display()),
            // By default, a server waits five seconds for more replicas before it transfers its data.
            "repl-diskless-sync-delay 0".to_owned(),
        ];
        match &self.setup.certificate {
            None => lines.push(format!("port {}", self.address().port())),
            Some(certificate) => {
                let (chain, key) = (home.join("server.crt"), home.join("server.key"));
                fs::write(&chain, &certificate.chain)?;
                fs::write(&key, &certificate.key)?;
                lines.push(format!("port 0\ntls-port {}\ntls-auth-clients no", self.address().port()));
                lines.push(format!("tls-cert-file {}\ntls-key-file {}", chain.display(), key.display()));
            }
        }
        if self.setup.cluster {
            lines.push(format!("cluster-enabled yes\ncluster-port {}", self.bus_port()));
        }
        if let Some(password) = &self.setup.password {
            lines.push(format!("requirepass {password}"));
        }
        if let Some(users) = &self.setup.users {
            let path = home.join("users.acl");
            let default = if users.contains("user default ") { "" } else { "user default off\n" };
            fs::write(&path, format!("user {KIT} on >{KIT} ~* &* +@all\n{default}{users}\n"))?;
            lines.push(format!("aclfile {}", path.display()));
        }
        for (name, value) in &self.setup.settings {
            lines.push(format!("{name} {}", if value.is_empty() { "\"\"" } else { value }));
        }
        let path = home.join("settings.conf");
        fs::write(&path, lines.join("\n") + "\n")?;
        Ok(path)
    }

    /// The port on which the nodes of a cluster talk to each other.
    fn bus_port(&self) -> u16 {
        self.daemon.ports()[1].number()
    }

    /// Sends a command to its socket.
    fn ask(&self, words: &[&str]) -> io::Result<RespValue> {
        let mut stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut bytes, mut replies) = (RespValue::command(words), 1);
        let login = match (&self.setup.users, &self.setup.password) {
            (Some(_), _) => Some(RespValue::command(&["AUTH", KIT, KIT])),
            (None, Some(password)) => Some(RespValue::command(&["AUTH", password])),
            (None, None) => None,
        };
        if let Some(login) = login {
            bytes.splice(0..0, login);
            replies = 2;
        }
        stream.write_all(&bytes)?;
        let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            while let Some((reply, length)) = RespValue::parse(&received) {
                received.drain(..length);
                replies -= 1;
                if replies == 0 {
                    return Ok(reply);
                }
            }
            match stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => received.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

/// Name and password of the user that the kit adds to an ACL file.
const KIT: &str = "tenure-testkit";

/// Longest time for a reply.
const PATIENCE: Duration = Duration::from_secs(30);
