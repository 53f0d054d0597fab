//! A bucket under network faults.

use tenure_store::Store;
use tenure_testkit::FaultyProxy;

use crate::bucket::{BucketOf, Cloud};
use crate::gauntlet::Ground;

impl<C: Cloud> Ground for BucketOf<C> {
    fn proxy(&self) -> FaultyProxy {
        FaultyProxy::start(self.server().address())
    }

    fn store_through(&self, proxy: &FaultyProxy) -> impl Store {
        Self::store_through(self, proxy)
    }
}
