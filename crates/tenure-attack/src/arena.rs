use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure_testkit::{children_of, exit_code};

use crate::process::{actors, until};
use crate::stamps::{self, Act, boot_time};
use crate::tools;
use crate::verdict::{AttackOutcome, broken, held};

/// Working area of one attack: a directory with a store, the stamps of actors, and functions that start commands.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) directory: PathBuf,
    /// Cgroup of this process, if there is one.
    pub(crate) cgroup: Option<PathBuf>,
    /// True if the attack may change machine-wide settings for a few seconds.
    pub(crate) machine_wide: bool,
    programs: PathBuf,
    next: Cell<usize>,
}

/// The user that a command runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// May create cgroups and signal every process.
    Root,
    /// May do neither. The uid belongs to no account.
    User,
    /// May do neither. Another uid that belongs to no account.
    Stranger,
}

/// A running command, with its output in files.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) number: i32,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// Exit code and output of a command that has exited.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    /// Exit code as a shell reports it: 128 plus the signal for a command that a signal killed.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Arena {
    pub(crate) fn new(
        directory: PathBuf,
        cgroup: Option<PathBuf>,
        machine_wide: bool,
    ) -> Result<Self, String> {
        let programs = directory.parent().ok_or("the directory has no parent")?.join("bin");
        let arena = Self { directory, cgroup, machine_wide, programs, next: Cell::new(0) };
        fs::create_dir(arena.acts()).map_err(|error| error.to_string())?;
        arena.mode(&arena.acts(), 0o1777)?;
        arena.mode(&arena.directory, 0o755)?;
        for who in [Who::Root, Who::User, Who::Stranger] {
            let home = arena.home(who);
            fs::create_dir(&home).map_err(|error| error.to_string())?;
            arena.mode(&home, 0o755)?;
            chown(&home, Some(who.number()), Some(who.number())).map_err(|error| error.to_string())?;
        }
        Ok(arena)
    }

    /// Adds a line to the log, which shows how far the attack came.
    pub(crate) fn log(&self, line: &str) {
        let file = fs::OpenOptions::new().append(true).create(true).open(self.directory.join("log"));
        if let Ok(mut file) = file {
            let _ = writeln!(file, "{line}");
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Home directory of this user.
    pub(crate) fn home(&self, who: Who) -> PathBuf {
        self.path(match who {
            Who::Root => "root",
            Who::User => "user",
            Who::Stranger => "stranger",
        })
    }

    /// Lease directory of this user.
    pub(crate) fn leases(&self, who: Who) -> PathBuf {
        self.home(who).join("leases")
    }

    pub(crate) fn acts(&self) -> PathBuf {
        self.path("acts")
    }

    /// The command under attack.
    pub(crate) fn program(&self) -> PathBuf {
        self.programs.join("tenure")
    }

    pub(crate) fn actor(&self) -> String {
        self.programs.join("actor").display().to_string()
    }

    pub(crate) fn mode(&self, path: &Path, mode: u32) -> Result<(), String> {
        fs::set_permissions(path, PermissionsExt::from_mode(mode))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// A program that runs as this user, with the environment that all commands of an attack have.
    pub(crate) fn command(&self, who: Who, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = match who {
            Who::Root => Command::new(program),
            Who::User | Who::Stranger => {
                let mut command = Command::new("setpriv");
                let number = who.number().to_string();
                command.args(["--reuid", &number, "--regid", &number, "--clear-groups", "--"]).arg(program);
                command
            }
        };
        let home = self.home(who);
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("HOME", &home).env("XDG_STATE_HOME", home.join("state")).env("XDG_RUNTIME_DIR", &home);
        command.env("TENURE_STORE", format!("file://{}", self.leases(who).display()));
        command.current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    /// `tenure` with these arguments.
    pub(crate) fn tenure(&self, who: Who, words: &[&str]) -> Command {
        let mut command = self.command(who, self.program());
        command.args(words);
        command
    }

    /// `tenure run` for the lease under attack, with these options and this CMD.
    pub(crate) fn run(&self, who: Who, options: &[&str], cmd: &[String]) -> Command {
        let mut command = self.tenure(who, &["run", KEY]);
        command.args(options).arg("--").args(cmd);
        command
    }

    /// The command, which root starts in this cgroup.
    pub(crate) fn inside(&self, cgroup: &Path, command: &Command) -> Command {
        let mut inside = self.command(Who::Root, "sh");
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                inside.env(name, value);
            }
        }
        inside.args(["-c", "echo 0 >\"$0\"/cgroup.procs; exec \"$@\""]).arg(cgroup);
        inside.arg(command.get_program()).args(command.get_args());
        inside
    }

    /// Command line of a CMD that stamps under a label. It blocks every signal that can be blocked.
    pub(crate) fn act(&self, label: &str, millis: u64) -> Vec<String> {
        let acts = self.acts().display().to_string();
        self.tool(&[tools::ACT, &acts, label, &millis.to_string()])
    }

    /// Command line of one of this program's own tools.
    pub(crate) fn tool(&self, words: &[&str]) -> Vec<String> {
        let mut command = vec![self.actor(), tools::WORD.to_owned()];
        command.extend(words.iter().map(|&word| word.to_owned()));
        command
    }

    /// Starts the command with its output in files.
    pub(crate) fn start(&self, mut command: Command) -> Result<Started, String> {
        let number = self.next.replace(self.next.get() + 1);
        let (out, err) = (self.path(&format!("out-{number}")), self.path(&format!("err-{number}")));
        let file = |path: &Path| File::create(path).map_err(|error| error.to_string());
        command.stdout(file(&out)?).stderr(file(&err)?);
        let child = command.spawn().map_err(|error| format!("{command:?} does not start: {error}"))?;
        Ok(Started { number: child.id() as i32, child, out, err })
    }

    /// Runs the command until it exits, for at most 20 s.
    pub(crate) fn ran(&self, command: Command) -> Result<Ran, String> {
        self.start(command)?.end(20)
    }

    /// Limits a resource of a process of the user: the process keeps what it has, and gets nothing more.
    pub(crate) fn limit(&self, number: i32, resource: &str) -> Result<(), String> {
        let mut command = self.command(Who::User, "prlimit");
        command.arg("--pid").arg(number.to_string()).arg(format!("--{resource}=1:1"));
        let ran = self.ran(command)?;
        if ran.code == 0 { Ok(()) } else { Err(format!("prlimit: {}", ran.err)) }
    }

    /// Starts a holder whose actors have this label, and waits until one of them acts.
    pub(crate) fn holder(&self, command: Command, label: &str) -> Result<Started, String> {
        let mut holder = self.start(command)?;
        let acts = until(&format!("an act of {label}"), SOON, || {
            if holder.has_ended() {
                return Some(false);
            }
            self.acted(label).map(|_| true)
        });
        match acts {
            Ok(true) => Ok(holder),
            Ok(false) => {
                let ran = holder.end(1)?;
                Err(format!("the holder exited with {} before it acted: {}", ran.code, ran.err.trim()))
            }
            Err(error) => Err(format!("{error}: {}", holder.said())),
        }
    }

    /// All actors with this label as one act, from the first stamp to the last.
    pub(crate) fn acted(&self, label: &str) -> Option<Act> {
        let acts: Vec<Act> = stamps::acts(&self.acts()).into_iter().filter(|act| act.is(label)).collect();
        let first = acts.iter().map(|act| act.first).min()?;
        let last = acts.iter().map(|act| act.last).max()?;
        Some(Act { name: label.to_owned(), first, last })
    }

    /// Pids of the live actors with this label.
    pub(crate) fn living(&self, label: &str) -> Vec<i32> {
        actors(label)
    }

    /// Waits until no actor with this label is alive. Returns the milliseconds from `since` to the last act.
    pub(crate) fn stops(&self, label: &str, since: i64, limit: Duration) -> Result<f64, String> {
        until("CMD to exit", limit, || self.living(label).is_empty().then_some(()))?;
        let last = self.acted(label).map_or(since, |act| act.last);
        Ok((last - since) as f64 / 1e6)
    }

    /// Runs a successor that acts as `b`. It must not act at the same time as `a`.
    ///
    /// The successor may give up with exit code 75 while an actor of `a` is alive.
    pub(crate) fn succession(&self, who: Who, options: &[&str]) -> AttackOutcome {
        let began = boot_time();
        let mut words = vec!["--ttl", "3s", "--holder", "successor"];
        words.extend_from_slice(options);
        if !options.iter().any(|word| word.contains("wait")) {
            words.extend_from_slice(&["--wait", "9s"]);
        }
        self.log("the successor starts");
        let ran = self.start(self.run(who, &words, &self.act("b", 300)))?.end(20)?;
        self.log(&format!("the successor exited with {}: {}", ran.code, ran.err.trim()));
        self.judge(&ran, began)
    }

    /// Runs a `tenure steal` that acts as `b`. Returns its result and the boot time of its start.
    pub(crate) fn steal(&self, who: Who) -> Result<(Ran, i64), String> {
        let began = boot_time();
        let words = ["steal", KEY, "--reason", "attack", "--ttl", "3s", "--wait", "9s", "--"];
        let mut thief = self.tenure(who, &words);
        thief.args(self.act("b", 300));
        let ran = self.start(thief)?.end(20)?;
        self.log(&format!("the thief exited with {}: {}", ran.code, ran.err));
        Ok((ran, began))
    }

    /// Judges a successor that started at `began` and has exited.
    pub(crate) fn judge(&self, ran: &Ran, began: i64) -> AttackOutcome {
        self.no_overlap()?;
        let living = self.living("a");
        let said = ran.err.trim();
        match ran.code {
            0 => {
                let Some(successor) = self.acted("b") else { return broken("the successor did not act") };
                let waited = (successor.first - began) as f64 / 1e6;
                let gap = self.acted("a").map_or(0.0, |holder| (successor.first - holder.last) as f64 / 1e6);
                held(format!(
                    "the successor acted after {waited:.0} ms, {gap:.0} ms after the holder's last act"
                ))
            }
            75 if living.is_empty() => {
                broken(format!("no process of the holder is alive, but the successor waits: {said}"))
            }
            75 => held(format!("process {living:?} of the holder is alive, and the successor waits: {said}")),
            code => broken(format!("the successor exited with {code}: {said}")),
        }
    }

    /// Returns the number of actors, or an error that names the longest overlap.
    pub(crate) fn no_overlap(&self) -> Result<usize, String> {
        let acts = stamps::acts(&self.acts());
        let overlaps = stamps::overlaps(&acts);
        let worst = overlaps.iter().max_by(|one, other| one.millis.total_cmp(&other.millis));
        match worst {
            None => Ok(acts.len()),
            Some(worst) => Err(format!(
                "OVERLAP of {:.1} ms: {} acted at the same time as {} ({} overlaps among {} actors)",
                worst.millis,
                worst.later,
                worst.earlier,
                overlaps.len(),
                acts.len()
            )),
        }
    }
}

impl Who {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::User => 64_001,
            Self::Stranger => 64_002,
        }
    }
}

impl Started {
    /// Pid of the watchdog, the only child of the supervisor.
    pub(crate) fn watchdog(&self) -> Result<i32, String> {
        until("a watchdog", SOON, || children_of(self.number).first().copied())
    }

    /// Pids of supervisor and watchdog.
    pub(crate) fn guards(&self) -> Result<[i32; 2], String> {
        Ok([self.number, self.watchdog()?])
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default().trim().to_owned()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits until the command exits, and fails after this many seconds.
    pub(crate) fn end(mut self, seconds: u64) -> Result<Ran, String> {
        let limit = Duration::from_secs(seconds);
        let ended = until("its exit", limit, || self.child.try_wait().ok().flatten());
        let status = ended.map_err(|error| format!("{error}; stderr: {:?}", self.said()))?;
        let out = fs::read_to_string(&self.out).unwrap_or_default().trim().to_owned();
        Ok(Ran { code: exit_code(status), out, err: self.said() })
    }
}

/// Key of the lease under attack.
pub(crate) const KEY: &str = "k";

/// Timeout for events that are immediate unless the machine is busy.
const SOON: Duration = Duration::from_secs(15);
