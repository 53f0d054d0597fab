use tenure_store::Key;

use super::{DurableGate, Gate, Pass};
use crate::fence::{FenceError, FencingToken, Seal};

/// A gate that gives passes: a [`Gate`], or a [`DurableGate`] whose mark survives a restart.
pub trait Enter: Send + Sync {
    /// The lease whose tokens the gate admits.
    fn lease(&self) -> &Key;

    /// Returns a pass for one write under this token: see [`Gate::enter`].
    fn enter<'w>(
        &'w self,
        token: &'w FencingToken,
    ) -> impl Future<Output = Result<Pass, FenceError>> + Send + 'w;
}

impl Enter for Gate {
    fn lease(&self) -> &Key {
        self.lease()
    }

    async fn enter<'w>(&'w self, token: &'w FencingToken) -> Result<Pass, FenceError> {
        self.enter(token).await
    }
}

impl<F: Seal + Send> Enter for DurableGate<F> {
    fn lease(&self) -> &Key {
        self.lease()
    }

    async fn enter<'w>(&'w self, token: &'w FencingToken) -> Result<Pass, FenceError> {
        self.enter(token).await
    }
}
