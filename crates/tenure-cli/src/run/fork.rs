//! The only `unsafe` code of the command: forking, the disposition of SIGCHLD, a test signal, and a copy of a
//! descriptor that is known by its number.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::{fs, io};

use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use rustix::process::Pid;

/// The side of a fork.
pub(crate) enum Side {
    Parent { child: Pid },
    Child,
}

/// Forks this process, which must not have a second thread: a lock of another thread would stay locked in the child,
/// including that of the allocator.
///
/// `std` cannot fork. A fresh program instead would cost a millisecond of each `tenure run`, twice.
#[expect(
    unsafe_code,
    reason = "the kernel copies a process by fork alone, and only the caller knows its threads"
)]
pub(crate) fn fork() -> io::Result<Side> {
    check_single_threaded()?;
    // SAFETY: this is the only thread, as just counted, so the child is a complete copy in which everything works.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(parent(child.as_raw())),
        nix::unistd::ForkResult::Child => Ok(Side::Child),
    }
}

/// Forks so that the child is in this cgroup from its first instruction.
///
/// Moving it there later would delay every process of the machine that starts or ends by some milliseconds. The C
/// library has no such fork, so in the child it has a wrong thread id, which only `abort` and `raise` use.
#[expect(
    unsafe_code,
    reason = "the kernel forks into a cgroup by clone3 alone, which the C library does not have"
)]
pub(super) fn fork_into(cgroup: BorrowedFd<'_>) -> io::Result<Side> {
    check_single_threaded()?;
    let arguments = CloneArguments {
        flags: CLONE_INTO_CGROUP,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: cgroup.as_raw_fd() as u64,
        ..CloneArguments::default()
    };
    let size = size_of::<CloneArguments>();
    // SAFETY: the arguments live for the call and have the given size. Neither memory nor a stack is shared, so this is
    // a fork; and this is the only thread, as just counted.
    let number = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) };
    match i32::try_from(number) {
        Ok(0) => Ok(Side::Child),
        Ok(child) if child > 0 => Ok(parent(child)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the disposition of SIGCHLD, and returns the previous one.
///
/// A caller that ignores SIGCHLD passes that on to its children, and then the kernel reaps in place of this process: no
/// status, no signal, and a process id that may be reused.
#[expect(unsafe_code, reason = "the call is unsafe for the sake of handlers that are functions")]
pub(crate) fn set_child_action(action: SigHandler) -> io::Result<SigHandler> {
    // SAFETY: default or ignore: no handler is called.
    Ok(unsafe { signal(Signal::SIGCHLD, action) }?)
}

/// Verifies, with signal 0, that this process may signal another one through a descriptor.
///
/// A filter of system calls may allow to open such a descriptor but not to use it. Then only the child itself could be
/// killed.
#[expect(unsafe_code, reason = "no library has the signal that does nothing for this call")]
pub(crate) fn may_signal(process: BorrowedFd<'_>) -> io::Result<()> {
    let nothing = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the kernel reads no memory: the signal carries no information.
    match unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), 0, nothing, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Copies a descriptor that this process has inherited, of which it knows only the number. Both have the same open file
/// description.
#[expect(unsafe_code, reason = "no library copies a descriptor that has no owner in this process")]
pub(crate) fn copy_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers alone, and has no effect on a descriptor that is open.
    match unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) } {
        // SAFETY: the kernel has just made it for this call, so nothing else owns it.
        copy if copy >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(copy) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn check_single_threaded() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!("cannot fork with {threads} threads"))),
    }
}

fn parent(child: i32) -> Side {
    Side::Parent { child: Pid::from_raw(child).expect("a child has a number") }
}

/// `struct clone_args` of the kernel, as of Linux 5.7.
#[derive(Default)]
#[repr(C, align(8))]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
