//! The server under test.

use tenure_store::Store;
use tenure_testkit::FaultyProxy;

/// A server, and the way to open a store on it.
pub(crate) trait Ground: Sync {
    /// Starts a proxy in front of the server.
    fn proxy(&self) -> FaultyProxy;

    /// A store that reaches the server through this proxy, with connections of its own.
    fn store_through(&self, proxy: &FaultyProxy) -> impl Store;

    /// True if several calls share a connection: a fault of one of them is then a fault of all.
    fn shares_connections(&self) -> bool {
        false
    }

    /// Size of the group of slots that the machines contend for, beside the leases. Zero for none.
    fn slots(&self) -> u16 {
        0
    }
}
