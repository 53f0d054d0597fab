//! A forked copy of a process must not believe in a lease.
//!
//! The child has a copy of every belief, but no keeper that renews it. So there is one word in a page that the kernel
//! wipes in every forked child (`MADV_WIPEONFORK`): a lease stores the word at its grant, and a child reads zero.
//! Unlike `pthread_atfork` this also covers a raw `clone`, and unlike `getpid` it costs one load.
#![expect(
    unsafe_code,
    reason = "mapping memory that the kernel wipes on fork, and pointers to what a forked copy must not touch"
)]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

#[cfg(not(miri))]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Identifies this process, as opposed to a forked copy of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForkGuard {
    word: &'static AtomicU64,
    number: u64,
}

impl ForkGuard {
    /// The current process. Fails if the kernel cannot wipe memory on fork.
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

    /// True in that process, and false in a forked copy.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        self.word.load(Ordering::Relaxed) == self.number
    }
}

/// A value that each process creates for itself: a forked copy never touches that of its parent.
///
/// The copy has the parent's locks in the state of the fork, perhaps held by threads that it does not have, and
/// descriptors of the parent's kernel objects. So it creates a new value, and leaves the old one alone.
pub(crate) struct PerProcess<T: 'static> {
    latest: AtomicPtr<PerProcessValue<T>>,
}

struct PerProcessValue<T> {
    fork_guard: ForkGuard,
    value: T,
}

impl<T: Default + Sync> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { latest: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The value of the current process. Fails if the kernel cannot wipe memory on fork.
    pub(crate) fn get(&self) -> io::Result<&'static T> {
        let fork_guard = ForkGuard::present()?;
        let found = self.latest.load(Ordering::Acquire);
        // SAFETY: null, or a box that was leaked below and is never freed. Only shared references to it are made.
        if let Some(made) = unsafe { found.as_ref() }
            && made.fork_guard.is_present()
        {
            return Ok(&made.value);
        }
        let fresh = Box::into_raw(Box::new(PerProcessValue { fork_guard, value: T::default() }));
        let latest = match self.latest.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(others) => {
                // SAFETY: it was made above, and no other thread has it.
                drop(unsafe { Box::from_raw(fresh) });
                others
            }
        };
        // SAFETY: as above. If this thread has not set it, another thread of this process has.
        Ok(unsafe { &(*latest).value })
    }
}

fn map_word() -> Result<&'static AtomicU64, rustix::io::Errno> {
    const PAGE: usize = 4096;
    // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice aliases nothing.
    let page = unsafe {
        mmap_anonymous(std::ptr::null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
    };
    // Miri has one process, and no `madvise`.
    #[cfg(not(miri))]
    // SAFETY: the range is the mapping just made. Wiping it in children is harmless: it contains only atomics.
    unsafe {
        madvise(page, PAGE, Advice::LinuxWipeOnFork)?
    };
    // SAFETY: the page is mapped readable and writable, zeroed, aligned, and never unmapped.
    Ok(unsafe { AtomicU64::from_ptr(page.cast()) })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "threads that race for the first value")]
    fn threads_that_ask_first_at_the_same_time_get_one_value_of_one_process() {
        static COUNT: PerProcess<AtomicU64> = PerProcess::new();
        let threads = [(); 3].map(|()| {
            thread::spawn(|| {
                let count = COUNT.get().unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                std::ptr::from_ref(count).addr()
            })
        });
        let addresses = threads.map(|thread| thread.join().unwrap());
        let count = COUNT.get().unwrap();
        assert_eq!(addresses, [std::ptr::from_ref(count).addr(); 3]);
        assert_eq!(count.load(Ordering::Relaxed), 3);
        assert!(ForkGuard::present().unwrap().is_present());
    }
}
