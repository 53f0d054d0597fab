use std::fmt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A clock that counts while the machine is suspended: credentials expire on the clock of another machine, which
/// continues.
pub(crate) trait BootTime: fmt::Debug + Send + Sync {
    /// Time since a fixed moment, such as the start of the machine.
    fn now(&self) -> Duration;
}

/// The machine's clock, `CLOCK_BOOTTIME`.
#[derive(Debug)]
pub(crate) struct MachineBootTime;

impl BootTime for MachineBootTime {
    fn now(&self) -> Duration {
        let time = clock_gettime(ClockId::Boottime);
        // The kernel counts from boot: neither part is ever negative.
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}
