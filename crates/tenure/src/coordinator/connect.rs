use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tenure_core::check;
use tenure_store::{Guarantees, Store, StoreError};
use tokio::sync::oneshot;

use super::CoordinatorBuilder;
use crate::clock::{Clock, call_timeout};
use crate::host::fork::ForkGuard;
use crate::host::simulation::simulated;
use crate::host::witness::WitnessLocation;
use crate::host::workers::Workers;
use crate::keeper::logbook_client::LogbookClient;
use crate::keeper::{HostState, Keeper, KeeperHandle, Reporter};
use crate::store::guarded::Guarded;
use crate::trust::Trust;
use crate::{Error, ErrorKind, Verdicts};

/// A running keeper's thread.
pub(super) struct RunningKeeper {
    pub(super) keeper: KeeperHandle,
    pub(super) store: String,
    pub(super) guarantees: Guarantees,
    pub(super) host: HostState,
}

impl CoordinatorBuilder {
    #[expect(clippy::disallowed_methods, reason = "the keeper owns its thread")]
    pub(super) async fn start<S, F>(
        self,
        clock: Arc<dyn Clock>,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<RunningKeeper, Error>
    where
        S: Store,
        F: Future<Output = Result<S, StoreError>> + Send + 'static,
    {
        let cannot = |error: std::io::Error| {
            let sentence = "the keeper could not start: this process has no free thread, file descriptor or memory. \
            Check its limits, and try again";
            Error::new(ErrorKind::Unavailable, sentence).because(error)
        };
        let fork_guard = ForkGuard::present().map_err(cannot)?;
        let reporter = Reporter::start(self.recorder).map_err(cannot)?;
        let (handle, commands) = KeeperHandle::new(fork_guard);
        let (connected, connection) = oneshot::channel();
        let keep = move |mut connected: oneshot::Sender<_>| async move {
            let (workers, checks) = (Arc::new(Workers::new()), (self.again, self.unchecked));
            let connecting = connect(make(), &clock, &workers, self.verdicts, checks);
            let connecting = call_timeout(&*clock, CONNECT_MAX, "connecting to the store", connecting);
            let outcome = tokio::select! {
                biased;
                // The caller has dropped its future.
                () = connected.closed() => return,
                outcome = connecting => outcome,
            };
            let (store, trust) = match outcome {
                Ok(connected) => connected,
                Err(error) => return drop(connected.send(Err(error))),
            };
            let logbook = self.logbook.map(|book| {
                LogbookClient::new(book, store.to_string(), Arc::clone(&clock), Arc::clone(&workers))
            });
            let location = WitnessLocation::of_store(&*store).map(Arc::new);
            let host =
                HostState { workers, location, logbook: logbook.map(Arc::new), trust: Arc::new(trust) };
            let known = (store.to_string(), store.guarantees(), host.clone());
            if connected.send(Ok(known)).is_ok() {
                let keeper = Keeper::new(store, clock, fork_guard, reporter, host, self.calls_max);
                keeper.run(commands).await;
            }
        };
        let mut start = Some((keep, connected));
        simulated(|host| start.take().map(|(keep, connected)| host.start_keeper(Box::pin(keep(connected)))));
        if let Some((keep, connected)) = start {
            thread::Builder::new()
                .name("tenure-keeper".into())
                .spawn(move || {
                    // Created on this thread: if the thread could not start, the runtime would be dropped in async
                    // code, which panics.
                    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                        Ok(runtime) => runtime.block_on(keep(connected)),
                        Err(error) => drop(connected.send(Err(cannot(error)))),
                    }
                })
                .map_err(cannot)?;
        }
        let gone = |_| {
            Error::new(ErrorKind::Unavailable, "the keeper ended while it connected: see its panic message")
        };
        let (store, guarantees, host) = connection.await.map_err(gone)??;
        Ok(RunningKeeper { keeper: handle, store, guarantees, host })
    }
}

async fn connect<S: Store>(
    make: impl Future<Output = Result<S, StoreError>>,
    clock: &Arc<dyn Clock>,
    workers: &Arc<Workers>,
    verdicts: Option<Verdicts>,
    (again, unchecked): (bool, bool),
) -> Result<(Arc<dyn Store>, Trust), Error> {
    let store = make.await.map_err(|error| {
        Error::new((&error).into(), format!("the store could not be connected: {error}")).because(error)
    })?;
    let store: Arc<dyn Store> = Arc::new(Guarded::new(store));
    let trust = Trust::new(verdicts, &*store, clock, Arc::clone(workers));
    if unchecked {
        check::check_declared(&*store)?;
    } else {
        trust.verify(&*store, again).await?;
    }
    Ok((store, trust))
}

/// Longest time to connect, including the live check: longer than any healthy store needs.
const CONNECT_MAX: Duration = Duration::from_secs(30);
