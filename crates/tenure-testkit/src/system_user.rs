//! Servers that refuse to run as root.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// The system user that runs a server which refuses root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemUser {
    uid: u32,
    gid: u32,
}

impl SystemUser {
    /// The first of these users that the system has; `None` if this process is not root and needs no other user.
    pub(crate) fn instead_of_root(names: &[&str]) -> io::Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let found = names.iter().find_map(|name| {
            let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
            Some(Self { uid: fields.next()??, gid: fields.next()?? })
        });
        found.map(Some).ok_or_else(|| io::Error::other(format!("the system has none of the users {names:?}")))
    }

    /// A command that runs this program as the user. `setpriv` replaces itself by the program.
    pub(crate) fn command(user: Option<Self>, program: &Path) -> Command {
        let Some(Self { uid, gid }) = user else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
        command.args(["--clear-groups", "--"]).arg(program);
        command
    }

    /// Gives a file or directory to the user.
    pub(crate) fn own(user: Option<Self>, path: &Path) -> io::Result<()> {
        user.map_or(Ok(()), |Self { uid, gid }| std::os::unix::fs::chown(path, Some(uid), Some(gid)))
    }
}
