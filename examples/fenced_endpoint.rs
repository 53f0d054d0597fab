//! An HTTP endpoint that refuses the writes of an earlier holder. Server and clients are in this one file, and it ends by
//! itself.
//!
//! ```sh
//! cargo run -p tenure --features tower --example fenced_endpoint -- /tmp/leases
//! ```
//!
//! A writes, and is paused. B takes over and writes. A continues and writes with its old token, also after a restart of the
//! server. The server refuses it: `409 Conflict`.

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use axum::{Extension, Router};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tenure::Coordinator;
use tenure::fence::http::{FenceLayer, HEADER, header_value};
use tenure::fence::{FencingToken, Gate};
use tenure::store::File;
use tokio::net::TcpListener;

type BoxError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let leases = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let coordinator = Coordinator::connect(File::open(&leases)?).await?;
    let mut server = Server::start(leases.as_ref()).await?;

    let a = coordinator.lease("billing/nightly")?.acquire().await?;
    // A real client adds a FencedClientLayer instead, which checks the lease before each request. A is paused after its
    // check.
    let token_of_a = a.fencing_token().clone();
    println!("A writes: {}", write(server.address, &token_of_a).await?);
    a.release().await?;

    let b = coordinator.lease("billing/nightly")?.acquire().await?;
    println!("B writes: {}", write(server.address, b.fencing_token()).await?);
    println!("A writes late: {}", write(server.address, &token_of_a).await?);

    server.stop().await?;
    server = Server::start(leases.as_ref()).await?;
    println!("A writes after a restart of the server: {}", write(server.address, &token_of_a).await?);
    println!("B writes again: {}", write(server.address, b.fencing_token()).await?);
    b.release().await?;
    server.stop().await?;
    Ok(coordinator.shutdown().await?)
}

/// A server whose gate keeps its mark in a fenced value of the file store.
struct Server {
    address: SocketAddr,
    coordinator: Coordinator,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the server is a task of this example, which stops it")]
    async fn start(leases: &Path) -> Result<Self, BoxError> {
        let coordinator = Coordinator::connect(File::open(leases)?).await?;
        let mark = coordinator.fenced("ledger/mark")?;
        let gate = Gate::new("the ledger", "billing/nightly".parse()?).durable(mark);
        let router = Router::new().route("/entries", post(entry)).layer(FenceLayer::new(gate));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, coordinator, task })
    }

    async fn stop(self) -> Result<(), BoxError> {
        self.task.abort();
        Ok(self.coordinator.shutdown().await?)
    }
}

/// Only requests whose token the gate has admitted arrive here.
async fn entry(Extension(token): Extension<FencingToken>) -> String {
    format!("written with token {}\n", token.token())
}

async fn write(address: SocketAddr, token: &FencingToken) -> Result<StatusCode, BoxError> {
    let request = Request::post(format!("http://{address}/entries"));
    let request = request.header(HEADER, header_value(token)).body(Body::from("12.50"))?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    Ok(client.request(request).await?.status())
}
