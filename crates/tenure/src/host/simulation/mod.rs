//! The seam to a simulated host.
//!
//! The driver (keeper, coordinator, leases, observers) needs threads, random numbers and local files. With the feature
//! `simulation`, a program can provide them for a thread: the crate `tenure-sim` runs the driver under virtual time that
//! way. Without the feature there is no simulated host, and the compiler removes every call to one.
#![cfg_attr(not(feature = "simulation"), allow(unreachable_pub, reason = "the simulation exports it"))]

mod duty;
mod simulated_host;

#[cfg(feature = "simulation")]
use std::cell::RefCell;
#[cfg(feature = "simulation")]
use std::rc::Rc;

pub use duty::Duty;
pub use simulated_host::SimulatedHost;

#[cfg(feature = "simulation")]
thread_local! {
    static HOST: RefCell<Option<Rc<dyn SimulatedHost>>> = const { RefCell::new(None) };
}

/// Provides this host for all driver code of this thread; `None` removes it.
#[cfg(feature = "simulation")]
pub fn install(host: Option<Rc<dyn SimulatedHost>>) {
    HOST.with(|installed| *installed.borrow_mut() = host);
}

/// Asks the simulated host of this thread; `None` if there is none.
#[cfg(feature = "simulation")]
#[inline]
pub(crate) fn simulated<T>(ask: impl FnOnce(&dyn SimulatedHost) -> T) -> Option<T> {
    let host = HOST.with(|host| host.borrow().clone())?;
    Some(ask(&*host))
}

/// Asks the simulated host of this thread: there is none.
#[cfg(not(feature = "simulation"))]
#[inline]
pub(crate) fn simulated<T>(_: impl FnOnce(&dyn SimulatedHost) -> T) -> Option<T> {
    None
}

/// True if the driver does this duty. A mutant of the simulation neglects at most one.
#[inline]
pub(crate) fn does(duty: Duty) -> bool {
    simulated(|host| host.neglects(duty)) != Some(true)
}

/// A place where the kernel could preempt the thread. Other threads and machines may run here.
#[inline]
pub(crate) fn preemption_point() {
    simulated(|host| host.preempt());
}
