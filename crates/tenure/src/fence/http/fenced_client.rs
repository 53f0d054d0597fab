use std::task::{Context, Poll};

use http::{Request, Response, StatusCode, Uri};
use tenure_store::{BoxError, BoxFuture};
use tower_service::Service;

use super::{HEADER, HIGHEST, header_value};
use crate::Lease;
use crate::fence::message;

/// A client that sends the token of a lease with every request.
///
/// * It checks the lease before each request. If the lease is lost, nothing is sent, and the error is a [`tenure::Error`]
///   of kind [`Lost`]. A layer that repeats requests belongs outside of this one, so that each attempt is checked.
/// * A response passes unchanged. If it is the refusal of a stale token, the [`Recorder`] of the coordinator receives
///   [`Event::Fenced`] with the host and path of the request.
/// * A token in the request is replaced.
///
/// The check saves a request that would be refused. The gate of the server makes the write safe.
///
/// [`tenure::Error`]: crate::Error
/// [`Lost`]: crate::ErrorKind::Lost
/// [`Recorder`]: crate::Recorder
/// [`Event::Fenced`]: crate::Event::Fenced
#[derive(Clone, Debug)]
pub struct FencedClient<S, L> {
    pub(super) inner: S,
    pub(super) lease: L,
}

impl<S, L, A, B> Service<Request<A>> for FencedClient<S, L>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    L: AsRef<Lease> + Clone + Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let lease = self.lease.as_ref();
        if let Err(lost) = lease.check() {
            return Box::pin(async { Err(lost.into()) });
        }
        request.headers_mut().insert(HEADER, header_value(lease.fencing_token()));
        let resource = resource(request.uri());
        let (answer, lease) = (self.inner.call(request), self.lease.clone());
        Box::pin(async move {
            let response = answer.await.map_err(Into::into)?;
            report(lease.as_ref(), &resource, &response);
            Ok(response)
        })
    }
}

/// Reports the refusal of a stale token.
fn report<B>(lease: &Lease, resource: &str, response: &Response<B>) {
    if response.status() == StatusCode::CONFLICT
        && let Ok(highest) = message::token(response.headers().get_all(HIGHEST))
        && highest.name() == lease.key()
        && highest.token() > lease.token()
    {
        lease.report_refusal(resource, highest.token());
    }
}

/// Host and path. A query may have secrets in it.
fn resource(uri: &Uri) -> String {
    format!("{}{}", uri.host().unwrap_or_default(), uri.path())
}
