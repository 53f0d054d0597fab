//! The child before it executes the user's program: a process that waits at a gate, so that only one exec is between
//! the grant and the program.

use std::ffi::OsString;
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow};
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};
use tenure::clock::{BootClock, Clock};

use super::fork;
use super::link::{Link, Received};
use super::start_message::StartMessage;
use crate::elect::ElectState;

/// The program was not found.
pub(super) const NOT_FOUND: i32 = 127;
/// The program cannot be executed.
pub(super) const NOT_EXECUTABLE: i32 = 126;

/// Waits until the gate opens, and executes the user's program. If that fails, it sends the watchdog the error number,
/// or zero if it was too late.
pub(super) fn run(watchdog: Pid, gate: Link, child_action: SigHandler, command: &[OsString]) -> ! {
    die_with(watchdog);
    // Signals during the wait are for the program. The stub ends only when the watchdog closes the gate or dies.
    let usual = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let (message, witness) = match gate.wait() {
        Received::Message(message, descriptors) => (message, descriptors.into_iter().next()),
        Received::Nothing | Received::End => exit(0),
    };
    let Some(start) = StartMessage::from_bytes(&message) else { exit(0) };
    if let Some(witness) = witness {
        keep_through_exec(witness);
    }
    let mut program = Command::new(&command[0]);
    // A lease inside a slot is not that slot.
    program
        .args(&command[1..])
        .env_remove("TENURE_SLOT")
        .envs(start.environment)
        .env_remove(ElectState::VARIABLE);
    // The last check: the process may have been stopped for any time between the grant and this line.
    if BootClock::new().now() >= start.before {
        let _ = gate.send(&0i32.to_ne_bytes(), &[]);
        exit(NOT_EXECUTABLE);
    }
    let _ = fork::set_child_action(child_action);
    if let Ok(usual) = usual {
        let _ = usual.thread_set_mask();
    }
    let error = program.exec();
    let number = error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error());
    let _ = gate.send(&number.to_ne_bytes(), &[]);
    exit(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE })
}

/// Makes the kernel kill this process, and the program that it executes, when the watchdog dies: if both guards are
/// killed at once, nothing else would. The watchdog has one thread; the kernel acts on the death of the thread that
/// forked.
fn die_with(watchdog: Pid) {
    let set = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    // A watchdog that died before the call sends no signal.
    if set.is_err() || rustix::process::getppid() != Some(watchdog) {
        exit(0);
    }
}

/// The program inherits the witness, under a number that scripts do not redirect. If that fails, supervisor and
/// watchdog still hold it.
fn keep_through_exec(witness: OwnedFd) {
    let witness = rustix::io::fcntl_dupfd_cloexec(&witness, FIRST_KEPT).unwrap_or(witness);
    if rustix::io::fcntl_setfd(&witness, FdFlags::empty()).is_ok() {
        let _ = witness.into_raw_fd();
    }
}

/// Shell scripts redirect 3 to 9, and some programs rely on low numbers.
const FIRST_KEPT: i32 = 101;
