//! The user's own directories.

use std::ffi::OsString;
use std::path::PathBuf;

/// The home directory: `HOME`, or where that is unset, as under cron and systemd, what the password database says, so
/// that both agree.
pub(crate) fn home() -> Option<PathBuf> {
    directory_in("HOME").or_else(|| {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten()?;
        Some(user.dir).filter(|home| home.is_absolute())
    })
}

/// Where the user's state is kept.
pub(crate) fn state() -> Option<PathBuf> {
    directory_in("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state")))
}

/// A home directory that the user's state would be in, and that is not there: it belongs to a user who shall have none.
pub(crate) fn missing() -> Option<PathBuf> {
    let state = state()?;
    home().filter(|home| state.starts_with(home) && !home.is_dir())
}

/// Where what was seen is kept, outside of every store; `None` for a user who has no home.
pub(crate) fn logbook() -> Option<PathBuf> {
    in_state_dir("tenure-logbook")
}

/// Where it is kept which stores were found sound; `None` for a user who has no home.
pub(crate) fn verdicts() -> Option<PathBuf> {
    in_state_dir("tenure-verdicts")
}

fn in_state_dir(name: &str) -> Option<PathBuf> {
    if missing().is_some() {
        return None;
    }
    Some(state()?.join(name))
}

/// Where the user's configuration is kept.
pub(crate) fn config() -> Option<PathBuf> {
    directory_in("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// The directory that a variable names. A relative one would be another directory for every caller, and counts as unset.
fn directory_in(variable: &str) -> Option<PathBuf> {
    variable_value(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// What a variable says. An empty one is unset.
pub(crate) fn variable_value(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}
