//! Leases for programs without an executor: the same calls, but each blocks until it is done.
//!
//! The keeper has its own thread, so it renews a lease whatever the threads of the program do.
//!
//! ```
//! use std::time::Duration;
//! use tenure::blocking::Coordinator;
//! use tenure::store::Memory;
//!
//! fn main() -> Result<(), tenure::Error> {
//!     let coordinator = Coordinator::connect(Memory::new())?;
//!     let lease = coordinator.lease("billing/nightly")?.ttl(Duration::from_secs(15)).acquire()?;
//!     for invoice in ["2026-1", "2026-2"] {
//!         lease.check()?; // at the top of every step: an error means that the lease is lost, and the program stops
//!         println!("{invoice} is sent, with token {}", lease.token());
//!     }
//!     lease.release()
//! }
//! ```
//!
//! # Stop in time
//!
//! No call can end a thread, so there is no `run` here. A loop calls [`Lease::check`]. A thread that waits for the loss calls
//! [`Lease::lost`], while others do the work:
//!
//! ```
//! use std::time::Duration;
//! use tenure::Lost;
//! use tenure::blocking::Coordinator;
//! use tenure::store::Memory;
//!
//! # fn main() -> Result<(), tenure::Error> {
//! let coordinator = Coordinator::connect(Memory::new())?;
//! let lease = coordinator.lease("billing/nightly")?.ttl(Duration::from_secs(1)).acquire()?;
//! std::thread::scope(|scope| {
//!     let loss = scope.spawn(|| lease.lost()); // this thread would kill a child process now, or shut down a socket
//!     coordinator.lease("billing/nightly")?.revoke("moving to a larger machine").acquire()?;
//!     assert!(matches!(loss.join().unwrap(), Lost::Revoked { .. }));
//!     Ok(())
//! })
//! # }
//! ```
//!
//! Work elsewhere, such as a child process, keeps a [`WorkGuard`](crate::WorkGuard) as long as it runs.
//!
//! # In asynchronous programs
//!
//! A blocking call **panics** inside an asynchronous task of tokio, as `Runtime::block_on` does: the task that it waits
//! for may need the blocked thread. Use [`tenure::Coordinator`](crate::Coordinator) there, or `spawn_blocking`. Other
//! executors are not detected; the call then blocks the executor's thread. Dropping a lease never blocks.
//!
//! Streams exist only in the asynchronous API: [`watch`](crate::Coordinator::watch), [`states`](crate::Lease::states)
//! and [`renewals`](crate::Lease::renewals).

/// Wraps methods of the asynchronous type: options return `Self`, immediate answers are returned, waits block.
macro_rules! same {
    (choices of $of:ident: $($name:ident($($argument:ident: $type:ty),*);)*) => { $(
        #[doc = same!(doc $of $name)]
        pub fn $name(self, $($argument: $type),*) -> Self {
            Self(self.0.$name($($argument),*))
        }
    )* };
    (answers of $of:ident: $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => { $(
        #[doc = same!(doc $of $name)]
        pub fn $name(&self, $($argument: $type),*) -> $answer {
            self.0.$name($($argument),*)
        }
    )* };
    (waits of $of:ident: $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => { $(
        #[doc = same!(doc $of $name)]
        #[track_caller]
        pub fn $name(&self, $($argument: $type),*) -> $answer {
            crate::blocking::block_on(self.0.$name($($argument),*))
        }
    )* };
    (doc $of:ident $name:ident) => {
        concat!("See [`", stringify!($of), "::", stringify!($name), "`](crate::", stringify!($of), "::", stringify!($name), ").")
    };
}

mod builder;
mod campaign;
mod coordinator;
mod election;
mod fenced;
mod keys;
mod lease;
mod lease_set;
mod request;
mod set_request;
mod slot;
mod slot_group;
mod slots;
mod term;

pub use builder::CoordinatorBuilder;
pub use campaign::Campaign;
pub use coordinator::Coordinator;
pub use election::Election;
pub use fenced::Fenced;
pub use keys::Keys;
pub use lease::Lease;
pub use lease_set::LeaseSet;
pub use request::Request;
pub use set_request::SetRequest;
pub use slot::Slot;
pub use slot_group::SlotGroup;
pub use slots::Slots;
pub use term::Term;

/// Blocks this thread until the future is ready. The keeper does everything that needs a clock or a socket, so this
/// runtime has neither, and needs no file descriptor.
#[track_caller]
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime without drivers needs nothing from the machine").block_on(future)
}
