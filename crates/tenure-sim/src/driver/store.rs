use std::fmt;
use std::future::pending;

use futures_util::{StreamExt, TryStreamExt, stream};
use tenure_store::{
    BoxStream, Guarantees, Identity, Key, Prefix, Put, Reading, Store, StoreError, StoreFuture, Version,
    Write,
};
use tokio::sync::oneshot;

use super::server::{StoreAnswer, StoreRequest};
use super::world::world;

/// The client of the simulated store, in one process.
#[derive(Debug)]
pub(super) struct StoreClient {
    pub(super) process: usize,
}

impl fmt::Display for StoreClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sim:store")
    }
}

/// Makes one call. An answer that never comes leaves it pending.
async fn call(process: usize, request: StoreRequest) -> Result<StoreAnswer, StoreError> {
    let (answered, answer) = oneshot::channel();
    world().send(process, request, answered);
    match answer.await {
        Ok(answer) => answer,
        Err(_) => pending().await,
    }
}

impl Store for StoreClient {
    fn guarantees(&self) -> Guarantees {
        world().plan.guarantees
    }

    fn identity(&self) -> Identity {
        Identity::new(Version::new("0"))
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        let call = call(self.process, StoreRequest::Get(key.clone()));
        Box::pin(async move {
            match call.await? {
                StoreAnswer::Read(reading) => Ok(reading),
                other => unreachable!("{other:?}"),
            }
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        let call = call(self.process, StoreRequest::Write(key.clone(), write));
        Box::pin(async move {
            match call.await? {
                StoreAnswer::Written(put) => Ok(put),
                other => unreachable!("{other:?}"),
            }
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        let call = call(self.process, StoreRequest::List(prefix.clone()));
        let listed = async move {
            match call.await? {
                StoreAnswer::Listed(keys) => Ok::<_, StoreError>(stream::iter(keys).map(Ok)),
                other => unreachable!("{other:?}"),
            }
        };
        Box::pin(stream::once(listed).try_flatten())
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        let world = world();
        let hints = world.plan.guarantees.watch.then(|| world.server.borrow_mut().watch(prefix.clone()))?;
        Some(Box::pin(stream::unfold(hints, async |mut hints| Some((hints.recv().await?, hints)))))
    }
}
