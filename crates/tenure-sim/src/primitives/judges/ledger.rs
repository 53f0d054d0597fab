use std::collections::HashMap;

use tenure_core::machine::{Purpose, Write};
use tenure_core::record::Nonce;

/// The applied writes of one key.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    writes: HashMap<Nonce, AppliedWrite>,
}

/// An applied write.
#[derive(Clone, Copy, Debug)]
pub(in crate::primitives) struct AppliedWrite {
    /// The true time at which the store applied it.
    pub(in crate::primitives) at: u64,
    /// Its number among all applied writes of all keys.
    pub(in crate::primitives) order: u64,
}

impl Ledger {
    /// Enters a write. True if it is a grant.
    pub(super) fn enter(&mut self, at: u64, order: u64, write: &Write) -> bool {
        self.writes.insert(write.record.nonce, AppliedWrite { at, order });
        write.purpose == Purpose::Grant
    }

    /// The write with this nonce.
    pub(super) fn find(&self, nonce: Nonce) -> Option<AppliedWrite> {
        self.writes.get(&nonce).copied()
    }
}
