//! Time from the end of a leader to the next one, after a crash and after a resignation, in units of the ttl: Tenure,
//! etcd's election and client-go's, one after the other on the same machine.
//!
//! Needs root. `TENURE_PEERS` names a directory with the programs `etcd` and `kube-apiserver`; Go builds the two
//! electors into it. Without them the rows of the peers are skipped. By hand:
//!
//! ```sh
//! TENURE_PEERS=~/peers cargo bench -p tenure-cli --features s3 --bench failover
//! ```
#![expect(clippy::disallowed_methods, reason = "it measures real time, and looks after its own processes")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tenure_testkit::{Kind, Server, skipped};

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// The ttl of every elector.
const TTL: Duration = Duration::from_secs(5);

/// Ends of leaders per row.
const ROUNDS: u32 = 8;

/// Contenders beside the leader.
const CONTENDERS: usize = 2;

fn main() {
    let home = Home::new();
    println!("{:<44} {:>12} {:>12} {:>12}", "ttl 5 s; in units of the ttl", "median", "slowest", "rounds");
    let file = format!("file://{}", home.path("store").display());
    measure("Tenure, file store", &|| tenure(&file, &[]));
    if let Some(server) = Server::start_or_skip(Kind::Minio) {
        server.create_bucket("failover");
        let url = format!("s3://failover/a?endpoint={}", server.endpoint());
        measure("Tenure, S3 (MinIO), same machine", &|| tenure(&url, &server.environment()));
        let url = format!("s3://failover/b?endpoint={}", server.endpoint());
        measure("Tenure, S3 (MinIO), as from other machines", &|| hidden(&url, &server.environment()));
    }
    let Some(peers) = env::var_os("TENURE_PEERS").map(PathBuf::from) else {
        return skipped("TENURE_PEERS names no directory with etcd and kube-apiserver");
    };
    if let Some(etcd) = Etcd::start(&peers, &home) {
        let elector = build("etcd", &peers);
        measure("etcd 3.7, concurrency package", &|| {
            let mut command = Command::new(&elector);
            command.arg(&etcd.endpoint).arg(TTL.as_secs().to_string());
            command
        });
        if let Some(api) = ApiServer::start(&peers, &home, &etcd) {
            let elector = build("client-go", &peers);
            measure("client-go 0.36, proportions of its defaults", &|| {
                let mut command = Command::new(&elector);
                command.arg(&api.endpoint).arg(TOKEN).arg(&api.certificate).arg(TTL.as_secs().to_string());
                command
            });
        }
    }
}

/// Prints two rows: after SIGKILL and after SIGTERM of the leader. An argument of the benchmark selects rows by a part
/// of their name.
fn measure(name: &str, elector: &dyn Fn() -> Command) {
    if env::args().skip(1).any(|part| !part.starts_with('-') && !name.contains(&part)) {
        return;
    }
    for (how, signal) in [("crash", Signal::KILL), ("release", Signal::TERM)] {
        let mut pool = Pool::new(elector);
        let mut spans: Vec<f64> =
            (0..ROUNDS).map(|round| pool.fail_over(round, signal).as_secs_f64()).collect();
        spans.sort_by(f64::total_cmp);
        let in_ttls = |seconds: f64| seconds / TTL.as_secs_f64();
        println!(
            "{:<44} {:>12.3} {:>12.3} {:>12}",
            format!("{name}: {how}"),
            in_ttls(spans[spans.len() / 2]),
            in_ttls(spans[spans.len() - 1]),
            ROUNDS
        );
    }
}

/// A leader and its contenders.
struct Pool<'a> {
    elector: &'a dyn Fn() -> Command,
    electors: Vec<Elector>,
    elected: mpsc::Receiver<u32>,
    elects: mpsc::Sender<u32>,
    leader: u32,
}

impl<'a> Pool<'a> {
    fn new(elector: &'a dyn Fn() -> Command) -> Self {
        let (elects, elected) = mpsc::channel();
        let mut pool = Self { elector, electors: Vec::new(), elected, elects, leader: 0 };
        pool.add();
        pool.leader = pool.hear();
        (0..CONTENDERS).for_each(|_| pool.add());
        pool
    }

    /// Ends the leader at another phase of its renewals in each round, and returns the time to the next leader.
    fn fail_over(&mut self, round: u32, signal: Signal) -> Duration {
        // Long enough for a new contender to connect and to see the leader's version.
        thread::sleep(TTL + TTL * (round * 7 % 12) / 24);
        let leader = self.electors.iter().position(|elector| elector.pid() == self.leader).unwrap();
        let ended = Instant::now();
        self.electors[leader].signal(signal);
        self.leader = self.hear();
        let span = ended.elapsed();
        drop(self.electors.swap_remove(leader));
        self.add();
        span
    }

    fn add(&mut self) {
        self.electors.push(Elector::start((self.elector)(), self.elects.clone()));
    }

    fn hear(&self) -> u32 {
        self.elected.recv_timeout(TTL * 20).expect("a leader is elected within twenty ttl")
    }
}

/// A contender in its own process group.
struct Elector {
    child: Child,
}

impl Elector {
    fn start(mut command: Command, elects: mpsc::Sender<u32>) -> Self {
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (output, pid) = (child.stdout.take().unwrap(), child.id());
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if line == "elected" {
                    let _ = elects.send(pid);
                }
            }
        });
        Self { child }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Elector {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A contender of Tenure. Its command writes the line that all electors write.
fn tenure(url: &str, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(TENURE);
    command.envs(environment.iter().copied()).arg("--store").arg(url);
    command.args([
        "elect",
        "compared",
        "--once",
        "--ttl",
        "5s",
        "--",
        "sh",
        "-c",
        "echo elected; exec sleep 1000",
    ]);
    command
}

/// The same in a mount namespace without witnesses: it knows as little about the others as another machine.
fn hidden(url: &str, environment: &[(&str, &str)]) -> Command {
    const HIDE: &str = "for d in /run /tmp /dev/shm; do mount -t tmpfs none $d; done; exec \"$0\" \"$@\"";
    let inner = tenure(url, environment);
    let mut command = Command::new("unshare");
    command
        .envs(environment.iter().copied())
        .args(["--mount", "sh", "-c", HIDE])
        .arg(TENURE)
        .args(inner.get_args());
    command
}

/// Builds an elector from its source beside this file.
fn build(name: &str, peers: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers").join(name);
    let program = peers.join(format!("{name}-elector"));
    // The checksums of the modules are written beside a copy, not into the source.
    let copy = peers.join(format!("{name}-source"));
    fs::create_dir_all(&copy).unwrap();
    for file in ["main.go", "go.mod"] {
        fs::copy(source.join(file), copy.join(file)).unwrap();
    }
    for arguments in [&["mod", "tidy"][..], &["build", "-o", program.to_str().unwrap(), "."]] {
        let built = Command::new("go").args(arguments).current_dir(&copy).stderr(Stdio::null()).status();
        assert!(built.is_ok_and(|status| status.success()), "go {arguments:?} failed in {}", copy.display());
    }
    program
}

struct Etcd {
    endpoint: String,
    _server: Elector,
}

impl Etcd {
    fn start(peers: &Path, home: &Home) -> Option<Self> {
        let program = installed(peers, "etcd")?;
        let (client, peer) = (loopback("http"), loopback("http"));
        let mut command = Command::new(program);
        command.arg("--data-dir").arg(home.path("etcd"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--name", "one", "--initial-cluster", &format!("one={peer}")]);
        let server = Elector::start(command, mpsc::channel().0);
        wait_for(&format!("{client}/health"), &[]);
        Some(Self { endpoint: client, _server: server })
    }
}

struct ApiServer {
    endpoint: String,
    certificate: PathBuf,
    _server: Elector,
}

impl ApiServer {
    fn start(peers: &Path, home: &Home, etcd: &Etcd) -> Option<Self> {
        let program = installed(peers, "kube-apiserver")?;
        let endpoint = loopback("https");
        let port = endpoint.rsplit(':').next().unwrap().to_owned();
        let path = |name: &str| home.path(name).display().to_string();
        let keys = format!(
            "openssl genrsa -out {sa} 2048 && openssl rsa -in {sa} -pubout -out {public} && \
             openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {cert} -days 2 -subj /CN=127.0.0.1 \
             -addext subjectAltName=IP:127.0.0.1",
            sa = path("sa.key"),
            public = path("sa.pub"),
            key = path("tls.key"),
            cert = path("tls.crt"),
        );
        assert!(Command::new("sh").args(["-c", &keys]).stderr(Stdio::null()).status().unwrap().success());
        fs::write(path("tokens"), format!("{TOKEN},admin,1,\"system:masters\"")).unwrap();
        let mut command = Command::new(program);
        command.arg(format!("--etcd-servers={}", etcd.endpoint));
        command.args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port", &port]);
        command.arg(format!("--tls-cert-file={}", path("tls.crt")));
        command.arg(format!("--tls-private-key-file={}", path("tls.key")));
        command.arg(format!("--token-auth-file={}", path("tokens")));
        command.args(["--authorization-mode=AlwaysAllow", "--anonymous-auth=false"]);
        command.arg("--service-account-issuer=https://kubernetes.default.svc");
        command.arg(format!("--service-account-key-file={}", path("sa.pub")));
        command.arg(format!("--service-account-signing-key-file={}", path("sa.key")));
        command
            .args(["--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount"]);
        command.arg("--endpoint-reconciler-type=none");
        let server = Elector::start(command, mpsc::channel().0);
        let header = format!("Authorization: Bearer {TOKEN}");
        wait_for(&format!("{endpoint}/readyz"), &["-k", "-H", &header]);
        Some(Self { endpoint, certificate: home.path("tls.crt"), _server: server })
    }
}

/// A program of the peers; `None`, after a call of [`skipped`], if it is missing.
fn installed(peers: &Path, name: &str) -> Option<PathBuf> {
    let program = peers.join(name);
    if program.is_file() {
        return Some(program);
    }
    skipped(&format!("there is no {name} in TENURE_PEERS"));
    None
}

/// A URL on loopback with a port that was free a moment ago.
fn loopback(scheme: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("{scheme}://{}", listener.local_addr().unwrap())
}

/// Waits until a server answers with success.
fn wait_for(url: &str, options: &[&str]) {
    let ends = Instant::now() + Duration::from_secs(60);
    while !Command::new("curl")
        .args(["-sf", "-o", "/dev/null"])
        .args(options)
        .arg(url)
        .status()
        .unwrap()
        .success()
    {
        assert!(Instant::now() < ends, "{url} does not answer");
        thread::sleep(Duration::from_millis(200));
    }
}

/// A directory on the disk of the target directory, removed on drop.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("failover-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TOKEN: &str = "compared";
