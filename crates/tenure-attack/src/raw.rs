//! System calls that no safe wrapper offers.
#![expect(unsafe_code, reason = "seccomp, close_range, fork and the end of a thread have no safe wrapper")]

use std::io;

/// From here on every descriptor above standard error is closed by exec, as Python's `Popen` does.
pub(crate) fn close_on_exec() -> io::Result<()> {
    // SAFETY: only flags of descriptors change; none is closed under an owner.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From here on this system call fails with `EPERM`, in this process and all that it starts.
pub(crate) fn deny(call: libc::c_long) -> io::Result<()> {
    let statement = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        // The number of the call is the first word of the data.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program during the call.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs `child` in a forked copy of this process and gives its exit code.
pub(crate) fn forked(child: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: programs that fork while other threads run are what this attack is about. The child leaves by _exit.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if pid == 0 {
        let code = child();
        // SAFETY: nothing of the parent's is torn down in the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    if unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {
        return Err(io::Error::last_os_error());
    }
    Ok(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) })
}

/// Ends the calling thread alone. The process goes on as long as it has another one.
pub(crate) fn exit_thread() -> ! {
    // SAFETY: nothing is unwound; a thread that joins this one would wait for ever, and none does.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended")
}

/// Frees every lock of this process on open file descriptions above standard error.
pub(crate) fn unlock_all() {
    for number in 3..1024 {
        // SAFETY: a plain structure of numbers, for which zero is a value: from the beginning to the end of the file.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_UNLCK as libc::c_short;
        // SAFETY: the kernel reads the structure during the call; a number without a descriptor is an error, ignored.
        unsafe { libc::fcntl(number, libc::F_OFD_SETLK, &raw mut lock) };
    }
}
