use std::io;
use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that the runtime watches for readability.
#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that change their descriptor; none of ours can"
)]
pub(crate) fn when_readable<T: AsRawFd>(descriptor: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
