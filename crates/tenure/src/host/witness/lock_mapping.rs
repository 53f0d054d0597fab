//! Other code in the process can close a descriptor, and forked children have copies of it. A mapping of the file holds
//! the lock just as well: it survives `closefrom(3)` in a program that becomes a daemon, and the kernel does not copy
//! it to forked children (`MADV_DONTFORK`).
#![expect(unsafe_code, reason = "mapping a file and keeping it from children are calls of the kernel")]

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::host::fork::ForkGuard;

/// Keeps an open file description in this process alone. It is never read: reading a truncated file through a mapping
/// raises a signal.
#[derive(Debug)]
pub(super) struct LockMapping {
    at: *mut c_void,
    fork_guard: ForkGuard,
}

// SAFETY: the address is only passed back to the kernel, once, when the mapping is dropped.
unsafe impl Send for LockMapping {}
// SAFETY: nothing can be done through a shared reference.
unsafe impl Sync for LockMapping {}

impl LockMapping {
    pub(super) fn of(file: impl AsFd) -> io::Result<Self> {
        let fork_guard = ForkGuard::present()?;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing, and cannot be read or written.
        let at = unsafe { mmap(std::ptr::null_mut(), BYTES, ProtFlags::empty(), MapFlags::SHARED, file, 0)? };
        let lock_mapping = Self { at, fork_guard };
        // SAFETY: the range is the mapping just made. Children never use it.
        unsafe { madvise(at, BYTES, Advice::LinuxDontFork)? };
        Ok(lock_mapping)
    }

    /// True if this process has the mapping, and not only a copy of its address.
    pub(super) fn is_here(&self) -> bool {
        self.fork_guard.is_present()
    }
}

impl Drop for LockMapping {
    fn drop(&mut self) {
        // In a forked copy of the process, another mapping may be at this address.
        if self.is_here() {
            // SAFETY: the range is the mapping that was made, and nothing refers to its content.
            let _ = unsafe { munmap(self.at, BYTES) };
        }
    }
}

/// One page. The kernel rounds up to larger pages.
const BYTES: usize = 4096;
