use std::fmt;
use std::sync::Arc;

use tenure_core::Token;
use tenure_store::{BoxFuture, Key};
use tokio::sync::Mutex;

use super::mark::GateMark;
use super::{Gate, Pass};
use crate::fence::{Fence, FenceError, FencingToken, Seal};

/// A [`Gate`] whose mark survives a restart: before it admits a greater token, it raises another fence to it.
///
/// That fence is any [`Seal`]: a fenced value in a Tenure store, a file, a row. It keeps the mark of the gate, and need not be
/// the resource itself. The token of a new holder costs one call of `seal`. Every further write of that holder costs none,
/// and neither does a refusal by a greater token that this process knows. The first token after a restart is always sealed,
/// so the fence refuses a stale one.
///
/// A token is admitted only after its seal has succeeded. If the outcome of the seal is unknown
/// ([`FenceError::Unknown`]), or the fence cannot be reached, nothing is admitted under that token; the next attempt seals
/// again. The token that was admitted before is not affected.
///
/// **One process at a time.** Another process with a gate on the same fence raises the fence, but this gate asks the fence
/// only about tokens that it does not know: it continues to admit its own. A resource that two processes write, or that an
/// old and a new version of a server write during a deployment, needs a fence of its own.
///
/// Clones are the same gate.
pub struct DurableGate<F>(Arc<Inner<F>>);

struct Inner<F> {
    /// Its mark is sealed at the fence.
    gate: Gate,
    fence: F,
    /// The greatest token that the fence has named in a refusal. Smaller ones are refused without a call. The token itself
    /// is sealed before it is admitted, as every other one.
    named: GateMark,
    /// At most one seal at a time.
    sealing: Mutex<()>,
}

impl Gate {
    /// This gate, with a mark that is durable on another fence. Tokens that this gate has seen already are not made
    /// durable.
    pub fn durable<F: Seal>(self, fence: F) -> DurableGate<F> {
        let inner = Inner { gate: self, fence, named: GateMark::default(), sealing: Mutex::new(()) };
        DurableGate(Arc::new(inner))
    }
}

impl<F> DurableGate<F> {
    /// Name of the resource in messages.
    pub fn resource(&self) -> &str {
        self.0.gate.resource()
    }

    /// The lease whose tokens this gate admits.
    pub fn lease(&self) -> &Key {
        self.0.gate.lease()
    }

    /// The greatest token that is known: admitted by this process, or named by the fence in a refusal. `None` before the
    /// first one.
    pub fn highest(&self) -> Option<Token> {
        self.0.gate.highest().max(Some(self.0.named.highest()).filter(|token| *token != Token::ZERO))
    }

    /// Number of tokens that this gate, or its fence, has refused: smaller ones, and those of other leases. A fence that
    /// cannot be reached is no refusal.
    pub fn refused(&self) -> u64 {
        self.0.gate.refused()
    }
}

impl<F: Seal> DurableGate<F> {
    /// Admits this token, unless a greater one was offered before, in this run of the process or in an earlier one. A
    /// greater token than all before is sealed first. As with [`Gate::admit`], an earlier write may not have ended.
    pub async fn admit(&self, token: &FencingToken) -> Result<(), FenceError> {
        if let Some(decided) = self.decide(token) {
            return decided;
        }
        let Inner { gate, fence, named, sealing } = &*self.0;
        let _one = sealing.lock().await;
        // Another request may have sealed this token meanwhile, or a greater one.
        if let Some(decided) = self.decide(token) {
            return decided;
        }
        // If this future is dropped here, the fence may be raised, and nothing was admitted.
        match fence.seal(token).await {
            Ok(()) => {
                gate.admit(token)?;
                gate.wake_waiting();
                Ok(())
            }
            Err(error) => {
                if let FenceError::Stale { highest, .. } = &error {
                    // The error is a greater token that the fence has named before.
                    let _ = named.raise(*highest);
                }
                if matches!(error, FenceError::Stale { .. } | FenceError::OtherLease { .. }) {
                    gate.count_refusal();
                }
                Err(error)
            }
        }
    }

    /// Returns a pass for one write under this token, after it was sealed, and when no pass of a smaller token is left: see
    /// [`Gate::enter`].
    pub async fn enter(&self, token: &FencingToken) -> Result<Pass, FenceError> {
        self.admit(token).await?;
        self.0.gate.enter(token).await
    }

    /// The decision about a token of another lease, and about one that is not greater than the greatest known one. `None`
    /// if the fence must decide.
    fn decide(&self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        let Inner { gate, named, .. } = &*self.0;
        if token.name() != gate.lease() || gate.highest() >= Some(token.token()) {
            return Some(gate.admit(token));
        }
        let named = named.highest();
        (named > token.token()).then(|| Err(gate.stale(token, named)))
    }
}

/// The write is a future, which runs under a pass.
impl<F: Seal + Send> Fence for DurableGate<F> {
    type Write<'w>
        = BoxFuture<'w, ()>
    where
        F: 'w;
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

/// Returns after the mark is durable, and after the writes under smaller tokens have ended.
impl<F: Seal + Send> Seal for DurableGate<F> {
    async fn seal<'w>(&'w self, token: &'w FencingToken) -> Result<(), FenceError> {
        self.enter(token).await.map(drop)
    }
}

impl<F> Clone for DurableGate<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> fmt::Debug for DurableGate<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DurableGate").field(&self.0.gate).finish()
    }
}
