//! A forked child that connects anew has its own hints, and does not disturb those of its parent.
#![expect(unsafe_code, reason = "there is no safe fork")]

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::store::File;
use tenure::{Coordinator, Error, Lease};
use tenure_testkit::{sleep_ms, wait_until};
use tokio::runtime::Runtime;

/// Polls come once in twenty seconds: an earlier grant came from a hint of the kernel.
const TTL: Duration = Duration::from_secs(60);

#[test]
fn a_forked_child_that_waits_gets_its_own_hints_and_takes_no_watch_from_its_parent() {
    let directories = Directories::new();
    let runtime = runtime();
    let _other = runtime.block_on(hold(&directories.other));
    let held = runtime.block_on(hold(&directories.shared));
    // The parent waits for a lease, so that its inotify hub exists when it forks.
    let waits = runtime.block_on(connect(&directories.other));
    let mut waiting = pin!(waits.lease("k").unwrap().wait(TTL).acquire());
    start(&runtime, waiting.as_mut());
    wait_until("the parent waits", || is_watched(&directories.other));

    let (ready, mut is_ready) = tell(pipe());
    let (go, may_go) = tell(pipe());
    // SAFETY: the child leaves by _exit, and drops nothing of its parent's.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        drop(go);
        let lived = std::panic::catch_unwind(|| live_as_child(&directories.shared, ready, may_go));
        // SAFETY: nothing of the parent's may be torn down in the child.
        unsafe { libc::_exit(i32::from(lived.is_err())) };
    }
    drop(ready);
    is_ready.read_exact(&mut [0]).expect("the child waits");
    // Now the parent waits for the same key.
    let contends = runtime.block_on(connect(&directories.shared));
    let mut contending = pin!(contends.lease("k").unwrap().ttl(TTL).wait(2 * TTL).acquire());
    start(&runtime, contending.as_mut());
    wait_until("the parent waits for it too", || is_watched(&directories.shared));
    sleep_ms(200);
    drop(go);
    assert_eq!(exit_code(child), 0, "the child failed: see its panic message");
    assert!(is_watched(&directories.shared), "the child took its parent's watch with it");
    assert!(is_watched(&directories.other), "the child took its parent's watch with it");
    let began = BootClock::new().now();
    runtime.block_on(held.release()).unwrap();
    let granted = runtime.block_on(contending).unwrap();
    let took = BootClock::new().now().since(began);
    assert!(took < TTL / 6, "granted by a poll, and not by a hint: {took:?}");
    runtime.block_on(granted.release()).unwrap();
}

/// Waits for the lease, and then blocks until the parent has inspected it.
fn live_as_child(directory: &Path, mut ready: PipeWriter, mut may_go: PipeReader) {
    let runtime = runtime();
    let before = instances();
    let waits = runtime.block_on(connect(directory));
    {
        let mut waiting = pin!(waits.lease("k").unwrap().ttl(TTL).wait(TTL).acquire());
        start(&runtime, waiting.as_mut());
        wait_until("the child waits, with an instance of its own", || instances() == before + 1);
        ready.write_all(&[0]).unwrap();
        let _ = may_go.read(&mut [0]);
    }
    // The kernel's hints also reach the child: its own thread reads them.
    let mine = runtime.block_on(async { waits.lease("mine").unwrap().ttl(TTL).acquire().await.unwrap() });
    let second = runtime.block_on(connect(directory));
    let mut waiting = pin!(second.lease("mine").unwrap().ttl(TTL).wait(2 * TTL).acquire());
    start(&runtime, waiting.as_mut());
    sleep_ms(200);
    let began = BootClock::new().now();
    runtime.block_on(mine.release()).unwrap();
    let granted = runtime.block_on(waiting).unwrap();
    let took = BootClock::new().now().since(began);
    assert!(took < TTL / 6, "granted by a poll, and not by a hint: {took:?}");
    runtime.block_on(granted.release()).unwrap();
    runtime.block_on(waits.shutdown()).unwrap();
    runtime.block_on(second.shutdown()).unwrap();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn connect(directory: &Path) -> Coordinator {
    Coordinator::connect(File::open(directory).unwrap()).await.unwrap()
}

async fn hold(directory: &Path) -> Lease {
    connect(directory).await.lease("k").unwrap().ttl(TTL).without_witness().acquire().await.unwrap()
}

/// Polls once; the keeper does the remaining work.
fn start(runtime: &Runtime, request: Pin<&mut impl Future<Output = Result<Lease, Error>>>) {
    let _in = runtime.enter();
    assert!(request.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// True if an inotify instance of this process watches this directory.
fn is_watched(directory: &Path) -> bool {
    let inode = format!(" ino:{:x} ", std::fs::metadata(directory).unwrap().ino());
    inotify().any(|info| info.contains(&inode))
}

fn instances() -> usize {
    inotify().count()
}

/// The kernel's description of each inotify instance of this process.
fn inotify() -> impl Iterator<Item = String> {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let inotify =
        all.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:inotify"));
    inotify.filter_map(|fd| std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(fd.file_name())).ok())
}

fn tell(pipe: std::io::Result<(PipeReader, PipeWriter)>) -> (PipeWriter, PipeReader) {
    let (reader, writer) = pipe.unwrap();
    (writer, reader)
}

fn exit_code(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: waits for the child that the caller forked.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child crashed: {status:#x}");
    libc::WEXITSTATUS(status)
}

struct Directories {
    root: PathBuf,
    other: PathBuf,
    shared: PathBuf,
}

impl Directories {
    fn new() -> Self {
        let name = format!("tenure-fork-{}", std::process::id());
        let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&root).unwrap();
        Self { other: root.join("other"), shared: root.join("shared"), root }
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
