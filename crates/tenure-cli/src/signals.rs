use std::fs;
use std::io;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use tenure::clock::{BootClock, Clock};
use tokio::io::unix::AsyncFd;

use crate::exit::Failure;
use crate::ready::when_readable;

/// The signals of this process, one at a time. They are blocked in all threads, and read from the kernel here.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: AsyncFd<SignalFd>,
    reload: Reload,
}

/// Meaning of HUP, USR1 and USR2 for a process without a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reload {
    /// They end it, as they end a program that does not handle them.
    Ends,
    /// They have no effect. They are for a later command, which reads its configuration anyway.
    Ignored,
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedSignal {
    pub(crate) signal: Signal,
    /// True for a key on the terminal, or its hang-up: the kernel has sent it to every process of the foreground group.
    pub(crate) by_terminal: bool,
}

/// The signals are blocked, and not read yet.
#[derive(Debug)]
pub(crate) struct Blocked(SignalFd);

impl Blocked {
    /// Blocks the signals. Must be called before the first thread, because threads inherit the mask.
    pub(crate) fn now() -> io::Result<Self> {
        let mut set = SigSet::empty();
        let ignored = ignored();
        for signal in HANDLED {
            // A signal that was ignored at the start of this process stays ignored, as `nohup` and shells expect. A
            // blocked signal would be read here even so.
            if ignored >> (signal as i32 - 1) & 1 == 0 {
                set.add(signal);
            }
        }
        let mut blocked = set;
        blocked.extend(ONLY_BLOCKED);
        blocked.thread_block()?;
        Ok(Self(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Waits for the first signal that ends a process without a command, for at most this long.
    pub(crate) fn ended_within(&self, span: Duration, reload: Reload) -> Option<Signal> {
        let clock = BootClock::new();
        let end = clock.now() + span;
        loop {
            while let Some(came) = read(&self.0) {
                if reload.ends(came) {
                    return Some(came.signal);
                }
            }
            let left = end.since(clock.now());
            if left.is_zero() {
                return None;
            }
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left));
        }
    }

    /// Starts to read them, inside a runtime.
    pub(crate) fn take(self) -> io::Result<Signals> {
        self.take_with(Reload::Ends)
    }

    pub(crate) fn take_with(self, reload: Reload) -> io::Result<Signals> {
        Ok(Signals { descriptor: when_readable(self.0)?, reload })
    }
}

impl Signals {
    /// Waits for the next signal.
    pub(crate) async fn next(&self) -> ReceivedSignal {
        loop {
            let Ok(mut ready) = self.descriptor.readable().await else { return std::future::pending().await };
            match self.pending() {
                Some(came) => return came,
                None => ready.clear_ready(),
            }
        }
    }

    /// Waits for the first signal that ends a process without a command.
    pub(crate) async fn ended(&self) -> Signal {
        loop {
            let came = self.next().await;
            if self.reload.ends(came) {
                return came.signal;
            }
        }
    }

    /// A signal that has already arrived.
    pub(crate) fn pending(&self) -> Option<ReceivedSignal> {
        read(self.descriptor.get_ref())
    }
}

impl Reload {
    /// True if this signal ends a process without a command.
    fn ends(self, ReceivedSignal { signal, by_terminal }: ReceivedSignal) -> bool {
        match signal {
            Signal::SIGCHLD | Signal::SIGCONT | Signal::SIGWINCH => false,
            Signal::SIGHUP => by_terminal || self == Self::Ends,
            Signal::SIGUSR1 | Signal::SIGUSR2 => self == Self::Ends,
            _ => true,
        }
    }
}

/// The next signal that has already arrived.
fn read(descriptor: &SignalFd) -> Option<ReceivedSignal> {
    loop {
        let info = descriptor.read_signal().ok()??;
        if let Ok(signal) = Signal::try_from(info.ssi_signo as i32) {
            return Some(ReceivedSignal { signal, by_terminal: info.ssi_code == SI_KERNEL });
        }
    }
}

/// Failure of a command that could not be interrupted.
pub(crate) fn no_signals(error: io::Error) -> Failure {
    Failure::unavailable(format!("tenure cannot receive signals: {error}. Try again"))
}

/// The set of ignored signals from the kernel; empty if it cannot be read.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Signals that are read. All but the last two are for the child.
const HANDLED: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGCONT,
    Signal::SIGCHLD,
];

/// Signals that are blocked and never read. A file that may not grow is an error of the write. A message from the
/// background on a terminal is no reason to stop.
const ONLY_BLOCKED: [Signal; 2] = [Signal::SIGXFSZ, Signal::SIGTTOU];

/// `SI_KERNEL`: the kernel itself sent the signal.
const SI_KERNEL: i32 = 0x80;
