use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_fence::FenceError;
use tenure_store::{BoxFuture, Reason, Store};
use tokio_util::sync::CancellationToken;

use super::call::ValueCall;
use super::state::ValueState;
use crate::clock::{BootClock, Clock};
use crate::keeper::Connection;
use crate::store::guarded::Guarded;
use crate::trust::Trust;

/// The way to the store.
#[derive(Clone)]
pub(super) enum Route {
    /// On the runtime of a keeper.
    Keeper { connection: Connection, trust: Arc<Trust> },
    /// On the runtime of the caller.
    Direct { store: Arc<dyn Store>, clock: Arc<dyn Clock> },
}

impl Route {
    pub(super) fn direct(store: Arc<dyn Store>) -> Self {
        Self::Direct { store: Arc::new(Guarded::new(store)), clock: Arc::new(BootClock::new()) }
    }

    /// Fails on a store that broke a promise before.
    pub(super) fn check_trust(&self, value: &ValueState) -> Result<(), FenceError> {
        match self {
            Self::Keeper { trust, .. } => match trust.breach() {
                Some((breach, on)) => {
                    let why = format!(
                        "the store broke a promise, {breach} (key {on}), and might admit a stale write. Repair the store, \
                         and connect again"
                    );
                    Err(value.refused(Reason::Unsupported, why))
                }
                None => Ok(()),
            },
            Self::Direct { .. } => Ok(()),
        }
    }

    /// Runs one operation. If the caller drops its future, no further call on the store begins.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        value: &Arc<ValueState>,
        act: impl FnOnce(ValueCall, Arc<dyn Store>) -> BoxFuture<'static, Result<T, FenceError>> + Send + 'static,
    ) -> Result<T, FenceError> {
        let (dropped, sent) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let _guard = dropped.clone().drop_guard();
        let (clock, keeper) = match self {
            Self::Keeper { connection, .. } => (&connection.clock, Some(connection.keeper.downgrade())),
            Self::Direct { clock, .. } => (clock, None),
        };
        let call = ValueCall {
            value: Arc::clone(value),
            clock: Arc::clone(clock),
            dropped,
            sent: Arc::clone(&sent),
            keeper,
        };
        let connection = match self {
            Self::Keeper { connection, .. } => connection,
            Self::Direct { store, .. } => return act(call, Arc::clone(store)).await,
        };
        let visit =
            move |store| -> BoxFuture<'static, _> { Box::pin(async move { Ok(act(call, store).await) }) };
        connection.visit(visit).await.unwrap_or_else(|error| {
            // The keeper has ended, perhaps between a write and its answer.
            Err(if sent.load(Ordering::SeqCst) {
                FenceError::unknown(&*value.resource, error)
            } else {
                FenceError::refused(&*value.resource, Reason::Unreachable, error)
            })
        })
    }
}
