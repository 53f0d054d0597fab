use std::time::Duration;

use tenure::{Coordinator, Lease};
use tenure_redis::Redis;
use tenure_store::BoxFuture;
use tenure_testkit::ComparedLock;

/// A lease of Tenure. It has no witness, so the contenders know as little about the holder as from another machine.
pub(crate) struct TenureLease {
    coordinator: Coordinator,
    name: String,
    ttl: Duration,
    lease: Option<Lease>,
}

impl TenureLease {
    pub(crate) async fn open(url: &str, name: &str, ttl: Duration) -> Self {
        let coordinator = Coordinator::connect(store(url.trim_start_matches("redis://"))).await.unwrap();
        Self { coordinator, name: name.to_owned(), ttl, lease: None }
    }
}

impl ComparedLock for TenureLease {
    fn acquire(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let request = self.coordinator.lease(self.name.as_str()).unwrap().ttl(self.ttl);
            self.lease = Some(request.manual().without_witness().acquire().await.unwrap());
        })
    }

    fn renew(&mut self) -> BoxFuture<'_, Option<bool>> {
        Box::pin(async { Some(self.lease.as_ref().unwrap().renew().await.is_ok()) })
    }

    fn release(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.lease.take().unwrap().release().await.unwrap() })
    }

    fn believes(&self) -> Option<bool> {
        self.lease.as_ref().map(|lease| lease.check().is_ok())
    }

    fn token(&self) -> Option<u64> {
        self.lease.as_ref().map(|lease| lease.token().get())
    }
}

/// A store with its own connections.
pub(crate) fn store(address: &str) -> Redis {
    Redis::builder(address).quarantine(QUARANTINE).open().unwrap()
}

/// The longest ttl here. The first grant on a new server waits a fifth longer.
const QUARANTINE: Duration = Duration::from_secs(2);
