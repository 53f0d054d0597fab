//! A fence for the keys of a program: one script checks the token and runs the commands, so both are one atomic step.

mod answer;
mod commands;
mod fenced_write;
mod known_command;
mod partly_written;
mod redis_fence;

pub(crate) use answer::FenceAnswer;
pub(crate) use fenced_write::FencedWrite;
pub use partly_written::PartlyWritten;
pub use redis_fence::RedisFence;
