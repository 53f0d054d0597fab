//! The stores that come with the library.

pub(crate) mod caught;
pub mod file;
pub(crate) mod guarded;
pub mod memory;

pub use file::File;
pub use memory::Memory;
