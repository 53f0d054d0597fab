//! HTTP requests that carry the token: a layer for servers, and one for clients.
//!
//! Both have the shape of [tower](https://docs.rs/tower), and work with axum and hyper. A request carries the header
//! `Fencing-Token: NAME=TOKEN`, which is the text of a [`FencingToken`].
//!
//! * [`FenceLayer`], on the server: offers the token to a gate, and refuses the request before the handler runs. It keeps
//!   the pass until the **future of the response** has ended. So a handler of a greater token begins after the handlers of
//!   all smaller ones have ended.
//! * [`FencedClientLayer`], on the client: adds the header from a lease, after a check that the lease is still held. A lost
//!   lease sends nothing.
//!
//! # Answers of the server
//!
//! | status | when | what the client does |
//! | --- | --- | --- |
//! | 409 Conflict | the token is smaller than one that was here; [`HIGHEST`] has the greatest one | stops for good |
//! | 409 Conflict | the token is of another lease | fails: its configuration is wrong |
//! | 428 Precondition Required | there is no token | sends one; see [`FenceLayer::allow_missing`] |
//! | 400 Bad Request | the token cannot be read, or there are several | fails: its configuration is wrong |
//! | 503 Service Unavailable | the fence of a durable gate cannot be raised | tries again |
//!
//! The body is one line of text. Why 409: the request is well-formed, and conflicts with the state of the resource. 412
//! answers a condition header such as `If-Match`, and none was sent. 423 is a lock that another client holds and may
//! release; a stale token never becomes valid. 403 is about the identity of the client, which is unchanged.
//!
//! # What the pass covers
//!
//! The pass ends with the future of the handler. This is exact for a resource that the handler changes by itself, in memory
//! or on the local disk. These are not covered:
//!
//! * Work that the handler spawned, and a response body that is streamed after the handler has returned.
//! * A statement that was sent to a database when the future was dropped, for example because the client closed its
//!   connection or a time limit was reached. The database may apply it later. Let the database check the token, too.
//! * Other processes: each has its own gate.
//!
//! # Trust
//!
//! A client that sends the greatest possible token shuts out all others for good, on a durable gate also after a restart.
//! So put this layer **behind authentication**: in axum, add the layer of the authentication after this one.

mod client_layer;
mod fenced_client;
mod layer;
mod refusal;
mod service;

pub use client_layer::FencedClientLayer;
pub use fenced_client::FencedClient;
use http::{HeaderName, HeaderValue};
pub use layer::FenceLayer;
use refusal::HttpRefusal;
pub use service::FenceService;

use super::FencingToken;

/// Header of a request: its token.
pub const HEADER: HeaderName = HeaderName::from_static("fencing-token");

/// Header of the answer to a stale request: the greatest token that was here, as `NAME=TOKEN`.
pub const HIGHEST: HeaderName = HeaderName::from_static("fencing-token-highest");

/// The token as the value of a header, for clients without tower. Check the lease first.
///
/// ```
/// # use tenure::fence::http;
/// # async fn example(lease: tenure::Lease) -> Result<(), tenure::Error> {
/// lease.check()?;
/// let value = http::header_value(lease.fencing_token());
/// // With reqwest: client.post(url).header(http::HEADER, value)
/// # drop(value);
/// # Ok(()) }
/// ```
pub fn header_value(token: &FencingToken) -> HeaderValue {
    HeaderValue::try_from(token.to_string()).expect("a token is printable ASCII")
}
