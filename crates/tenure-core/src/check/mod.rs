//! Checks of a store before Tenure grants a lease on it: the guarantees that it declares, and its behaviour.
//!
//! Tenure grants nothing on a store that lacks a guarantee which leases need; the error names the store and the
//! guarantee. Tenure also *tests* declared guarantees, because some servers accept a condition and ignore it. The
//! reasons are in `docs/rfcs/0003-fail-closed-contract.md`.

mod declared;
mod lie;
mod live;

use std::time::Duration;

use tenure_store::{BoxFuture, Reach, Store};

pub use declared::check_declared;
pub use live::check_live;

use crate::Error;

/// Waits for a duration on the clock of the caller.
pub type Pause<'a> = &'a (dyn Fn(Duration) -> BoxFuture<'static, ()> + Sync);

/// Runs every check on a store before its first use: the declared guarantees, and for a networked store its behaviour.
///
/// Within one machine, the store is this library's own code, or a file system whose semantics do not change with the
/// address. For such a store this checks only the declaration, and sends nothing.
///
/// `nonce` is a fresh random number, and `pause` paces the retries. A single call of the store has no timeout here: the
/// caller bounds the total time.
pub async fn connect_check(store: &dyn Store, pause: Pause<'_>, nonce: u128) -> Result<(), Error> {
    check_declared(store)?;
    if is_checked_live(store) {
        check_live(store, pause, nonce).await?;
    }
    Ok(())
}

/// True if the behaviour of this store is tested before its first use.
pub fn is_checked_live(store: &dyn Store) -> bool {
    store.guarantees().reach >= Reach::Network
}

/// Version of the tests in [`check_live`]. It grows with every new test, which voids the verdicts of earlier versions.
pub const CHECK: u32 = 1;
