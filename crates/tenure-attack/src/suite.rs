use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use tenure_testkit::sleep_ms;

use crate::args::Args;
use crate::attack::{Attack, Company};
use crate::attacks;
use crate::cell;
use crate::cgroup::Cgroup;
use crate::table::Table;
use crate::verdict::AttackVerdict;

/// Runs the attacks, prints the table, and cleans up.
pub(crate) fn main(args: &Args) -> ExitCode {
    let chosen: Vec<(usize, Attack)> = attacks::all()
        .into_iter()
        .enumerate()
        .filter(|(_, attack)| attack.name.contains(&args.filter))
        .collect();
    if args.list {
        for (_, attack) in &chosen {
            println!("{}: {}", attack.name, attack.promise);
        }
        return ExitCode::SUCCESS;
    }
    if !nix::unistd::geteuid().is_root() {
        eprintln!("the attacks mount file systems and switch users: run them as root");
        return ExitCode::from(77);
    }
    let table = Mutex::new(Table::default());
    let suite = match Suite::prepare(args) {
        Ok(suite) => suite,
        Err(error) => {
            eprintln!("cannot prepare the attacks: {error}");
            return ExitCode::from(69);
        }
    };
    // Children start with an empty mask: the standard library resets it.
    let ending: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    ending.thread_block().expect("signals can be blocked");
    std::thread::spawn(move || {
        let _ = ending.wait();
        INTERRUPTED.store(true, Ordering::SeqCst);
    });

    let (alone, beside): (Vec<_>, Vec<_>) =
        chosen.iter().partition(|(_, attack)| attack.company == Company::Alone);
    suite.run(beside, AT_ONCE, &table);
    suite.run(alone, 1, &table);

    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    if args.json {
        table.print_json();
    } else {
        table.print();
    }
    if INTERRUPTED.load(Ordering::SeqCst) {
        eprintln!("interrupted");
        return ExitCode::from(130);
    }
    ExitCode::from(u8::from(!table.is_good()))
}

/// Directory of the suite: the programs, and a subdirectory for each attack.
#[derive(Debug)]
struct Suite {
    directory: PathBuf,
    machine_wide: bool,
    /// Original value of the only machine-wide setting that an attack may change.
    file_max: Option<String>,
}

impl Suite {
    fn prepare(args: &Args) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let directory = PathBuf::from(format!("/var/tmp/tenure-attack-{}", std::process::id()));
        let file_max = fs::read_to_string(FILE_MAX).ok().filter(|_| args.machine_wide);
        let suite = Self { directory, machine_wide: args.machine_wide, file_max };
        let programs = suite.directory.join("bin");
        fs::create_dir_all(&programs).map_err(text)?;
        // Other users execute them too, and may have no access to the build directory.
        for (from, to) in [(&args.tenure, "tenure"), (&std::env::current_exe().map_err(text)?, "actor")] {
            fs::copy(from, programs.join(to)).map_err(|error| format!("{}: {error}", from.display()))?;
        }
        for directory in [&suite.directory, &programs] {
            fs::set_permissions(directory, PermissionsExt::from_mode(0o755)).map_err(text)?;
        }
        Ok(suite)
    }

    fn run(&self, attacks: Vec<&(usize, Attack)>, at_once: usize, table: &Mutex<Table>) {
        let queue: Mutex<VecDeque<_>> = Mutex::new(attacks.into());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(|| {
                    while let Some((number, attack)) = next()
                        && !INTERRUPTED.load(Ordering::SeqCst)
                    {
                        let began = Instant::now();
                        let verdict = self.attack(*number, attack);
                        let took = began.elapsed();
                        if INTERRUPTED.load(Ordering::SeqCst) {
                            break;
                        }
                        eprintln!("{:11} {} ({:.1} s)", verdict.word(), attack.name, took.as_secs_f64());
                        table
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .add(*number, attack, verdict, took);
                    }
                });
            }
        });
    }

    /// Runs one attack in its own namespaces.
    fn attack(&self, number: usize, attack: &Attack) -> AttackVerdict {
        let directory = Directory::new(self.directory.join(format!("{number:02}")));
        let cgroup = Cgroup::make(&format!("tenure-attack-{}-{number}", std::process::id()));
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.arg(self.directory.join("bin/actor")).arg(cell::WORD).arg(&attack.name).arg(&directory.path);
        command.arg(cgroup.as_ref().map_or(Path::new(cell::NO_CGROUP), |cgroup| &cgroup.path));
        command.arg(if self.machine_wide { cell::MACHINE_WIDE } else { cell::GENTLE });
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return AttackVerdict::Skipped(format!("unshare does not start: {error}")),
        };
        if wait(&mut child, attack.limit) {
            cell::verdict_in(&directory.path)
        } else {
            // The kernel kills the first process of the namespace with unshare, and all others with that process.
            let _ = child.kill();
            let _ = child.wait();
            let reached = fs::read_to_string(directory.path.join("log")).unwrap_or_default();
            let reached = reached.lines().last().unwrap_or("none");
            AttackVerdict::Broken(format!(
                "not finished within {:?}; last line of the log: {reached}",
                attack.limit
            ))
        }
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        if let Some(file_max) = &self.file_max {
            let _ = fs::write(FILE_MAX, file_max);
        }
        // An interrupted attack may have left its CPU cgroup behind.
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for entry in fs::read_dir("/sys/fs/cgroup/cpu").into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&format!("{name}-")) {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A directory that is removed when dropped, unless `TENURE_ATTACK_KEEP` is set.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
}

impl Directory {
    fn new(path: PathBuf) -> Self {
        fs::create_dir_all(&path).expect("the directory of the suite is writable");
        Self { path }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if std::env::var_os("TENURE_ATTACK_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// True if the child exited in time and no signal interrupted the suite.
fn wait(child: &mut Child, limit: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < limit && !INTERRUPTED.load(Ordering::SeqCst) {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return true;
        }
        sleep_ms(10);
    }
    false
}

const FILE_MAX: &str = "/proc/sys/fs/file-max";

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Number of attacks that run in parallel. Attacks mostly wait, so it does not depend on the number of processors.
const AT_ONCE: usize = 4;
