use tower_layer::Layer;

use super::FencedClient;

/// Wraps the service of a client in a [`FencedClient`], which sends the token of a lease with every request.
///
/// The lease is an `Arc<Lease>`, the [`Term`](crate::Term) of a leader, or another type that refers to a lease.
///
/// ```
/// use std::sync::Arc;
///
/// use tenure::fence::http::FencedClientLayer;
/// use tower::Layer;
///
/// # async fn example(coordinator: tenure::Coordinator) -> Result<(), tenure::Error> {
/// # let client = tower::service_fn(async |_: http::Request<String>| Ok::<_, std::io::Error>(http::Response::new(String::new())));
/// let lease = Arc::new(coordinator.lease("billing/nightly")?.acquire().await?);
/// // Any tower service that sends requests, such as the client of hyper-util.
/// let client = FencedClientLayer::new(Arc::clone(&lease)).layer(client);
/// # drop(client);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct FencedClientLayer<L> {
    lease: L,
}

impl<L> FencedClientLayer<L> {
    /// A layer that sends the token of this lease.
    pub fn new(lease: L) -> Self {
        Self { lease }
    }
}

impl<S, L: Clone> Layer<S> for FencedClientLayer<L> {
    type Service = FencedClient<S, L>;

    fn layer(&self, inner: S) -> Self::Service {
        FencedClient { inner, lease: self.lease.clone() }
    }
}
