//! The stores that come with the library.

pub(crate) mod caught;
pub(crate) mod file;
pub(crate) mod guarded;
pub mod memory;

pub use file::{File, FileBuilder};
pub use memory::{Memory, MemoryBuilder};
