//! Trust in a store: the check at connect, its cached verdict, and breaches seen later.

pub(crate) mod breach;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_core::check;
use tenure_store::{Key, Store};

use crate::clock::{Clock, Instant, timeout};
use crate::host::entropy::Entropy;
use crate::host::workers::Workers;
use crate::{Error, ErrorKind, Verdicts};
use breach::Breach;

/// Trust in one store, shared with other processes of this machine.
///
/// Workers read and write the verdicts, each time with a limit. If a verdict cannot be read in time, the store is
/// checked.
pub(crate) struct Trust {
    /// Cached verdicts; `None` if the store is not checked live, or the user keeps no verdicts.
    cache: Option<Arc<VerdictCache>>,
    clock: Arc<dyn Clock>,
    workers: Arc<Workers>,
    /// The first breach that was seen, and its key.
    breach: OnceLock<(Breach, Key)>,
}

#[derive(Debug)]
struct VerdictCache {
    verdicts: Verdicts,
    place: String,
    clock: Arc<dyn Clock>,
}

impl Trust {
    pub(crate) fn new(
        verdicts: Option<Verdicts>,
        store: &dyn Store,
        clock: &Arc<dyn Clock>,
        workers: Arc<Workers>,
    ) -> Self {
        let place = store.identity().place.filter(|_| check::is_checked_live(store));
        let cache = verdicts.zip(place);
        let cache = cache.map(|(verdicts, place)| VerdictCache { verdicts, place, clock: Arc::clone(clock) });
        let (cache, breach) = (cache.map(Arc::new), OnceLock::new());
        Self { cache, clock: Arc::clone(clock), workers, breach }
    }

    /// Checks the store as [`check::connect_check`] does, unless a valid verdict says that it is sound and `again` is
    /// false.
    pub(crate) async fn verify(&self, store: &dyn Store, again: bool) -> Result<(), Error> {
        check::check_declared(store)?;
        if !check::is_checked_live(store) || (!again && self.is_sound().await) {
            return Ok(());
        }
        let began = self.clock.now();
        let checked = check::check_live(
            store,
            &|span| self.clock.sleep_until(self.clock.now() + span),
            Entropy.nonce().to_bits(),
        )
        .await;
        match &checked {
            Ok(()) => self.record_sound(began).await,
            // What is created later in place of a missing store may be another one.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Misconfigured) => {
                self.void().await;
            }
            // Inconclusive: record nothing.
            Err(_) => {}
        }
        checked
    }

    /// The first breach that was seen, and its key. Nothing more is granted or changed on the store.
    pub(crate) fn breach(&self) -> Option<&(Breach, Key)> {
        self.breach.get()
    }

    /// Ends the trust for good. True if this is the first breach.
    pub(crate) fn convict(&self, breach: Breach, key: &Key) -> bool {
        self.breach.set((breach, key.clone())).is_ok()
    }

    /// Voids the verdict after a suspected breach: the next process that connects checks the store first.
    pub(crate) async fn void(&self) {
        if let Some(job) = self.void_job() {
            self.run(VOID_MAX, job).await;
        }
    }

    /// Job that voids the verdict; `None` if there is none.
    pub(crate) fn void_job(&self) -> Option<impl FnOnce() + Send + 'static> {
        let cache = Arc::clone(self.cache.as_ref()?);
        Some(move || cache.void())
    }

    async fn is_sound(&self) -> bool {
        let Some(cache) = self.cache.clone() else { return false };
        self.run(DISK_MAX, move || cache.is_sound()).await == Some(true)
    }

    async fn record_sound(&self, began: Instant) {
        if let Some(cache) = self.cache.clone() {
            self.run(DISK_MAX, move || cache.record_sound(began)).await;
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        timeout(&*self.clock, limit, self.workers.run_limited(job)).await?.ok()
    }
}

impl VerdictCache {
    fn is_sound(&self) -> bool {
        let domain = self.clock.domain();
        domain.is_some_and(|domain| self.verdicts.is_sound(&self.place, &domain, &*self.clock))
    }

    fn record_sound(&self, began: Instant) {
        if let Some(domain) = self.clock.domain() {
            self.verdicts.write_sound(&self.place, began, &domain, &*self.clock);
        }
    }

    fn void(&self) {
        let domain = self.clock.domain();
        if let Err(why) = self.verdicts.write_broken(&self.place, domain.as_ref(), &*self.clock) {
            tracing::error!(
                store = self.place,
                why,
                "other processes may continue to trust a store that broke a promise"
            );
        }
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// Longest wait for the disk: a check takes about as long.
const DISK_MAX: Duration = Duration::from_millis(200);

/// Longer, because other processes rely on the verdict.
const VOID_MAX: Duration = Duration::from_secs(1);
