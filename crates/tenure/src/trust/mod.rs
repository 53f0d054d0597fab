//! Whether a store is believed to keep its promises: the check at connect, its cached verdict, and breaches seen later.

pub(crate) mod breach;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::check;
use tenure_store::Store;

use crate::clock::{Clock, Instant, timeout};
use crate::host::entropy::Entropy;
use crate::host::workers::Workers;
use crate::{Error, ErrorKind, Verdicts};

/// Whether one store is trusted, and who else on this machine goes by that.
///
/// All of it is done by threads that may wait for a disk, each time with a limit; what is not done by then is done without:
/// a store that may have been found sound is checked.
pub(crate) struct Trust {
    /// Where others look whether it was found sound; `None` where nobody is told.
    cache: Option<Arc<VerdictCache>>,
    clock: Arc<dyn Clock>,
    workers: Arc<Workers>,
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
        Self { cache: cache.map(Arc::new), clock: Arc::clone(clock), workers }
    }

    /// Checks the store as [`check::connect_check`] does, unless it was found sound of late and is not to be checked again.
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
            Err(error) if error.kind() == ErrorKind::Unsupported => self.void().await,
            // It was not found out how it is.
            Err(_) => {}
        }
        checked
    }

    /// The store was seen to break a promise, or perhaps to: whoever connects next checks it first.
    pub(crate) async fn void(&self) {
        if let Some(job) = self.void_job() {
            self.run(VOID_MAX, job).await;
        }
    }

    /// The same, for a worker; `None` where nobody goes by it.
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
        timeout(&*self.clock, limit, self.workers.run(job)).await?.ok()
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
                "others may go on trusting a store that broke a promise"
            );
        }
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// Nobody waits longer for a disk than a check takes.
const DISK_MAX: Duration = Duration::from_millis(200);

/// This is worth more: others would go by it.
const VOID_MAX: Duration = Duration::from_secs(1);
