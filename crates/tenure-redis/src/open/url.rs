//! The URL of a store, in its canonical form.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::settings::{PREFIX, Settings};
use super::{Address, ReplicaConfirmation};

impl Settings {
    /// Writes the URL of the store, without the password. With `naming`, only what names the store: the same for every
    /// caller, whatever credentials they use.
    pub(crate) fn write_url(&self, f: &mut fmt::Formatter<'_>, naming: bool) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let user = match &self.user {
            Some(user) if !naming => format!("{}@", utf8_percent_encode(user, &ESCAPED)),
            _ => String::new(),
        };
        match (&self.addresses[..], &self.master) {
            ([Address::Unix(path)], _) => {
                let path = path.display().to_string();
                write!(f, "{scheme}+unix://{user}{}", utf8_percent_encode(&path, &ESCAPED))?;
            }
            (addresses, master) => {
                let addresses: Vec<_> = addresses.iter().map(Address::to_string).collect();
                let kind = if master.is_some() { "+sentinel" } else { "" };
                write!(f, "{scheme}{kind}://{user}{}", addresses.join(","))?;
                if let Some(master) = master {
                    write!(f, "/{}", utf8_percent_encode(master, &ESCAPED))?;
                }
            }
        }
        let flag = |on: bool, value: &str| on.then(|| value.to_owned());
        let file = |path: &Option<std::path::PathBuf>| {
            path.as_ref().filter(|_| !naming).map(|path| path.display().to_string())
        };
        let options = [
            ("db", (self.database != 0).then(|| self.database.to_string())),
            ("prefix", (self.prefix != PREFIX).then(|| self.prefix.clone())),
            (
                "quarantine",
                (self.quarantine != Self::LONGEST_QUARANTINE)
                    .then(|| format!("{}ms", self.quarantine.as_millis())),
            ),
            ("wait", self.confirmation.map(|confirmation| confirmation.replicas.to_string())),
            (
                "wait-disk",
                flag(self.confirmation.is_some_and(|ReplicaConfirmation { on_disk, .. }| on_disk), "true"),
            ),
            ("ca", file(&self.ca)),
            ("password-file", file(&self.password_file)),
            ("accept", flag(self.accepted.restart, "restart")),
            ("accept", flag(self.accepted.failover, "failover")),
            ("accept", flag(self.accepted.eviction, "eviction")),
            ("accept", flag(self.accepted.unknown_settings, "unknown-settings")),
        ];
        let mut separator = '?';
        for (name, value) in options {
            if let Some(value) = value {
                write!(f, "{separator}{name}={}", utf8_percent_encode(&value, &ESCAPED))?;
                separator = '&';
            }
        }
        Ok(())
    }
}

/// Characters that must be escaped in a URL.
const ESCAPED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');
