//! A forked copy of a process must believe nothing.
//!
//! The child has a copy of every belief and nobody who renews it. So there is one word in a page that the kernel wipes
//! in every forked child (`MADV_WIPEONFORK`): a lease remembers what the word was when it was granted, and a child
//! reads zero. Unlike `pthread_atfork` this also holds for a raw `clone`, and unlike `getpid` it costs one load.
#![expect(
    unsafe_code,
    reason = "mapping memory and asking the kernel to wipe it on fork are calls of the kernel"
)]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// This process, as opposed to a forked copy of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incarnation {
    word: &'static AtomicU64,
    number: u64,
}

impl Incarnation {
    /// The present process. Fails where the kernel cannot wipe memory on fork.
    pub(crate) fn present() -> io::Result<Self> {
        static WORD: OnceLock<Result<&'static AtomicU64, rustix::io::Errno>> = OnceLock::new();
        let word = (*WORD.get_or_init(map_word))?;
        let found = word.load(Ordering::Acquire);
        if found != 0 {
            return Ok(Self { word, number: found });
        }
        // The first use, or the first in a forked child. The counter is inherited, so the child's number is new.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let fresh = NEXT.fetch_add(1, Ordering::Relaxed);
        let number = match word.compare_exchange(0, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(others) => others,
        };
        Ok(Self { word, number })
    }

    /// Whether this is still that process, and not a forked copy.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        self.word.load(Ordering::Relaxed) == self.number
    }
}

fn map_word() -> Result<&'static AtomicU64, rustix::io::Errno> {
    const PAGE: usize = 4096;
    // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice aliases nothing.
    let page = unsafe {
        mmap_anonymous(std::ptr::null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
    };
    // SAFETY: the range is the mapping just made, and wiping it in children harms nobody: only atomics live there.
    unsafe { madvise(page, PAGE, Advice::LinuxWipeOnFork)? };
    // SAFETY: the page is mapped readable and writable, zeroed, aligned, and never unmapped.
    Ok(unsafe { AtomicU64::from_ptr(page.cast()) })
}
