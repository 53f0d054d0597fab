use std::num::NonZero;
use std::sync::Arc;

use tenure_core::{Holder, ProcessInfo};
use tenure_store::{Store, StoreError};

use super::Coordinator;
use super::connect::RunningKeeper;
use crate::clock::{BootClock, Clock};
use crate::keeper::{Connection, Recorder};
use crate::keys::KeyMemory;
use crate::observe::Observers;
use crate::{Error, Logbook, Verdicts};

/// Connects a coordinator with options.
#[derive(Clone, Debug)]
#[must_use = "a builder connects nothing until connect() is awaited"]
pub struct CoordinatorBuilder {
    clock: Option<Arc<dyn Clock>>,
    holder: Option<Holder>,
    process: Option<ProcessInfo>,
    pub(super) recorder: Option<Arc<dyn Recorder>>,
    pub(super) logbook: Option<Logbook>,
    pub(super) verdicts: Option<Verdicts>,
    pub(super) again: bool,
    pub(super) unchecked: bool,
    pub(super) calls_max: NonZero<usize>,
}

impl Default for CoordinatorBuilder {
    fn default() -> Self {
        Self {
            clock: None,
            holder: None,
            process: None,
            recorder: None,
            logbook: None,
            verdicts: None,
            again: false,
            unchecked: false,
            calls_max: Self::CALLS_MAX,
        }
    }
}

impl CoordinatorBuilder {
    /// Default of [`calls_max`](Self::calls_max).
    ///
    /// 10,000 leases with a ttl of 15 s make 2,100 calls per second. On a bucket that answers within 120 ms, at most 256 of
    /// them are in flight at a time, so none waits. Where each call takes a connection, 256 fit into the 1,024 files that
    /// a process may usually open.
    pub const CALLS_MAX: NonZero<usize> = NonZero::new(256).expect("it is not zero");

    /// Counts leases on this clock instead of the machine's boot-time clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the holder of its leases.
    pub fn holder(mut self, holder: Holder) -> Self {
        self.holder = Some(holder);
        self
    }

    /// Sets the process that its grants write into the record, for people who look at the lease. Everyone who may read
    /// the store sees it.
    ///
    /// The default is [`this_process`](crate::this_process): host, process id, user and container, and no command line.
    /// `ProcessInfo::default()` writes none.
    ///
    /// ```
    /// # use tenure::{Coordinator, store::Memory};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tenure::Error> {
    /// let process = tenure::this_process().with_command(["indexer", "--shard", "7"]);
    /// let coordinator = Coordinator::builder().process(process).connect(Memory::new()).await?;
    /// let lease = coordinator.lease("shard-7")?.acquire().await?;
    /// let record = coordinator.record("shard-7").await?.expect("it is held");
    /// let process = record.holder_process().expect("its holder names its process");
    /// assert_eq!((process.pid(), process.command()), (Some(std::process::id()), Some("indexer --shard 7")));
    /// # lease.release().await
    /// # }
    /// ```
    pub fn process(mut self, process: ProcessInfo) -> Self {
        self.process = Some(process);
        self
    }

    /// Reports every call and every event to this recorder.
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Uses a logbook: earlier sightings on this machine count here, and sightings made here count for later processes.
    /// Short-lived programs need it on stores that do not report the age of a version.
    pub fn logbook(mut self, logbook: Logbook) -> Self {
        self.logbook = Some(logbook);
        self
    }

    /// Uses cached verdicts: a networked store that passed the safety check in the last day is not checked again, and
    /// later processes rely on the check made here. A breach voids the verdict at once.
    ///
    /// It applies to stores that name their [place](tenure_store::Identity::place).
    pub fn verdicts(mut self, verdicts: Verdicts) -> Self {
        self.verdicts = Some(verdicts);
        self
    }

    /// Checks the store regardless of the [verdicts](Self::verdicts), and updates them.
    pub fn check_again(mut self) -> Self {
        self.again = true;
        self
    }

    /// Sets how many calls on the store may be in flight at the same time, for all leases and contenders of the
    /// coordinator. Default: [`CALLS_MAX`](Self::CALLS_MAX). Fewer suit a store with few connections; more suit a store that
    /// answers slowly and has many leases. Calls of observers, plain keys, fenced values and operators do not count.
    ///
    /// When the maximum is reached, calls wait. Renewals and releases go before the calls of contenders, and the nearest
    /// deadline goes first. If calls of contenders wait, they get every fourth place. Contenders have three quarters of the
    /// places at most, so that calls of theirs that hang keep no renewal waiting. A renewal waits for half of its request
    /// timeout at most; then it counts as failed, was not sent, and is tried again like any failed renewal.
    ///
    /// While the store fails calls of leases, and for one ttl after that (a minute at most), there is another limit: twice as
    /// many calls per second as the leases of the coordinator need when nothing fails, one and a half times as many as in
    /// the second before, or 200, whichever is the most. A shutdown ends this limit.
    pub fn calls_max(mut self, calls_max: NonZero<usize>) -> Self {
        self.calls_max = calls_max;
        self
    }

    /// Connects to an existing store.
    pub async fn connect(self, store: impl Store) -> Result<Coordinator, Error> {
        self.connect_with(move || async move { Ok(store) }).await
    }

    /// Connects to a store that is created on the keeper's runtime, where its connections live. A socket that was
    /// connected on another executor stalls when that executor is blocked.
    pub async fn connect_with<S, F>(
        mut self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Coordinator, Error>
    where
        S: Store,
        F: Future<Output = Result<S, StoreError>> + Send + 'static,
    {
        let clock = self.clock.take().unwrap_or_else(|| Arc::new(BootClock::new()));
        let holder = match self.holder.take() {
            Some(holder) => holder,
            None => crate::host::process_holder(std::process::id())?,
        };
        let process = self.process.take().unwrap_or_else(crate::this_process);
        let process = (!process.is_empty()).then(|| Arc::new(process));
        let RunningKeeper { keeper, store, guarantees, host } = self.start(Arc::clone(&clock), make).await?;
        let logbook = host.logbook.clone();
        let keys = Arc::new(KeyMemory::new(host.clone()));
        let observers = Arc::new(Observers::new(store.clone(), Arc::clone(&clock), host));
        let connection =
            Connection { keeper, store: store.into(), guarantees, clock, holder: Arc::new(holder), process };
        Ok(Coordinator { connection, observers, keys, logbook })
    }

    /// Connects without testing the store live. Tenure still requires its declared guarantees, and trusts them.
    pub async fn connect_dangerously_unchecked(mut self, store: impl Store) -> Result<Coordinator, Error> {
        self.unchecked = true;
        self.connect(store).await
    }
}
