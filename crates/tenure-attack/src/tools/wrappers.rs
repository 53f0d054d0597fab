//! Wrappers that change what their process has or may do, and then execute a command.

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::unistd::{Gid, Pid, Uid, setgid, setuid};

use super::{Done, number, text};
use tenure_testkit::sleep_ms;

use crate::raw;

/// Executes the command without any descriptor above standard error.
pub(super) fn closing(command: &[&str]) -> Done {
    raw::close_on_exec().map_err(text)?;
    become_command(command)
}

/// Releases every inherited lock, then executes the command.
pub(super) fn unlocking(command: &[&str]) -> Done {
    raw::unlock_all();
    become_command(command)
}

/// Executes the command, which may open pidfds but not send signals through them.
pub(super) fn without_pidfd_signals(command: &[&str]) -> Done {
    raw::deny(libc::SYS_pidfd_send_signal).map_err(text)?;
    become_command(command)
}

/// Executes the command as root, as `gosu` does. This program must have the setuid bit.
pub(super) fn root_exec(command: &[&str]) -> Done {
    be_root()?;
    become_command(command)
}

/// Runs the command as root and waits for it, as `sudo` does. This program must have the setuid bit.
pub(super) fn root_fork(command: &[&str]) -> Done {
    be_root()?;
    let (program, words) = command.split_first().ok_or("no command given")?;
    Command::new(program).args(words).status().map(|_| ()).map_err(text)
}

/// Stops a process for `millis`, as a debugger does.
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
    let (program, words) = command.split_first().ok_or("no command given")?;
    Err(text(Command::new(program).args(words).exec()))
}
