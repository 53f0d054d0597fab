//! The one place of the command that needs `unsafe`: forking, hearing of the end of what was forked, and asking whether it
//! may be signalled.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::{fs, io};

use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use rustix::process::Pid;

/// Which of the two this process is.
pub(super) enum Side {
    Parent { child: Pid },
    Child,
}

/// Forks this process, which must not have a second thread: what another thread had locked would stay locked in the
/// child for ever, the allocator included.
///
/// Forking is what `std` has no way for. A fresh program in between would cost a millisecond of each `tenure run`, twice.
#[expect(
    unsafe_code,
    reason = "the kernel copies a process by fork alone, and only the caller knows its threads"
)]
pub(super) fn fork() -> io::Result<Side> {
    check_single_threaded()?;
    // SAFETY: this is the only thread, as just counted, so the child is a whole copy in which everything works.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(parent(child.as_raw())),
        nix::unistd::ForkResult::Child => Ok(Side::Child),
    }
}

/// Forks so that the child is in this cgroup from its first instruction.
///
/// Moving it there later would make every process of the machine that starts or ends wait for some milliseconds. The C
/// library has no such fork, so that in the child it knows a wrong thread id, which only `abort` and `raise` use.
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
    // SAFETY: the arguments live for the call and have the size that is told. Neither memory nor a stack is shared, so
    // that this is a fork; and this is the only thread, as just counted.
    let number = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) };
    match i32::try_from(number) {
        Ok(0) => Ok(Side::Child),
        Ok(child) if child > 0 => Ok(parent(child)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets what happens when a child ends, and tells what it was before.
///
/// A caller that ignores it leaves that to those it starts, and then the kernel reaps in our place: no status, no
/// signal, and a number that may be somebody else's.
#[expect(unsafe_code, reason = "the call is unsafe for the sake of handlers that are functions")]
pub(super) fn set_child_action(action: SigHandler) -> io::Result<SigHandler> {
    // SAFETY: the default, or ignoring: nothing of ours is called.
    Ok(unsafe { signal(Signal::SIGCHLD, action) }?)
}

/// Verifies that this process may signal another one through a descriptor, by a signal that does nothing.
///
/// A filter of system calls may allow to open such a descriptor and not to use it. Then nothing but the child itself could
/// be ended.
#[expect(unsafe_code, reason = "no library has the signal that does nothing for this call")]
pub(super) fn may_signal(process: BorrowedFd<'_>) -> io::Result<()> {
    let nothing = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the kernel reads no memory: there is no information to go with the signal.
    match unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), 0, nothing, 0) } {
        0 => Ok(()),
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
