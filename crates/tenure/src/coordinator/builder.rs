use std::sync::Arc;

use tenure_core::Holder;
use tenure_store::{Store, StoreError};

use super::Coordinator;
use super::connect::{Started, Thread};
use crate::clock::{BootClock, Clock};
use crate::keeper::{Connection, Recorder};
use crate::observe::Observers;
use crate::{Error, Logbook, Verdicts};

/// Connects a coordinator with choices.
#[derive(Debug, Default)]
#[must_use = "a builder connects nothing until connect() is awaited"]
pub struct CoordinatorBuilder {
    clock: Option<Arc<dyn Clock>>,
    holder: Option<Holder>,
    recorder: Option<Arc<dyn Recorder>>,
    logbook: Option<Logbook>,
    verdicts: Option<Verdicts>,
    again: bool,
    unchecked: bool,
}

impl CoordinatorBuilder {
    /// Counts leases on this clock instead of the machine's boot-time clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Takes leases in this name.
    pub fn holder(mut self, holder: Holder) -> Self {
        self.holder = Some(holder);
        self
    }

    /// Reports every attempt and every event to this recorder.
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// What this machine saw earlier counts, and what is seen here counts for whoever looks next: needed where the store
    /// cannot tell how old a version is and a program does not stay to see for itself.
    pub fn logbook(mut self, logbook: Logbook) -> Self {
        self.logbook = Some(logbook);
        self
    }

    /// A store of the network that was found sound in the last day is not checked again, and one that is found sound here
    /// need not be by whoever connects next. Where it is seen to break a promise, that is over at once.
    ///
    /// It counts for stores that name their [place](tenure_store::Identity::place).
    pub fn verdicts(mut self, verdicts: Verdicts) -> Self {
        self.verdicts = Some(verdicts);
        self
    }

    /// Checks the store whatever the [verdicts](Self::verdicts) say, and lets them know.
    pub fn check_again(mut self) -> Self {
        self.again = true;
        self
    }

    /// Connects to a store that is made already.
    pub async fn connect(self, store: impl Store) -> Result<Coordinator, Error> {
        self.connect_with(move || async move { Ok(store) }).await
    }

    /// Connects to a store that is made on the keeper's own runtime, where its connections will live: a socket that was
    /// connected on a blocked executor answers nobody.
    pub async fn connect_with<S, F>(
        self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Coordinator, Error>
    where
        S: Store,
        F: Future<Output = Result<S, StoreError>> + Send + 'static,
    {
        let clock = self.clock.unwrap_or_else(|| Arc::new(BootClock::new()));
        let holder = match self.holder {
            Some(holder) => holder,
            None => crate::host::process_holder(std::process::id())?,
        };
        let thread = Thread {
            clock: Arc::clone(&clock),
            recorder: self.recorder,
            logbook: self.logbook,
            verdicts: self.verdicts,
            again: self.again,
            unchecked: self.unchecked,
        };
        let Started { keeper, store, guarantees, host } = thread.start(make).await?;
        let logbook = host.logbook.clone();
        let observers = Arc::new(Observers::new(store.clone(), Arc::clone(&clock), host));
        let connection =
            Connection { keeper, store: store.into(), guarantees, clock, holder: Arc::new(holder) };
        Ok(Coordinator { connection, observers, logbook })
    }

    /// Connects without testing the store live. What it declares is still required, and believed.
    pub async fn connect_dangerously_unchecked(mut self, store: impl Store) -> Result<Coordinator, Error> {
        self.unchecked = true;
        self.connect(store).await
    }
}
