use std::time::Duration;

/// Lets this thread wait for another process, for a moment.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread that waits for the disk also waits for another process, for a moment"
)]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}
