//! Time behind one trait, so that simulation and tests control it.

mod boot;
mod boot_id;
mod domain;
mod manual;
mod timeout;

use std::fmt;

use tenure_store::BoxFuture;

pub use boot::BootClock;
pub(crate) use boot_id::boot_id;
pub use domain::Domain;
pub use manual::ManualClock;
pub use tenure_core::{Instant, WallTime};
pub(crate) use timeout::{call_timeout, timeout};

/// The clock on which leases are counted.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current instant. It never goes back, and counts through suspend.
    fn now(&self) -> Instant;

    /// The wall time. Informational, never compared with another clock.
    fn wall(&self) -> WallTime;

    /// Completes at `at`, or soon after, also after a suspend.
    ///
    /// It is called and polled on the keeper's runtime.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;

    /// Identity of this clock; `None` if its readings have no meaning outside this process.
    fn domain(&self) -> Option<Domain> {
        None
    }
}
