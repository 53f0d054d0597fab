//! Programs that change what a process may do, and then become another one.

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::unistd::{Gid, Pid, Uid, setgid, setuid};

use super::{Done, number, text};
use tenure_testkit::sleep_ms;

use crate::raw;

/// Becomes the command, without any descriptor above standard error.
pub(super) fn closing(command: &[&str]) -> Done {
    raw::close_on_exec().map_err(text)?;
    become_command(command)
}

/// Becomes the command, after freeing every lock that it has inherited.
pub(super) fn unlocking(command: &[&str]) -> Done {
    raw::unlock_all();
    become_command(command)
}

/// Becomes the command, which may open pidfds and may not signal by them.
pub(super) fn without_pidfd_signals(command: &[&str]) -> Done {
    raw::deny(libc::SYS_pidfd_send_signal).map_err(text)?;
    become_command(command)
}

/// Becomes the command as root, where this program has the setuid bit: as `gosu` does.
pub(super) fn root_exec(command: &[&str]) -> Done {
    be_root()?;
    become_command(command)
}

/// Runs the command as root and waits for it, where this program has the setuid bit: as `sudo` does.
pub(super) fn root_fork(command: &[&str]) -> Done {
    be_root()?;
    let (program, words) = command.split_first().ok_or("a command")?;
    Command::new(program).args(words).status().map(|_| ()).map_err(text)
}

/// Stops a process as a debugger does, for so long.
pub(super) fn ptrace(pid: &str, millis: &str) -> Done {
    let pid = Pid::from_raw(i32::try_from(number(pid)?).map_err(text)?);
    nix::sys::ptrace::attach(pid).map_err(text)?;
    nix::sys::wait::waitpid(pid, None).map_err(text)?;
    sleep_ms(number(millis)?);
    nix::sys::ptrace::detach(pid, None).map_err(text)
}

fn be_root() -> Done {
    setgid(Gid::from_raw(0)).map_err(text)?;
    setuid(Uid::from_raw(0)).map_err(text)
}

fn become_command(command: &[&str]) -> Done {
    let (program, words) = command.split_first().ok_or("a command")?;
    Err(text(Command::new(program).args(words).exec()))
}
