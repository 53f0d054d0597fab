//! An HTTP endpoint that only the leader serves. A follower answers with a redirect to the leader.
//!
//! ```sh
//! cargo run -p tenure --features tower --example leader_endpoint -- /tmp/leases   # in two terminals
//! curl -iL http://127.0.0.1:PORT/                                               # with the port that each of them prints
//! ```

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use tenure::election::gate::{LeaderGateLayer, NotLeader};
use tenure::store::File;
use tenure::{Coordinator, Election, Error, ErrorKind, Holder, Token};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::{Layer, Service, ServiceExt, service_fn};

#[tokio::main]
async fn main() -> ExitCode {
    match node().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("leader_endpoint: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn node() -> Result<(), Error> {
    let leases = std::env::args_os().nth(1).unwrap_or_else(|| "/tmp/leases".into());
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(of_network)?;
    let address = format!("http://{}", listener.local_addr().map_err(of_network)?);

    let coordinator = Coordinator::connect(File::open(leases)?).await?;
    // The address is announced with the grant, and only then.
    let election = coordinator.election("endpoint")?.holder(Holder::new("endpoint")?.at(&address)?);
    println!("listening at {address}");

    let (lead, leading) = watch::channel(None);
    let endpoint = service_fn(move |()| {
        let token = *leading.borrow();
        async move { Ok::<_, Infallible>(answer("200 OK", "", &written(token))) }
    });
    let gate = LeaderGateLayer::new(&election)?.answering(redirect).layer(endpoint);
    tokio::select! {
        never = serve(listener, gate) => never,
        ended = campaign(&election, lead) => ended,
    }
}

/// Campaigns without an end, and shows the token of the present term to the endpoint.
async fn campaign(election: &Election, lead: watch::Sender<Option<Token>>) -> Result<(), Error> {
    let mut campaign = election.campaign()?;
    loop {
        let term = campaign.next().await?;
        lead.send_replace(Some(term.token()));
        println!("leading, with token {}", term.token());
        let why = term.lost().await;
        println!("no longer leading: {why}");
    }
}

fn written(token: Option<Token>) -> String {
    // A real endpoint sends the token with each write to its database, which refuses smaller ones.
    token.map_or_else(|| "written".to_owned(), |token| format!("written with token {token}"))
}

/// The answer of a follower: the address of the leader, or *try again* if none is known.
fn redirect(not_leader: NotLeader) -> String {
    match not_leader.address() {
        Some(address) => {
            answer("307 Temporary Redirect", &format!("Location: {address}/\r\n"), &not_leader.to_string())
        }
        None => answer("503 Service Unavailable", "Retry-After: 1\r\n", &not_leader.to_string()),
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len() + 1;
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}\n")
}

/// A server for this example: one request per connection, one connection at a time. A real program uses hyper or axum.
async fn serve<S>(listener: TcpListener, mut gate: S) -> Result<(), Error>
where
    S: Service<(), Response = String, Error = tenure::election::gate::BoxError>,
{
    loop {
        let (stream, _) = listener.accept().await.map_err(of_network)?;
        let exchange = exchange(stream, &mut gate);
        // A client that says nothing must not keep the others waiting.
        #[expect(clippy::disallowed_methods, reason = "a limit for clients, and not for leases")]
        let _ = tokio::time::timeout(Duration::from_secs(1), exchange).await;
    }
}

async fn exchange<S>(mut stream: TcpStream, gate: &mut S) -> std::io::Result<()>
where
    S: Service<(), Response = String, Error = tenure::election::gate::BoxError>,
{
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") && head.len() < 8192 {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    let answered = match gate.ready().await {
        Ok(ready) => ready.call(()).await,
        Err(error) => Err(error),
    };
    let text = answered.unwrap_or_else(|error| answer("500 Internal Server Error", "", &error.to_string()));
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

fn of_network(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the endpoint cannot listen: {error}")).because(error)
}
