//! Cost of `tenure run` as multiples of the bare operations in the same run, and the time until waiters wake up.
#![expect(clippy::disallowed_methods, reason = "it measures real time, and looks after its own processes")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure::Coordinator;
use tenure::store::File;
use tenure_testkit::{Samples, print_ratio, skipped};

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

fn main() {
    let directory = Directory::new();
    println!("{}", Samples::heading());

    let mut run = Samples::new("tenure run x -- true");
    let mut flock = Samples::new("flock(1) around true");
    let mut chain = Samples::new("a bare write, fsync, rename, fsync");
    let mut lease = Samples::new("acquire and release on the file store");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = File::open(directory.path("library")).unwrap();
    let coordinator = runtime.block_on(Coordinator::connect(store)).unwrap();
    let lock = directory.path("lock");
    let has_flock = Command::new("flock").arg("--version").stdout(Stdio::null()).status().is_ok();
    for _ in 0..ROUNDS {
        // In turn, so that other load on the machine affects all of them.
        run.take(|| {
            let status = tenure(&directory).args(["run", "x", "--", "true"]).status().unwrap();
            assert!(status.success());
        });
        if has_flock {
            flock.take(|| {
                assert!(Command::new("flock").arg(&lock).arg("true").status().unwrap().success());
            });
        }
        chain.take(|| bare_chain(&directory));
        lease.take(|| {
            runtime.block_on(async {
                let lease = coordinator.lease("x").unwrap().acquire().await.unwrap();
                lease.release().await.unwrap();
            });
        });
    }
    for samples in [&run, &chain, &lease].into_iter().chain(has_flock.then_some(&flock)) {
        println!("{samples}");
    }

    let mut released = Samples::new("from a release to the next one's output");
    let mut died = Samples::new("from kill -9 of a supervisor to the next one's output");
    for _ in 0..WAKINGS {
        let held = runtime.block_on(async { coordinator.lease("w").unwrap().acquire().await.unwrap() });
        let mut waiter = waiter_in(&directory.path("library"));
        released.take(|| {
            runtime.block_on(held.release()).unwrap();
            waiter.hear();
        });
        drop(waiter);

        let path = directory.path("store");
        let mut holder = tenure(&directory);
        holder.args(["run", "w", "--", "sh", "-c", "echo; exec sleep 1000"]);
        let mut holder = Speaking::start(holder);
        holder.hear();
        let mut waiter = waiter_in(&path);
        died.take(|| {
            holder.child.kill().unwrap();
            waiter.hear();
        });
    }
    println!("{released}\n{died}\n");
    if has_flock {
        let bare = flock.at(50) + chain.at(50) * 2;
        print_ratio("tenure run x -- true, to flock(1) and two bare chains", run.at(50), bare, Some(1.5));
    } else {
        skipped("flock(1) is not installed, so there is nothing to compare `tenure run` with");
    }
    print_ratio("acquire and release, to two bare chains", lease.at(50), chain.at(50) * 2, Some(1.3));
}

fn tenure(directory: &Directory) -> Command {
    let mut command = Command::new(TENURE);
    command.arg("--store").arg(format!("file://{}", directory.path("store").display()));
    command
}

fn waiter_in(store: &Path) -> Speaking {
    let mut command = Command::new(TENURE);
    command.arg("--store").arg(format!("file://{}", store.display()));
    command.args(["run", "w", "--wait", "1m", "--", "echo"]);
    let waiter = Speaking::start(command);
    // Long enough for the waiter to read the record and start waiting.
    std::thread::sleep(Duration::from_millis(150));
    waiter
}

fn bare_chain(directory: &Directory) {
    let temporary = directory.path("temporary");
    let mut file = fs::File::create(&temporary).unwrap();
    file.write_all(&[b'x'; 600]).unwrap();
    file.sync_all().unwrap();
    fs::rename(&temporary, directory.path("entry")).unwrap();
    fs::File::open(directory.path("")).unwrap().sync_all().unwrap();
}

/// A process that is measured until its first byte of output.
struct Speaking {
    child: Child,
}

impl Speaking {
    fn start(mut command: Command) -> Self {
        Self { child: command.stdout(Stdio::piped()).spawn().unwrap() }
    }

    fn hear(&mut self) {
        self.child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }
}

impl Drop for Speaking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory on the disk of the target directory, removed on drop.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-bench-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ROUNDS: usize = 103;
const WAKINGS: usize = 13;
