use redis::Value;

/// A command of a fenced write failed after others had been applied: a script cannot undo them.
///
/// It is the source of [`FenceError::Unknown`](tenure_fence::FenceError::Unknown). Find it with `downcast_ref`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "command {} of {commands} ({name}) failed: {error}. The {} before it were applied, and the {} behind it did not run",
    self.failed(), self.replies.len(), self.commands - self.failed()
)]
#[non_exhaustive]
pub struct PartlyWritten {
    /// Number of commands.
    pub commands: usize,
    /// The name of the command that failed.
    pub name: String,
    /// The error of the server.
    pub error: String,
    /// The replies of the commands before it, which were applied.
    pub replies: Vec<Value>,
}

impl PartlyWritten {
    /// Place of the command that failed, counted from one.
    pub fn failed(&self) -> usize {
        self.replies.len() + 1
    }
}
