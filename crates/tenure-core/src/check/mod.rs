//! What a store declares, and what it is seen to do, before anything is granted on it.
//!
//! A store that lacks a guarantee which leases need grants nothing, and the error names the store and the guarantee.
//! A declared guarantee is also *observed*, because servers exist that accept a condition and ignore it. The reasons
//! are in `docs/rfcs/0003-fail-closed-contract.md`.

mod declared;
mod lie;
mod live;

use std::time::Duration;

use tenure_store::{BoxFuture, Reach, Store};

pub use declared::check_declared;
pub use live::check_live;

use crate::Error;

/// Waits for a span of time, on the clock of the caller.
pub type Pause<'a> = &'a (dyn Fn(Duration) -> BoxFuture<'static, ()> + Sync);

/// Everything that is checked when a store is connected: what it declares, and, where it is on the network, what it
/// does.
///
/// Within one machine the store is this library's own code, or a file system whose semantics do not change with the
/// address; there only the declaration is checked, and nothing is sent.
///
/// `nonce` is a fresh random number, and `pause` paces the repetitions. A single call of the store is waited
/// for as long as it takes: whoever calls this bounds the whole.
pub async fn connect_check(store: &dyn Store, pause: Pause<'_>, nonce: u128) -> Result<(), Error> {
    check_declared(store)?;
    if is_checked_live(store) {
        check_live(store, pause, nonce).await?;
    }
    Ok(())
}

/// Whether what this store does is looked at before it is believed.
pub fn is_checked_live(store: &dyn Store) -> bool {
    store.guarantees().reach >= Reach::Network
}

/// What [`check_live`] looks at, as a number that grows when it looks at more: verdicts of an earlier one are void then.
pub const CHECK: u32 = 1;
