//! The machine's clock that counts while the machine is suspended.

use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time since the start of the machine, `CLOCK_BOOTTIME`.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    // The kernel counts from boot: neither part is ever negative.
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A name that the processes share whose readings of [`now`] can be compared: one boot of one kernel, in one time
/// namespace with one offset. `None` if `/proc` does not show it.
pub(crate) fn domain() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = match std::fs::read_link("/proc/self/ns/time") {
        Ok(link) => format!("{}+{}", link.to_str()?, offset(&link)?),
        // A kernel with namespaces, but without time namespaces.
        Err(_) if Path::new("/proc/self/ns/mnt").is_symlink() => "none".to_owned(),
        Err(_) => return None,
    };
    Some(format!("{},{namespace}", boot.trim()))
}

/// Offset of this namespace's boot-time clock. The kernel shows the offset of the namespace for children: `None` if
/// that is another one.
fn offset(namespace: &Path) -> Option<String> {
    if std::fs::read_link("/proc/self/ns/time_for_children").ok()? != namespace {
        return None;
    }
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").ok()?;
    let mut boottime = offsets.lines().find_map(|line| line.strip_prefix("boottime"))?.split_whitespace();
    Some(format!("{}.{}", boottime.next()?, boottime.next()?))
}
