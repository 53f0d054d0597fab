use std::time::Duration;

use rslock::{Lock, LockManager};
use tenure_store::BoxFuture;
use tenure_testkit::ComparedLock;

/// Redlock by the crate rslock, on one server.
pub(crate) struct RedlockLock {
    manager: LockManager,
    name: String,
    ttl: Duration,
    lock: Option<Lock>,
}

impl RedlockLock {
    pub(crate) fn new(url: &str, name: String, ttl: Duration) -> Self {
        Self { manager: LockManager::new(vec![url]), name, ttl, lock: None }
    }
}

impl ComparedLock for RedlockLock {
    fn acquire(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.lock = Some(self.manager.acquire_no_guard(self.name.as_str(), self.ttl).await.unwrap());
        })
    }

    fn renew(&mut self) -> BoxFuture<'_, Option<bool>> {
        Box::pin(async {
            let renewed = self.manager.extend(self.lock.as_ref().unwrap(), self.ttl).await;
            let is_kept = renewed.is_ok();
            self.lock = renewed.ok().or(self.lock.take());
            Some(is_kept)
        })
    }

    fn release(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.lock.take().unwrap().release().await })
    }
}
