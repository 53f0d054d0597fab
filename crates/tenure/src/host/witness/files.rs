#![cfg_attr(not(feature = "simulation"), allow(unreachable_pub, reason = "the simulation implements it"))]

use std::fmt;
use std::io;
use std::sync::Arc;

use tenure_core::machine::Sighting;
use tenure_core::record::{Nonce, Witness};
use tenure_store::BoxStream;

use super::locked_file::LockedFile;
use super::survivors::Survivors;

/// A local directory of witnesses. The kernel has one, and the simulation has its own.
pub trait WitnessFiles: fmt::Debug + Send + Sync {
    /// True if a lock is known to hold there as long as its holder lives.
    fn keeps_locks(&self) -> bool;

    /// Creates a witness. It is locked before it has a name, and never gets another one. The caller checks that the lock holds.
    fn make(self: Arc<Self>, random: u128) -> io::Result<Box<dyn LockedFile>>;

    /// Sighting of the witness that a record names.
    fn try_look(&self, named: &Witness, nonce: Nonce) -> io::Result<Sighting>;

    /// Like [`try_look`](Self::try_look), but empty after an error. An empty sighting proves nothing.
    fn look(&self, named: &Witness, nonce: Nonce) -> Sighting {
        self.try_look(named, nonce).unwrap_or_default()
    }

    /// Processes that are alive under the record that names this witness; `None` if it is another file.
    fn survivors(&self, named: &Witness, nonce: Nonce) -> Option<Survivors>;

    /// Changes of the witness that a record names: a process has written to it, or died.
    fn watch(&self, named: &Witness) -> Option<BoxStream<'static, ()>>;

    /// Removes an unlocked witness. A contender that still wanted to inspect it waits for the ttl instead.
    fn remove_dead(&self, named: &Witness) -> io::Result<()>;
}
