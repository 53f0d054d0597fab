//! Time, behind one trait, so that simulation and tests can own it.

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

/// The clock that leases are counted on.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Never goes back, and keeps counting while the machine is suspended.
    fn now(&self) -> Instant;

    /// Shown to people, never compared.
    fn wall(&self) -> WallTime;

    /// Completes at `at`, or soon after; also when the machine was suspended meanwhile.
    ///
    /// It is called and polled on the keeper's own runtime.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;

    /// Who reads the same clock; `None` if its readings mean nothing outside of this process.
    fn domain(&self) -> Option<Domain> {
        None
    }
}
