//! System calls that no safe wrapper offers.
#![expect(unsafe_code, reason = "seccomp, close_range, fork and the exit of a thread have no safe wrapper")]

use std::io;

/// Makes exec close every descriptor above standard error, as Python's `Popen` does.
pub(crate) fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call changes only flags of descriptors; it closes none under an owner.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes this system call fail with `EPERM`, in this process and every process that it starts.
pub(crate) fn deny(call: libc::c_long) -> io::Result<()> {
    let statement = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        // The first word of the data is the number of the system call.
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

/// Runs `child` in a forked copy of this process and returns its exit code.
pub(crate) fn forked(child: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: the attack tests programs that fork while other threads run. The child exits by _exit.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if pid == 0 {
        let code = child();
        // SAFETY: _exit tears down no state that the child copied from its parent.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child created above.
    if unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {
        return Err(io::Error::last_os_error());
    }
    Ok(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) })
}

/// Ends only the calling thread. The process continues while it has another thread.
pub(crate) fn exit_thread() -> ! {
    // SAFETY: nothing is unwound. A join on this thread would never return, and no thread joins it.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended")
}

/// Releases every lock of this process on open file descriptions above standard error.
pub(crate) fn unlock_all() {
    for number in 3..1024 {
        // SAFETY: a plain structure of numbers. Zero is a valid value, and means the complete file.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_UNLCK as libc::c_short;
        // SAFETY: the kernel reads the structure only during the call. A number without a descriptor fails harmlessly.
        unsafe { libc::fcntl(number, libc::F_OFD_SETLK, &raw mut lock) };
    }
}
