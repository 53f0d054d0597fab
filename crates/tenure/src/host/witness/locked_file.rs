#![cfg_attr(not(feature = "simulation"), allow(unreachable_pub, reason = "the simulation implements it"))]

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tenure_core::record::{Nonce, Witness};

use super::WitnessPart;

/// A witness that this process has locked. When it is dropped, the file stays: unlocked, it proves to contenders that the
/// holder is dead.
pub trait LockedFile: fmt::Debug + Send + Sync {
    /// The witness as the record names it.
    fn named(&self) -> &Arc<Witness>;

    /// Lists a nonce, before the request that carries it is sent. A failure must not stop the request: a contender that
    /// does not find the nonce waits for the ttl.
    ///
    /// The nonce must be fresh. Nonces listed in advance would be in every copy of a running machine, and a copy whose
    /// holder is dead would take them for proof that the other holder is.
    fn list(&self, nonce: Nonce) -> io::Result<()>;

    /// True if its file system is in memory alone: [`list`](Self::list) then waits for no disk.
    fn is_in_memory(&self) -> bool;

    /// Lists a nonce that no record carries, to test whether it can be read. The next one replaces it.
    fn list_for_trial(&self, nonce: Nonce) -> io::Result<()>;

    /// A separate lock for another process that acts under the term, in a descriptor that can be inherited.
    fn share(&self, part: WitnessPart) -> io::Result<OwnedFd>;

    /// Removes the file if it is the named one: no record names it any more.
    fn remove(&self) -> io::Result<()>;

    /// Removes the file by its name alone: its inode may differ from the named one.
    fn remove_by_name(&self) -> io::Result<()>;
}
