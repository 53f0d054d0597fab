//! Removal of the keys of tests: the entry and its lock file, so that nothing remains.

use rustix::io::Errno;
use tenure_store::{Key, StoreError};

use super::directory::Directory;
use super::lock::KeyLock;
use super::name;
use super::remove::gate;
use crate::host::disk::io_error::IoError;

/// Unlinks both under the lock; `false` if another process has it.
///
/// A process that waits for the lock finds, once it has it, that the name belongs to another file or to none, and opens
/// it again. So this one lock file may be removed while it is held.
pub(super) fn sweep(directory: &Directory, local: bool, key: &Key) -> Result<bool, StoreError> {
    directory.is_in_place()?;
    let Some(_gate) = gate(directory, local)? else { return Ok(false) };
    let Some(_lock) = KeyLock::try_take(directory, key, None)? else { return Ok(false) };
    for name in [name::entry(key), name::lock(key)] {
        match directory.unlink(&name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                return Err(IoError::new("cannot remove", &directory.path_of(&name), errno).unknown());
            }
        }
    }
    Ok(true)
}
