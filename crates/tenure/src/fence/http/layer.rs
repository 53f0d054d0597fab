use tower_layer::Layer;

use super::FenceService;

/// Wraps the service of a server in a [`FenceService`], which refuses requests with a stale token: see the [module](super).
///
/// ```
/// use axum::{Extension, Router, routing::post};
/// use tenure::fence::{FencingToken, Gate, http::FenceLayer};
///
/// # fn example() -> Result<Router, tenure::KeyError> {
/// let gate = Gate::new("the ledger", "billing/nightly".parse()?);
/// let router = Router::new()
///     .route("/entries", post(|Extension(token): Extension<FencingToken>| async move { format!("written by {token}\n") }))
///     .layer(FenceLayer::new(gate));
/// # Ok(router) }
/// ```
#[derive(Clone, Debug)]
pub struct FenceLayer<G> {
    pub(super) gate: G,
    pub(super) missing: Missing,
}

/// What happens to a request without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Refuse,
    Allow,
}

impl<G> FenceLayer<G> {
    /// A layer with this gate: a [`Gate`](crate::fence::Gate), or a [`DurableGate`](crate::fence::DurableGate) whose mark
    /// survives a restart of the server. Requests without a token are refused with 428.
    pub fn new(gate: G) -> Self {
        Self { gate, missing: Missing::Refuse }
    }

    /// Lets requests without a token pass. **They are not fenced**, and not ordered with those that are. This is for the
    /// time until all clients send the token. If only the reads have none, wrap the routes that write instead.
    #[must_use]
    pub fn allow_missing(self) -> Self {
        Self { missing: Missing::Allow, ..self }
    }
}

impl<S, G: Clone> Layer<S> for FenceLayer<G> {
    type Service = FenceService<S, G>;

    fn layer(&self, inner: S) -> Self::Service {
        FenceService { inner, fence: self.clone() }
    }
}
