use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FileType, fallocate};
use rustix::io::Errno;
use tenure::Handle;
use tenure::clock::BootClock;

use crate::exit::Failure;
use crate::file_place::{FilePlace, PlaceError};

/// A file with a handle. It belongs to the user: no other user can read or replace it.
#[derive(Debug)]
pub(super) struct HandleFile {
    path: PathBuf,
}

/// New content for the file, which replaces the old one atomically.
#[derive(Debug)]
pub(super) struct Replacement<'a> {
    target: &'a HandleFile,
    place: FilePlace,
    temporary: OsString,
    file: File,
}

impl HandleFile {
    /// The file with this path. A link is not followed.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()) }
    }

    /// The handle in the file, as text.
    pub(super) fn read(&self) -> Result<String, Failure> {
        self.read_in(&self.place(|errno| self.unreadable(errno))?)
    }

    fn read_in(&self, place: &FilePlace) -> Result<String, Failure> {
        let (text, found) = self.read_with_status(place)?;
        let begins = text.trim_start();
        // If the path names a wrong file, the error does not advise the user to change its permissions.
        if !begins.starts_with(Handle::PREFIX) && !begins.starts_with('{') {
            return Err(self.no_handle());
        }
        self.check_private(&found)?;
        Ok(text)
    }

    /// Its place, if that place is safe.
    fn place(&self, otherwise: impl FnOnce(Errno) -> Failure) -> Result<FilePlace, Failure> {
        FilePlace::find(&self.path).map_err(|trouble| match trouble {
            PlaceError::Kernel(Errno::ISDIR) => self.no_file(),
            PlaceError::Kernel(errno) => otherwise(errno),
            PlaceError::Unsafe(why) => Failure::misconfigured(format!(
                "{} is not a safe place for a handle, because other users could put the handle of a different lease \
                 there: {why}. Name a file in your own directory",
                self.path.display()
            )),
        })
    }

    fn read_with_status(&self, place: &FilePlace) -> Result<(String, Metadata), Failure> {
        let file = place.open().map_err(|errno| self.unreadable(errno))?;
        let file = File::from(file);
        let unreadable =
            |error: io::Error| self.unreadable(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let found = file.metadata().map_err(unreadable)?;
        if !found.is_file() {
            return Err(self.no_file());
        }
        let mut bytes = Vec::new();
        file.take(TEXT_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), found))
    }

    fn unreadable(&self, errno: Errno) -> Failure {
        let path = self.path.display();
        match errno {
            Errno::NOENT => self.no_handle(),
            Errno::LOOP => self.is_link(),
            // A socket.
            Errno::NXIO => self.no_file(),
            errno => {
                let error = io::Error::from(errno);
                Failure::unavailable(format!(
                    "the handle in {path} cannot be read: {error}. Name a file that you may read"
                ))
            }
        }
    }

    fn no_file(&self) -> Failure {
        let path = self.path.display();
        Failure::usage(format!(
            "{path} is not a file: name the one that acquire has written, or give the handle on standard input"
        ))
    }

    fn is_link(&self) -> Failure {
        let path = self.path.display();
        Failure::misconfigured(format!(
            "{path} is a symbolic link, and may lead to the handle of a different lease: name the file itself, or give \
             the handle on standard input"
        ))
    }

    /// Verifies that only the user can access it: a reader could use the handle, and a writer could substitute another
    /// one.
    fn check_private(&self, found: &Metadata) -> Result<(), Failure> {
        let path = self.path.display();
        let me = rustix::process::geteuid().as_raw();
        if found.uid() != me {
            let owner = found.uid();
            return Err(Failure::misconfigured(format!(
                "the handle in {path} belongs to user {owner}, and this is user {me}: use one of your own"
            )));
        }
        if found.mode() & 0o077 != 0 {
            return Err(Failure::misconfigured(format!(
                "the handle in {path} can be read or changed by other users (mode {:o}), who could release the lease: \
                 chmod 600 it, if you trust every user with access",
                found.mode() & 0o7777
            )));
        }
        if found.nlink() != 1 {
            return Err(Failure::misconfigured(format!(
                "the handle in {path} has {} names, and another user may have made this one: remove the others",
                found.nlink()
            )));
        }
        Ok(())
    }

    fn no_handle(&self) -> Failure {
        let path = self.path.display();
        Failure::usage(format!(
            "there is no handle in {path}: name the file that acquire has written with --file"
        ))
    }

    /// Prepares the file for the handle of a new term.
    ///
    /// A file is for one run of one script. If another script still reads its handle from here, it would renew and
    /// release the new term as if it were its own, and both would act. So a handle that may be in use is not replaced.
    pub(super) fn make_room(&self) -> Result<Replacement<'_>, Failure> {
        let place = self.place(|errno| self.unwritable(&errno.into()))?;
        match place.status().map(|status| FileType::from_raw_mode(status.st_mode)) {
            Err(Errno::NOENT) => {}
            found => self.check_old(&place, found.map_err(|errno| self.unwritable(&errno.into()))?)?,
        }
        self.replacement_in(place)
    }

    fn check_old(&self, place: &FilePlace, kind: FileType) -> Result<(), Failure> {
        let path = self.path.display();
        let taken = || Failure::usage(format!("{path} exists and is not a handle: name another file"));
        match kind {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(self.is_link()),
            _ => return Err(taken()),
        }
        let (text, found) = self.read_with_status(place)?;
        let old: Handle = match text.trim() {
            "" => return Ok(()),
            text => text.parse().map_err(|_| taken())?,
        };
        self.check_private(&found)?;
        // A script with a handle from another boot no longer runs.
        if !old.is_of(&BootClock::new()) {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "{path} has the handle of {}, and a script that still uses it would renew and release yours: name another \
             file for each run, or remove it if that script has ended",
            super::lease_words(&old)
        )))
    }

    /// Prepares new content before an operation whose result must be written.
    pub(super) fn replacement(&self) -> Result<Replacement<'_>, Failure> {
        self.replacement_in(self.place(|errno| self.unwritable(&errno.into()))?)
    }

    fn replacement_in(&self, place: FilePlace) -> Result<Replacement<'_>, Failure> {
        // The name is not predictable. In a directory that others may write to, a file of that name would be in the
        // way, and processes of other containers may have the same pid.
        let mut random = [0; 8];
        let drawn = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        drawn.map_err(|errno| self.unwritable(&errno.into()))?;
        let mut temporary = OsString::from(".");
        temporary.push(place.name());
        temporary.push(format!(".{:016x}.tmp", u64::from_ne_bytes(random)));
        let made = place.create_beside(&temporary);
        let file = File::from(made.map_err(|errno| self.unwritable(&errno.into()))?);
        let replacement = Replacement { target: self, place, temporary, file };
        match fallocate(&replacement.file, FallocateFlags::empty(), 0, TEXT_MAX) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(replacement),
            Err(error) => Err(self.unwritable(&error.into())),
        }
    }

    /// Removes the file if it has this handle, which is no longer of use, and not the handle of a later grant.
    pub(super) fn remove(&self, handle: &Handle) {
        let Ok(place) = self.place(|errno| self.unreadable(errno)) else { return };
        if self.read_in(&place).is_ok_and(|text| text.trim() == handle.reveal()) {
            let _ = place.remove(place.name());
        }
    }

    fn unwritable(&self, error: &io::Error) -> Failure {
        let path = self.path.display();
        Failure::unavailable(format!(
            "a handle cannot be written to {path}: {error}. Name a file in a writable directory"
        ))
    }
}

impl Replacement<'_> {
    /// Writes the handle, and puts the file in its place.
    ///
    /// It is not synced: after a power cut the machine has booted anew, and earlier handles are not valid any more.
    pub(super) fn write(mut self, handle: &Handle) -> Result<(), Failure> {
        let text = format!("{}\n", handle.reveal());
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.set_len(text.len() as u64))
            .and_then(|()| Ok(self.place.replace_by(&self.temporary)?))
            .map_err(|error| self.target.unwritable(&error))
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        // After the rename there is no file of that name.
        let _ = self.place.remove(&self.temporary);
    }
}

/// More than the longest handle: the URL of its store may have three bytes for each byte of the longest path, and the
/// text is a third longer than its content.
const TEXT_MAX: u64 = 24 * 1024;
