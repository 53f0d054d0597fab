//! The stores that come with the library.

pub mod memory;

pub use memory::Memory;
