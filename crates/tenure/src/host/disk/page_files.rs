#![cfg_attr(not(feature = "simulation"), allow(unreachable_pub, reason = "the simulation implements it"))]

use std::fmt;

/// The files of one directory of pages: on the disk, or of a simulated host. Every error is a sentence.
pub trait PageFiles: fmt::Debug {
    /// The content of a page; `None` if there is none, or none that can be trusted.
    fn read(&self, name: &str) -> Option<Vec<u8>>;

    /// Replaces a page atomically.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), String>;

    /// Removes a file, if it is there.
    fn remove(&self, name: &str) -> Result<(), String>;

    /// The names of all files, the oldest first.
    fn names(&self) -> Result<Vec<String>, String>;

    /// Acts under the lock of all writers. `false` if the lock stayed taken for too long.
    fn locked(&self, act: &mut dyn FnMut() -> Result<(), String>) -> Result<bool, String>;
}
