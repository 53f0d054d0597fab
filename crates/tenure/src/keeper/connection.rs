use std::sync::Arc;

use tenure_core::{Holder, ProcessInfo};
use tenure_store::{BoxFuture, Guarantees, Store};
use tokio::sync::oneshot;

use super::command::{Command, KeeperHandle};
use crate::clock::{Clock, Instant};
use crate::store::caught::Caught;
use crate::{Error, ErrorKind};

/// A connected store and the channel to the keeper of its leases. The keeper runs as long as one of them exists.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) keeper: KeeperHandle,
    /// The name of the store.
    pub(crate) store: Arc<str>,
    pub(crate) guarantees: Guarantees,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) holder: Arc<Holder>,
    /// The process that grants name; `None` if they name none.
    pub(crate) process: Option<Arc<ProcessInfo>>,
}

impl Connection {
    pub(crate) fn gone_error(&self) -> Error {
        let store = &self.store;
        Error::new(
            ErrorKind::Unavailable,
            format!(
                "the keeper of {store} has ended, or lives in the process that this one was forked from: connect again"
            ),
        )
    }

    /// Sleeps on the keeper's runtime, because the caller's may have no timers. Fails if the keeper has ended.
    pub(crate) async fn sleep_until(&self, at: Instant) -> Result<(), Error> {
        let clock = Arc::clone(&self.clock);
        let (mut reply, answer) = oneshot::channel();
        self.keeper.send(Command::Visit(Box::new(move |_| {
            Box::pin(async move {
                tokio::select! {
                    biased;
                    () = reply.closed() => {}
                    () = clock.sleep_until(at) => drop(reply.send(())),
                }
            })
        })));
        answer.await.map_err(|_| self.gone_error())
    }

    /// Makes calls on the store, on the keeper's runtime. Each call has its own timeout.
    pub(crate) async fn visit<T: Send + 'static>(
        &self,
        visit: impl FnOnce(Arc<dyn Store>) -> BoxFuture<'static, Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let name = self.store.clone();
        self.keeper.send(Command::Visit(Box::new(move |store| {
            let visit: BoxFuture<'static, _> = Box::pin(async move { visit(store).await });
            Box::pin(async move {
                let visited = Caught::new(visit).await.unwrap_or_else(|panicked| {
                    let sentence = format!(
                        "the call on {name} was not finished: its code {panicked}. Leases that are held here \
                         continue; report this bug"
                    );
                    Err(Error::new(ErrorKind::Unavailable, sentence))
                });
                let _ = reply.send(visited);
            })
        })));
        answer.await.map_err(|_| self.gone_error())?
    }
}
