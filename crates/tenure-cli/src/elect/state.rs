use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::exit::Failure;

/// What a process knows of its earlier campaigns. It is in an environment variable, with the process id: a variable that
/// another process set, or left to this one, does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ElectState {
    /// Short terms and failures in a row; `None` in the first campaign.
    failures: Option<u32>,
    /// Signals that this process blocked before it executed itself: one bit for each, from 1 on.
    blocked: u64,
}

impl ElectState {
    /// The variable. CMD does not get it.
    pub(crate) const VARIABLE: &str = "TENURE_ELECT_STATE";

    /// The state that this process left to itself.
    pub(super) fn inherited() -> Self {
        let text = std::env::var(Self::VARIABLE).unwrap_or_default();
        let state = Self::parse(&text, std::process::id());
        if state.is_later() {
            // The kernel has named it `exe`. `pkill tenure` must find it.
            let words = std::env::args_os().next().unwrap_or_default();
            let name = Path::new(&words).file_name().unwrap_or_default().as_bytes();
            if let Ok(name) = CString::new(name) {
                let _ = rustix::thread::set_name(&name);
            }
        }
        state
    }

    fn parse(text: &str, process: u32) -> Self {
        let parts: Vec<_> = text.split(' ').collect();
        let &[of, failures, blocked] = parts.as_slice() else { return Self::default() };
        match (failures.parse(), u64::from_str_radix(blocked, 16)) {
            (Ok(failures), Ok(blocked)) if of.parse() == Ok(process) => {
                Self { failures: Some(failures), blocked }
            }
            _ => Self::default(),
        }
    }

    /// True in all campaigns but the first.
    pub(super) fn is_later(&self) -> bool {
        self.failures.is_some()
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures.unwrap_or(0)
    }

    /// The signals that this process blocked before it executed itself.
    pub(super) fn blocked(&self) -> Vec<Signal> {
        Signal::iterator().filter(|signal| self.blocked & bit(*signal) != 0).collect()
    }

    /// Executes this program again with the same arguments. Returns only if that fails.
    ///
    /// The blocked signals stay blocked, so that the next campaign receives those that arrive before it reads them.
    pub(super) fn execute_again(failures: u32, blocked: &[Signal]) -> Failure {
        let blocked = blocked.iter().fold(0, |bits, signal| bits | bit(*signal));
        let mut words = std::env::args_os();
        let name = words.next().unwrap_or_else(|| OsString::from("tenure"));
        // The same file, even if another version has replaced it since.
        let mut again = Command::new("/proc/self/exe");
        again
            .arg0(name)
            .args(words)
            .env(Self::VARIABLE, format!("{} {failures} {blocked:x}", std::process::id()));
        let error = again.exec();
        Failure::unavailable(format!(
            "tenure could not execute itself for the next campaign: {error}. Start it again"
        ))
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as i32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_state_of_this_process_counts() {
        assert_eq!(ElectState::parse("7 3 4001", 7), ElectState { failures: Some(3), blocked: 0x4001 });
        assert_eq!(ElectState::parse("7 3 4001", 7).blocked(), [Signal::SIGHUP, Signal::SIGTERM]);
        for text in ["", "7", "7 3", "8 3 1", "7 x 1", "7 -1 1", "7 3 x", " 7 3 1", "7  3 1", "7 3 1 1"] {
            assert_eq!(ElectState::parse(text, 7), ElectState::default(), "{text:?}");
        }
    }
}
