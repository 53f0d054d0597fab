use std::fs;
use std::io;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use tokio::io::unix::AsyncFd;

use crate::exit::Failure;
use crate::ready::when_readable;

/// The signals that come to this process, one at a time. They are blocked in all threads, and taken from the kernel here.
#[derive(Debug)]
pub(crate) struct Signals(AsyncFd<SignalFd>);

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedSignal {
    pub(crate) signal: Signal,
    /// A key on the terminal, or its end: every process of the foreground group has got it from the kernel.
    pub(crate) by_terminal: bool,
}

/// The signals are blocked, and nobody takes them yet.
#[derive(Debug)]
pub(crate) struct Blocked(SignalFd);

impl Blocked {
    /// Blocks them, which must come before the first thread: threads inherit it.
    pub(crate) fn now() -> io::Result<Self> {
        let mut set = SigSet::empty();
        let ignored = ignored();
        for signal in HANDLED {
            // What was ignored when this process started stays so, as `nohup` and shells want it: a blocked signal
            // would be seen here in spite of that.
            if ignored >> (signal as i32 - 1) & 1 == 0 {
                set.add(signal);
            }
        }
        let mut blocked = set;
        blocked.extend(ONLY_BLOCKED);
        blocked.thread_block()?;
        Ok(Self(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Takes them, inside a runtime.
    pub(crate) fn take(self) -> io::Result<Signals> {
        Ok(Signals(when_readable(self.0)?))
    }
}

impl Signals {
    /// The next one.
    pub(crate) async fn next(&self) -> ReceivedSignal {
        loop {
            let Ok(mut ready) = self.0.readable().await else { return std::future::pending().await };
            match self.pending() {
                Some(came) => return came,
                None => ready.clear_ready(),
            }
        }
    }

    /// The first one that ends a program which does not handle it.
    pub(crate) async fn ended(&self) -> Signal {
        loop {
            match self.next().await.signal {
                Signal::SIGCHLD | Signal::SIGCONT | Signal::SIGWINCH => {}
                signal => return signal,
            }
        }
    }

    /// One that has come already.
    pub(crate) fn pending(&self) -> Option<ReceivedSignal> {
        loop {
            let info = self.0.get_ref().read_signal().ok()??;
            if let Ok(signal) = Signal::try_from(info.ssi_signo as i32) {
                return Some(ReceivedSignal { signal, by_terminal: info.ssi_code == SI_KERNEL });
            }
        }
    }
}

/// Why a command ends that nobody could interrupt.
pub(crate) fn no_signals(error: io::Error) -> Failure {
    Failure::unavailable(format!("signals cannot be waited for: {error}. Try again"))
}

/// The set of ignored signals, as the kernel shows it; none if it does not.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// What is heard. All but the last two are for the child.
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

/// What is blocked and never taken: a file that may not grow is an error of the write that wanted it to, and a message on
/// a terminal from the background is no reason to be stopped.
const ONLY_BLOCKED: [Signal; 2] = [Signal::SIGXFSZ, Signal::SIGTTOU];

/// `SI_KERNEL`: sent by the kernel itself.
const SI_KERNEL: i32 = 0x80;
