use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use object_store::CredentialProvider;
use tenure_store::BoxFuture;

use super::{FetchError, Fetched};
use crate::boot_time::{BootTime, MachineBootTime};

/// Fetches credentials once.
pub(crate) type Fetch<C> = Box<dyn Fn() -> BoxFuture<'static, Result<Fetched<C>, FetchError>> + Send + Sync>;

/// A provider of fetched credentials that keeps them as long as they are valid, whatever happens to the service.
///
/// * Credentials are valid until they expire, on a clock that counts through suspend, or until the server
///   [refuses](Replaceable::refused) them.
/// * Some minutes before they expire, the next call starts a refresh. It waits for the refresh only for a moment, and
///   then continues with the old credentials. If the refresh fails, a later call tries again.
/// * All calls share one fetch. No task runs in the background: work on the user's executor can starve. So a fetch
///   advances while calls poll it, and one that is not finished stays for the next call. A call that the keeper cuts
///   off does not cut off its fetch.
pub(crate) struct KeptCredentials<C> {
    fetch: Fetch<C>,
    clock: Arc<dyn BootTime>,
    /// Spreads the refreshes of programs that started together.
    jitter: RandomState,
    state: Mutex<State<C>>,
}

struct State<C> {
    kept: Option<Kept<C>>,
    /// Earliest start of the next refresh.
    refresh_at: Duration,
    running: Option<Running<C>>,
    /// Number of fetches that have started.
    fetches: u64,
}

struct Kept<C> {
    credential: Arc<C>,
    fetched_at: Duration,
    expires_at: Option<Duration>,
    number: u64,
}

/// Beginning of a call: the number of the fetch whose credentials it uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark(u64);

struct Running<C> {
    outcome: Shared<BoxFuture<'static, Result<Fetched<C>, FetchError>>>,
    started_at: Duration,
    number: u64,
    /// True if a call with valid credentials has waited for it already.
    is_slow: bool,
    /// Its timers belong to this runtime. They panic if it has shut down.
    runtime: tokio::runtime::Id,
}

impl<C> Clone for Running<C> {
    fn clone(&self) -> Self {
        Self { outcome: self.outcome.clone(), ..*self }
    }
}

/// Next step of a call.
enum Step<C> {
    Use(Arc<C>),
    /// Valid credentials, whose refresh is due.
    Refresh(Arc<C>, Running<C>),
    Fetch(Running<C>),
}

impl<C: Send + Sync + 'static> KeptCredentials<C> {
    pub(crate) fn new(fetch: Fetch<C>) -> Self {
        Self::with_clock(fetch, Arc::new(MachineBootTime))
    }

    fn with_clock(fetch: Fetch<C>, clock: Arc<dyn BootTime>) -> Self {
        let state = State { kept: None, refresh_at: Duration::ZERO, running: None, fetches: 0 };
        Self { fetch, clock, jitter: RandomState::new(), state: Mutex::new(state) }
    }

    async fn current(&self) -> Result<Arc<C>, FetchError> {
        match self.step() {
            Step::Use(credential) => Ok(credential),
            Step::Fetch(running) => self.finish(running).await,
            Step::Refresh(old, running) => {
                let (number, is_slow) = (running.number, running.is_slow);
                let finished = self.finish(running);
                let outcome = if is_slow { finished.now_or_never() } else { patiently(finished).await };
                if outcome.is_none() {
                    let mut state = self.state();
                    if let Some(running) = state.running.as_mut().filter(|same| same.number == number) {
                        running.is_slow = true;
                    }
                }
                // A failure is reported when the old credentials have expired.
                Ok(outcome.and_then(Result::ok).unwrap_or(old))
            }
        }
    }

    fn step(&self) -> Step<C> {
        let now = self.clock.now();
        let mut state = self.state();
        state.kept.take_if(|kept| kept.expires_at.is_some_and(|expires_at| expires_at <= now));
        let kept = state.kept.as_ref().map(|kept| Arc::clone(&kept.credential));
        let due = state.refresh_at <= now;
        match kept {
            Some(credential) if !due => Step::Use(credential),
            Some(credential) => Step::Refresh(credential, self.run(&mut state, now)),
            None => Step::Fetch(self.run(&mut state, now)),
        }
    }

    /// The running fetch, or a new one.
    fn run(&self, state: &mut State<C>, now: Duration) -> Running<C> {
        let runtime = tokio::runtime::Handle::current().id();
        if let Some(running) = state.running.as_ref().filter(|running| running.runtime == runtime) {
            return running.clone();
        }
        state.fetches += 1;
        let outcome = (self.fetch)().shared();
        let running = Running { outcome, started_at: now, number: state.fetches, is_slow: false, runtime };
        state.running = Some(running.clone());
        running
    }

    async fn finish(&self, running: Running<C>) -> Result<Arc<C>, FetchError> {
        let outcome = running.outcome.clone().await;
        let now = self.clock.now();
        let mut state = self.state();
        // The first of those that wait records the outcome.
        if state.running.take_if(|same| same.number == running.number).is_some() {
            let lifetime = match &outcome {
                Ok(fetched) => fetched.lifetime,
                Err(_) => state.kept.as_ref().and_then(|kept| Some(kept.expires_at? - kept.fetched_at)),
            };
            let ahead = lifetime.map_or(AHEAD_MAX, |lifetime| AHEAD_MAX.min(lifetime / 4));
            let pause = self.earlier_by_chance((ahead / 10).max(RETRY_MIN), running.number);
            state.refresh_at = now + pause;
            if let Ok(fetched) = &outcome {
                // Counted from before the request: the answer may have waited.
                let at = running.started_at;
                let expires_at = lifetime.map(|lifetime| at + lifetime);
                let refresh_at = match expires_at {
                    Some(expires_at) => expires_at - self.earlier_by_chance(ahead, running.number),
                    None => at + self.earlier_by_chance(UNKNOWN_LIFETIME, running.number),
                };
                // A service may return the old credentials once more.
                state.refresh_at = refresh_at.max(now + pause);
                let credential = Arc::clone(&fetched.credential);
                state.kept = Some(Kept { credential, fetched_at: at, expires_at, number: running.number });
            }
        }
        outcome.map(|fetched| fetched.credential)
    }

    /// The span, or up to a quarter less.
    fn earlier_by_chance(&self, span: Duration, number: u64) -> Duration {
        let chance = self.jitter.hash_one(number) as u32;
        span - span / 4 * (chance >> 16) / (1 << 16)
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The output of the future, if it comes soon.
async fn patiently<T>(future: impl Future<Output = T>) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "a limit for a server, not a promise to a holder")]
    tokio::time::timeout(PATIENCE, future).await.ok()
}

#[async_trait::async_trait]
impl<C: Send + Sync + 'static> CredentialProvider for KeptCredentials<C> {
    type Credential = C;

    async fn get_credential(&self) -> object_store::Result<Arc<C>> {
        Ok(self.current().await?)
    }
}

/// Credentials that can be replaced by others, whatever their type.
pub(crate) trait Replaceable: Send + Sync {
    /// Beginning of a call, for [`refused`](Self::refused).
    fn mark(&self) -> Mark;

    /// Drops the credentials that the server refused in a call that began at this mark. Returns true if the next call
    /// may have more success: the refused credentials had been in use, or have been replaced already.
    fn refused(&self, began: Mark) -> bool;
}

impl<C: Send + Sync + 'static> Replaceable for KeptCredentials<C> {
    fn mark(&self) -> Mark {
        let state = self.state();
        // Without credentials, the call waits for the running fetch or for the next one.
        Mark(state.kept.as_ref().map_or(state.fetches + 1, |kept| kept.number))
    }

    fn refused(&self, began: Mark) -> bool {
        let now = self.clock.now();
        let mut state = self.state();
        // Later ones may have replaced those that were refused. If the call used the later ones, the next refusal drops
        // them.
        let refused = state.kept.take_if(|kept| kept.number <= began.0);
        refused.is_none_or(|kept| now.saturating_sub(kept.fetched_at) >= NEW)
    }
}

/// Shows no credentials.
impl<C> fmt::Debug for KeptCredentials<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptCredentials").finish_non_exhaustive()
    }
}

/// Longest time between a refresh and the end of the old credentials. The metadata address of a machine at AWS has new
/// credentials at least this long before the old ones expire.
const AHEAD_MAX: Duration = Duration::from_secs(5 * 60);

/// Shortest pause between two refreshes.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// Time until the refresh of credentials whose service does not say when they expire.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Time that a call with valid credentials waits for a refresh, once per refresh. A service in the same data centre
/// answers within it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Credentials that are refused so soon after they were fetched are wrong, and not worn out.
const NEW: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
