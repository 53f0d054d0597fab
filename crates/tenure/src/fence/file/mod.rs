//! Fenced files on the local disk: for writers on one machine.
//!
//! The mark of a file, with its greatest admitted token, is in a small file beside it. A writer locks that file, checks
//! its token, makes the new mark durable, writes, and unlocks. The lock is the kernel's: it is released when its owner
//! dies, and kept while its owner is stopped. So no writer is between the check and the write of another one, and a crash
//! between any two steps leaves a mark that refuses every smaller token.
//!
//! A file system whose locks belong to another machine or to a user-space program is refused.

mod append;
mod blocking;
mod fenced_file;
mod fenced_log;
mod file_mark;
mod mark;
mod mark_file;
mod place;
mod sidecar;
mod step;
mod tail;
#[cfg(test)]
mod tests;
mod unfinished;

pub use fenced_file::FencedFile;
pub use fenced_log::FencedLog;
pub use file_mark::FileMark;
