//! A fence in the memory of one process.

mod atomic;
mod durable_gate;
mod enter;
mod mark;
mod pass;
mod passes;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use durable_gate::DurableGate;
pub use enter::Enter;
use mark::GateMark;
pub use pass::Pass;
use passes::Passes;
use tenure_core::Token;
use tenure_store::{BoxFuture, Key, Reason};
use tokio::sync::Notify;

use super::{Fence, FenceError, FencingToken, Seal};

/// A fence in the memory of one process, for the tokens of one lease: the resource is something that only this process
/// writes.
///
/// It keeps the greatest token that was offered. A smaller one is refused, an equal one is the same holder writing again,
/// and the token of another lease is refused. Clones are the same gate.
///
/// | | [`admit`](Self::admit) | [`enter`](Self::enter) |
/// | --- | --- | --- |
/// | returns | at once, without a lock | when no write under a smaller token is left |
/// | from then on | no smaller token is admitted | no smaller token is admitted |
/// | a smaller token that was admitted before | **may still be writing** | has ended its write |
/// | use it if | the check and the write are one step anyway | the write takes time, or has an `await` in it |
///
/// `admit` is a check *before* the write, and a thread can be paused between the two. It is atomic with the write only if
/// nothing can come in between: one thread makes all checks and all writes, or the caller makes both under one lock. In all
/// other cases, `enter`, and keep the [`Pass`] until the write has ended.
///
/// A gate forgets its mark when the process ends, and its first token afterwards may be a stale one. A [`DurableGate`]
/// remembers it. Two processes that write the same resource do not see each other's gates: such a resource needs a fence of
/// its own.
///
/// The process behind a gate often has no lease, and hence no [`Recorder`](crate::Recorder). The gate counts its refusals:
/// [`refused`](Self::refused). A holder in the same process writes through [`Lease::fenced`](crate::Lease::fenced), which
/// also reports them.
///
/// ```
/// use tenure::Key;
/// use tenure::fence::{Gate, FencingToken};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # async fn write() {}
/// let gate = Gate::new("the ledger", Key::parse("billing/nightly")?);
///
/// // The token comes with the request, the message or the call.
/// let token: FencingToken = "billing/nightly=9".parse()?;
/// let pass = gate.enter(&token).await?;
/// write().await;
/// drop(pass);
///
/// let late: FencingToken = "billing/nightly=7".parse()?;
/// assert!(gate.enter(&late).await.unwrap_err().is_stale());
/// assert_eq!(gate.refused(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Gate(Arc<Shared>);

struct Shared {
    resource: String,
    lease: Key,
    mark: GateMark,
    refused: AtomicU64,
    passes: Mutex<Passes>,
    /// The last pass has ended, or `enter` has raised the mark.
    changed: Notify,
}

impl Gate {
    /// A gate in front of `resource`, for the tokens of this lease. Messages name the resource.
    pub fn new(resource: impl Into<String>, lease: Key) -> Self {
        Self(Arc::new(Shared {
            resource: resource.into(),
            lease,
            mark: GateMark::default(),
            refused: AtomicU64::new(0),
            passes: Mutex::new(Passes::new()),
            changed: Notify::new(),
        }))
    }

    /// Name of the resource in messages.
    pub fn resource(&self) -> &str {
        &self.0.resource
    }

    /// The lease whose tokens this gate admits.
    pub fn lease(&self) -> &Key {
        &self.0.lease
    }

    /// The greatest token that was offered; `None` before the first one.
    pub fn highest(&self) -> Option<Token> {
        Some(self.0.mark.highest()).filter(|token| *token != Token::ZERO)
    }

    /// Number of tokens that this gate has refused: smaller ones, and those of other leases.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Admits this token, unless a greater one was offered before. It takes no lock and never waits.
    ///
    /// **The write may be late.** A write under a smaller token that was admitted before this call may not have ended; see
    /// the [table](Self) for when that matters.
    #[inline]
    pub fn admit(&self, token: &FencingToken) -> Result<(), FenceError> {
        if *token.name() != self.0.lease {
            return Err(self.other_lease(token));
        }
        self.0.mark.raise(token.token()).map_err(|highest| self.stale(token, highest))
    }

    /// Returns a pass for one write under this token, when no pass of a smaller token is left. Keep it until the write has
    /// ended.
    ///
    /// * From the first poll on, every smaller token is refused. This stays so if the future is dropped: the token shows
    ///   that there is a newer holder.
    /// * Writes under one token enter together. They are not ordered, and do not exclude each other.
    /// * A token that waits is refused when a greater one waits, too. So the greatest token enters next, whatever the order
    ///   of arrival, and smaller ones cannot delay it: they get no new passes.
    /// * It waits as long as the slowest write under a smaller token. Limit the time of the writes, not of the wait: a wait
    ///   that gives up leaves the same writes in front of the next one.
    /// * It does not wait for writes that were only [admitted](Self::admit).
    /// * A task that waits for a greater token while it has a pass itself waits for ever.
    pub async fn enter(&self, token: &FencingToken) -> Result<Pass, FenceError> {
        loop {
            let changed = {
                let mut passes = self.passes();
                let before = self.0.mark.highest();
                self.admit(token)?;
                if before < token.token() {
                    self.wake_waiting();
                }
                if passes.begin(token.token()) {
                    return Ok(Pass::new(self.clone(), token.clone()));
                }
                // It notices every change from its creation on, which is under the lock.
                self.0.changed.notified()
            };
            changed.await;
        }
    }

    fn end_pass(&self) {
        if self.passes().end() {
            self.wake_waiting();
        }
    }

    /// Wakes all tokens that wait. Each of them enters, is refused, or waits again.
    fn wake_waiting(&self) {
        self.0.changed.notify_waiters();
    }

    /// Counts and returns the refusal of a token of another lease.
    #[cold]
    fn other_lease(&self, token: &FencingToken) -> FenceError {
        self.count_refusal();
        let Shared { resource, lease, .. } = &*self.0;
        if let Some(highest) = self.highest()
            && let Ok(mark) = FencingToken::new(lease.clone(), highest)
            && let Err(error) = token.check(resource, Some(&mark))
        {
            return error;
        }
        // The gate has no token yet that it could name.
        let (name, token) = (token.name(), token.token());
        let why = format!(
            "it is fenced by lease {lease}, and token {token} is of lease {name}: use that lease, or another resource"
        );
        FenceError::refused(resource.clone(), Reason::Invalid, why)
    }

    /// Counts and returns the refusal of a smaller token.
    #[cold]
    fn stale(&self, token: &FencingToken, highest: Token) -> FenceError {
        self.count_refusal();
        FenceError::stale(self.resource(), token, highest)
    }

    fn count_refusal(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn passes(&self) -> MutexGuard<'_, Passes> {
        self.0.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The write is a future, which runs under a pass. It is polled only after the token has entered.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tenure::fence::Gate;
///
/// let coordinator = tenure::Coordinator::connect(tenure::store::Memory::new()).await?;
/// let lease = coordinator.lease("billing/nightly")?.acquire().await?;
/// let gate = Gate::new("the ledger", lease.key().clone());
/// let mut total = 0;
/// lease.fenced(&gate).write(Box::pin(async { total += 12 })).await?;
/// assert_eq!(total, 12);
/// # Ok(()) }
/// ```
impl Fence for Gate {
    type Write<'w> = BoxFuture<'w, ()>;
    type Written = ();

    async fn write<'w>(
        &'w self,
        token: &'w FencingToken,
        write: BoxFuture<'w, ()>,
    ) -> Result<(), FenceError> {
        let _pass = self.enter(token).await?;
        write.await;
        Ok(())
    }
}

/// Waits for the writes under smaller tokens, as [`enter`](Gate::enter) does. The mark is as durable as the process.
impl Seal for Gate {
    async fn seal<'w>(&'w self, token: &'w FencingToken) -> Result<(), FenceError> {
        self.enter(token).await.map(drop)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gate = f.debug_struct("Gate");
        gate.field("resource", &self.resource()).field("lease", self.lease());
        gate.field("highest", &self.highest()).field("refused", &self.refused()).finish_non_exhaustive()
    }
}
