use std::task::{Context, Poll};

use http::{Request, Response};
use tenure_store::BoxFuture;
use tower_service::Service;

use super::layer::Missing;
use super::{FenceLayer, HEADER, HttpRefusal};
use crate::fence::message::{self, TokenHeaderError};
use crate::fence::{Enter, FencingToken};

/// A service that refuses requests with a stale token: see the [module](super).
///
/// The service behind it finds the [`FencingToken`] in the extensions of the request.
#[derive(Clone, Debug)]
pub struct FenceService<S, G> {
    pub(super) inner: S,
    pub(super) fence: FenceLayer<G>,
}

impl<S, G, A, B> Service<Request<A>> for FenceService<S, G>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    G: Enter + Clone + 'static,
    A: Send + 'static,
    B: From<String>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        // The clone is not ready; the original is.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let FenceLayer { gate, missing } = self.fence.clone();
        Box::pin(async move {
            let token = match message::token(request.headers().get_all(HEADER)) {
                Ok(token) => token,
                Err(TokenHeaderError::Missing) if missing == Missing::Allow => {
                    // An extension of this type would claim that the token was checked.
                    request.extensions_mut().remove::<FencingToken>();
                    return inner.call(request).await;
                }
                Err(error) => return Ok(HttpRefusal::of_header(&error).into_response()),
            };
            let pass = match gate.enter(&token).await {
                Ok(pass) => pass,
                Err(error) => return Ok(HttpRefusal::of_gate(&gate, &token, &error).into_response()),
            };
            request.extensions_mut().insert(token);
            let answer = inner.call(request).await;
            drop(pass);
            answer
        })
    }
}
