//! Shared by the tests of the command: a temporary home, and the command in a clean environment.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure::store::File;
use tenure::{Coordinator, Holder, Lease};
use tenure_store::{Expect, Key, Put, Store};

mod log_lines;

use log_lines::without_log_lines;
pub(crate) use tenure_testkit::{block_on, shell, skipped, sleep_ms};

/// A home directory, removed on drop.
pub(crate) struct Home(pub(crate) PathBuf);

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Did {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    /// A home on the disk of the build.
    pub(crate) fn new(name: &str) -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    pub(crate) fn below(directory: &Path, name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("tenure-cli-{name}-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The directory of the default store.
    pub(crate) fn leases(&self) -> PathBuf {
        self.0.join(".local/state/tenure")
    }

    pub(crate) fn store(&self) -> File {
        File::open(self.leases()).unwrap()
    }

    pub(crate) fn url(&self) -> String {
        File::url_of(&self.leases())
    }

    /// The command, with only this home in its environment. Witnesses of leases in other stores are in it too.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.env_clear().env("HOME", &self.0).env("XDG_RUNTIME_DIR", &self.0).args(args);
        command
    }

    pub(crate) fn tenure(&self, args: &[&str]) -> Did {
        did(&mut self.command(args))
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn did(command: &mut Command) -> Did {
    command.output().unwrap().into()
}

/// Runs a command with this standard input.
pub(crate) fn fed(command: &mut Command, input: &[u8]) -> Did {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that refuses at once does not read.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap().into()
}

impl From<Output> for Did {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        Self {
            code: status.code().expect("no signal ended it"),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        }
    }
}

impl Did {
    /// Asserts that it failed with this code and exactly this message.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, sentence: &str) {
        assert_eq!((self.err.as_str(), self.code), (format!("tenure: {sentence}\n").as_str(), code));
        assert_eq!(self.out, "");
    }

    /// Asserts that it printed this, and no error.
    #[track_caller]
    pub(crate) fn answered(&self, code: i32, out: &str) {
        assert_eq!((self.troubles().as_str(), self.out.as_str(), self.code), ("", out, code));
    }

    /// Standard error without the lines that every successful run writes to a log.
    pub(crate) fn troubles(&self) -> String {
        without_log_lines(&self.err)
    }

    /// Asserts that `tenure status` printed this line first, and then only lines for people, and no error.
    #[track_caller]
    pub(crate) fn stands(&self, code: i32, line: &str) {
        let (first, details) = self.out.split_once('\n').unwrap_or_default();
        assert_eq!((self.err.as_str(), first, self.code), ("", line, code));
        assert!(details.lines().all(|line| line.starts_with("  ")), "{}", self.out);
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Asserts that it failed with this code and one sentence that has all of these parts, after events at most, and did not
/// print the secret of a handle.
#[track_caller]
pub(crate) fn refused(did: &Did, code: i32, parts: &[&str]) {
    assert_eq!((did.code, did.out.as_str()), (code, ""), "{did:?}");
    let mut lines: Vec<_> = did.err.lines().collect();
    let error = lines.pop().unwrap_or_default();
    let is_event = |line: &&str| line.starts_with("tenure: standing by ") || line.starts_with("{\"event\":");
    assert!(lines.iter().all(is_event), "{did:?}");
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    assert!(!did.err.contains("tenure1_ey"), "{did:?}");
}

/// Asserts that the command refuses a foreign record, and reports that as text and as JSON.
#[track_caller]
pub(crate) fn refuses_a_foreign_record(home: &Home, command: &str) {
    plant(home, "theirs", "{}");
    let sentence = format!(
        "lease theirs on {} has no Tenure record: the bytes are JSON of another program, not a Tenure record; use \
         another key",
        home.url()
    );
    home.tenure(&[command, "theirs"]).failed(65, &sentence);
    let did = home.tenure(&[command, "--json", "theirs"]);
    assert_eq!((did.code, did.out.as_str()), (65, ""));
    let said: serde_json::Value = serde_json::from_str(&did.err).unwrap();
    assert_eq!(said, serde_json::json!({ "error": { "exit": 65, "message": sentence } }));
}

/// Writes bytes under a key in the way the library writes records.
pub(crate) fn plant(home: &Home, name: &str, value: impl Into<Vec<u8>>) {
    let key = Key::from_stored(name).unwrap();
    let put = block_on(async { home.store().put(&key, value.into().into(), Expect::Absent).await.unwrap() });
    assert!(matches!(put, Put::Applied(_)), "{name} was there already");
}

/// A record from the fixtures.
pub(crate) fn fixture(name: &str) -> String {
    let path = format!("{}/../tenure-core/tests/fixtures/records/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// A coordinator in the process of the test.
pub(crate) fn process(home: &Home, holder: &str) -> Coordinator {
    let holder = Holder::new(holder).unwrap();
    block_on(Coordinator::builder().holder(holder).connect(home.store())).unwrap()
}

/// A lease that is not renewed.
pub(crate) fn hold(coordinator: &Coordinator, name: &str, ttl_ms: u64) -> Lease {
    let ttl = std::time::Duration::from_millis(ttl_ms);
    block_on(coordinator.lease(name).unwrap().ttl(ttl).manual().acquire()).unwrap()
}

/// True if this process is root, which can act as another user.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
