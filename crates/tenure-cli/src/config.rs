use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::exit::Failure;
use crate::home;

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The URL of the store.
    pub(crate) store: Option<String>,
}

impl Config {
    /// The configuration and its file; `None` if there is none.
    pub(crate) fn find() -> Result<Option<(PathBuf, Self)>, Failure> {
        if let Some(named) = home::variable_value(NAMED_BY).map(PathBuf::from) {
            return match Self::read(&named)? {
                Some(config) => Ok(Some((named, config))),
                None => Err(bad_config(
                    &named,
                    format!("{NAMED_BY} names it, but it does not exist: create it, or unset {NAMED_BY}"),
                )),
            };
        }
        let own = home::config().map(|directory| directory.join("tenure/config.toml"));
        for path in own.into_iter().chain([PathBuf::from(SYSTEM)]) {
            if let Some(config) = Self::read(&path)? {
                return Ok(Some((path, config)));
            }
        }
        Ok(None)
    }

    fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let bad_config = |what: String| bad_config(path, what);
        let unreadable = |error| {
            bad_config(format!(
                "it cannot be read: {error}. Make it readable, or name the store by --store or TENURE_STORE"
            ))
        };
        // Without O_NONBLOCK, a fifo would block the command.
        let mut options = File::options();
        let mut file = match options.read(true).custom_flags(nix::libc::O_NONBLOCK).open(path) {
            Ok(file) => file,
            // A home that is not a directory has no configuration either.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(unreadable(error)),
        };
        let status = file.metadata().map_err(unreadable)?;
        if !status.is_file() || status.len() > BYTES_MAX {
            let what = "it is not a short text file, such as store = \"file:///path\"";
            return Err(bad_config(what.to_owned()));
        }
        // A user who may write to it decides where the leases are.
        let me = nix::unistd::geteuid().as_raw();
        if ![0, me].contains(&status.uid()) {
            let owner = status.uid();
            return Err(bad_config(format!(
                "it belongs to user {owner}, and this is user {me}: use a file of your own"
            )));
        }
        if status.mode() & OTHERS_WRITE != 0 {
            let advice = format!("chmod go-w {}", path.display());
            return Err(bad_config(format!(
                "other users may write to it, and could redirect the leases: remove that permission ({advice})"
            )));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(unreadable)?;
        let config = toml::from_str(&text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(1, |before| before.matches('\n').count() + 1);
            let what = error.message().replace('\n', " ");
            bad_config(format!("line {line}: {what}. Its only field is store = \"file:///path\""))
        })?;
        Ok(Some(config))
    }
}

fn bad_config(path: &Path, what: String) -> Failure {
    Failure::misconfigured(format!("the configuration file {} is not used: {what}", path.display()))
}

/// The variable that names the file.
const NAMED_BY: &str = "TENURE_CONFIG";

/// The administrator's choice for all users.
const SYSTEM: &str = "/etc/tenure/config.toml";

/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;

/// More than any configuration needs.
const BYTES_MAX: u64 = 64 * 1024;
