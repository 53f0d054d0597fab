#![expect(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The allocator of the system, which also counts the bytes that are in use.
pub(crate) struct LiveBytes(AtomicUsize);

impl LiveBytes {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

// SAFETY: every call is passed on to the allocator of the system.
unsafe impl GlobalAlloc for LiveBytes {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller promises a valid layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the block comes from `alloc` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.0.fetch_add(size, Ordering::Relaxed);
        self.0.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the block comes from `alloc` with this layout, and the caller promises a valid size.
        unsafe { System.realloc(block, layout, size) }
    }
}
