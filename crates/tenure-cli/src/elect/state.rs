use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::exit::Failure;

/// What a process knows of its earlier campaigns. It is in an environment variable, with the process id: a variable that
/// another process set, or left to this one, does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ElectState {
    /// Short terms and failures in a row; `None` in the first campaign.
    failures: Option<u32>,
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
        let failures = text.split_once(' ').filter(|(of, _)| of.parse() == Ok(process));
        Self { failures: failures.and_then(|(_, failures)| failures.parse().ok()) }
    }

    /// True in all campaigns but the first.
    pub(super) fn is_later(&self) -> bool {
        self.failures.is_some()
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures.unwrap_or(0)
    }

    /// Executes this program again with the same arguments. Returns only if that fails.
    pub(super) fn execute_again(&self, failures: u32) -> Failure {
        let mut words = std::env::args_os();
        let name = words.next().unwrap_or_else(|| OsString::from("tenure"));
        // The same file, even if another version has replaced it since.
        let mut again = Command::new("/proc/self/exe");
        again.arg0(name).args(words).env(Self::VARIABLE, format!("{} {failures}", std::process::id()));
        let error = again.exec();
        Failure::unavailable(format!(
            "tenure could not execute itself for the next campaign: {error}. Start it again"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_state_of_this_process_counts() {
        assert_eq!(ElectState::parse("7 3", 7), ElectState { failures: Some(3) });
        for text in ["", "7", "8 3", "7 x", "7 -1", " 7 3", "7  3"] {
            assert_eq!(ElectState::parse(text, 7), ElectState::default(), "{text:?}");
        }
    }
}
