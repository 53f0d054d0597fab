use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tenure::{Holder, Keys};

use crate::exit::Failure;
use crate::file_place::{FilePlace, PlaceError};
use crate::{home, output};

/// The owner of entries: this user on this machine, by a random secret in a private file.
pub(super) struct OwnerSecret {
    secret: [u8; LENGTH],
}

impl OwnerSecret {
    /// The secret of this user. It is created at the first use.
    pub(super) fn find_or_create() -> Result<Self, Failure> {
        let path = path()?;
        if let Some(found) = Self::read(&path)? {
            return Ok(found);
        }
        if let Some(directory) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|error| unwritable(&path, &error))?;
        }
        create(&path)?;
        // Another command may have been faster: the secret in the file counts.
        Self::read(&path)?.ok_or_else(|| unwritable(&path, &Errno::NOENT.into()))
    }

    /// The secret of this user; `None` if there is none yet, or it cannot be used. A read needs it only to say which
    /// entries are this user's, so it warns and continues.
    pub(super) fn find(json: bool) -> Option<Self> {
        Self::read(&home::owner()?).unwrap_or_else(|failure| {
            output::warn(&format!("no entry is shown as your own: {failure}"), json);
            None
        })
    }

    /// The keys for this owner, or for another owner of this user with that name.
    pub(super) fn own(&self, keys: Keys, name: Option<&str>) -> Result<Keys, Failure> {
        let holder = match name {
            Some(name) => Holder::new(name),
            None => Holder::new(&user_and_host()),
        };
        let mut secret = self.secret.to_vec();
        if let Some(name) = name {
            // No name has a zero byte, so no two names give the same secret.
            secret.push(0);
            secret.extend_from_slice(name.as_bytes());
        }
        Ok(keys.owner(holder.map_err(tenure::Error::from)?, secret))
    }

    fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let unreadable = |error: std::io::Error| {
            let path = path.display();
            Failure::unavailable(format!(
                "the secret of the owner in {path} cannot be read: {error}. Make the file readable"
            ))
        };
        let opened = match FilePlace::find(path).map(|place| place.open()) {
            Ok(Ok(opened)) => File::from(opened),
            Ok(Err(Errno::NOENT)) | Err(PlaceError::Kernel(Errno::NOENT)) => return Ok(None),
            Ok(Err(Errno::LOOP)) => return Err(unsafe_place(path, "it is a symbolic link")),
            Ok(Err(errno)) | Err(PlaceError::Kernel(errno)) => return Err(unreadable(errno.into())),
            Err(PlaceError::Unsafe(why)) => return Err(unsafe_place(path, &why)),
        };
        let found = opened.metadata().map_err(unreadable)?;
        if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
            return Err(unsafe_place(path, "it is not a file of this user"));
        }
        if found.mode() & 0o077 != 0 {
            let mode = found.mode() & 0o7777;
            return Err(unsafe_place(path, &format!("other users have access to it (mode {mode:o})")));
        }
        let mut text = Vec::new();
        opened.take(TEXT_MAX).read_to_end(&mut text).map_err(unreadable)?;
        parse(text.trim_ascii_end()).map(|secret| Some(Self { secret })).ok_or_else(|| {
            let path = path.display();
            Failure::misconfigured(format!(
                "{path} is damaged, so this user cannot renew or release earlier entries: remove the file, and replace \
                 the entries with tenure kv cas"
            ))
        })
    }
}

/// Creates the file with a new secret, unless there is one.
fn create(path: &Path) -> Result<(), Failure> {
    let failed = |errno: Errno| unwritable(path, &errno.into());
    let place = FilePlace::find(path).map_err(|trouble| match trouble {
        PlaceError::Kernel(errno) => failed(errno),
        PlaceError::Unsafe(why) => unsafe_place(path, &why),
    })?;
    let mut random = [0; LENGTH + 8];
    let drawn = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    drawn.map_err(failed)?;
    let (secret, name) = random.split_at(LENGTH);
    let mut temporary = OsString::from(".");
    temporary.push(place.name());
    temporary.push(format!(".{}.tmp", hex(name)));
    let mut file = File::from(place.create_beside(&temporary).map_err(failed)?);
    let text = format!("{}\n", hex(secret));
    // Synced: an owner without its secret can never release its entries.
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let put = written.map_err(|error| unwritable(path, &error)).and_then(|()| {
        match place.put_unless_present(&temporary) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    });
    // After a rename there is no file of that name.
    let _ = place.remove(&temporary);
    put
}

fn path() -> Result<PathBuf, Failure> {
    home::owner().ok_or_else(|| {
        Failure::misconfigured(
            "there is no place for the secret of the owner, because this user has no home directory: set XDG_STATE_HOME to \
             a private directory",
        )
    })
}

fn unsafe_place(path: &Path, why: &str) -> Failure {
    let path = path.display();
    Failure::misconfigured(format!(
        "{path} is not a safe place for the secret of the owner: {why}. Make it private, or set XDG_STATE_HOME to a private \
         directory"
    ))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::unavailable(format!(
        "the secret of the owner cannot be written to {path}: {error}. Make the directory writable, or set XDG_STATE_HOME"
    ))
}

/// The default name of the owner, such as `ann@web-1`.
fn user_and_host() -> String {
    let me = nix::unistd::geteuid();
    let user =
        nix::unistd::User::from_uid(me).ok().flatten().map_or_else(|| me.to_string(), |user| user.name);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{user}@{host}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse(text: &[u8]) -> Option<[u8; LENGTH]> {
    let mut secret = [0; LENGTH];
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 2 * LENGTH && text.is_ascii())?;
    for (at, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(secret)
}

/// Length of a secret, in bytes.
const LENGTH: usize = 32;

/// More than the text of a secret.
const TEXT_MAX: u64 = 1024;
