//! The user's own directories.

use std::ffi::OsString;
use std::path::PathBuf;

/// The home directory: `HOME`, or the entry of the password database if it is unset, as under cron and systemd. So both
/// agree.
pub(crate) fn home() -> Option<PathBuf> {
    directory_in("HOME").or_else(|| {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten()?;
        Some(user.dir).filter(|home| home.is_absolute())
    })
}

/// Directory of the user's state.
pub(crate) fn state() -> Option<PathBuf> {
    directory_in("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state")))
}

/// A home directory that does not exist: it belongs to a user who is not meant to have one.
pub(crate) fn missing() -> Option<PathBuf> {
    let state = state()?;
    home().filter(|home| state.starts_with(home) && !home.is_dir())
}

/// Directory of the logbook, outside every store; `None` for a user without a home.
pub(crate) fn logbook() -> Option<PathBuf> {
    in_state_dir("tenure-logbook")
}

/// Directory of the verdicts; `None` for a user without a home.
pub(crate) fn verdicts() -> Option<PathBuf> {
    in_state_dir("tenure-verdicts")
}

/// File with the secret of the owner of plain keys, outside every store; `None` for a user without a home.
pub(crate) fn owner() -> Option<PathBuf> {
    in_state_dir("tenure-owner")
}

fn in_state_dir(name: &str) -> Option<PathBuf> {
    if missing().is_some() {
        return None;
    }
    Some(state()?.join(name))
}

/// Directory of the user's configuration.
pub(crate) fn config() -> Option<PathBuf> {
    directory_in("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// The directory that a variable names. A relative one depends on the caller, and counts as unset.
fn directory_in(variable: &str) -> Option<PathBuf> {
    variable_value(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The value of a variable. An empty one counts as unset.
pub(crate) fn variable_value(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}
