//! HTTP requests that carry the token: a real server with axum on loopback, and real clients.

mod support;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tenure::fence::http::{FenceLayer, FencedClient, FencedClientLayer, HEADER, HIGHEST};
use tenure::fence::{Enter, FenceError, FencingToken, Gate, Seal};
use tenure::store::{File, Memory};
use tenure::{Coordinator, ErrorKind, Lease, Reason, Recorder};
use tenure_testkit::key;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt};

use support::refusals::Refusals;
use support::{eventually, spawn};

/// The state of a server: what was written, and a brake for its handlers.
#[derive(Clone)]
struct Ledger {
    written: Arc<Mutex<Vec<String>>>,
    began: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
}

impl Ledger {
    fn new() -> Self {
        let permits = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        Self { written: Arc::default(), began: Arc::default(), permits }
    }

    /// Its handlers wait for permits.
    fn braked() -> Self {
        Self { permits: Arc::new(Semaphore::new(0)), ..Self::new() }
    }

    fn written(&self) -> Vec<String> {
        self.written.lock().unwrap().clone()
    }
}

async fn write(
    State(ledger): State<Ledger>,
    token: Option<Extension<FencingToken>>,
    text: String,
) -> &'static str {
    ledger.began.fetch_add(1, Ordering::SeqCst);
    ledger.permits.acquire().await.unwrap().forget();
    let by = token.map_or_else(|| "no token".to_owned(), |token| token.to_string());
    ledger.written.lock().unwrap().push(format!("{text} by {by}"));
    "written\n"
}

/// A server that is stopped when dropped.
struct Server {
    address: SocketAddr,
    ledger: Ledger,
    task: JoinHandle<()>,
}

impl Server {
    async fn start<G: Enter + Clone + 'static>(layer: FenceLayer<G>, ledger: Ledger) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/entries", post(write))
            .layer(layer)
            .route("/health", get(async || "well\n"))
            .with_state(ledger.clone());
        let task = spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, ledger, task }
    }

    async fn post(&self, headers: &[&str], text: &str) -> Answer {
        post_to(self.address, headers, text).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(line, _)| line.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A plain client: it sends these bytes, and nothing that a library might correct.
async fn post_to(address: SocketAddr, headers: &[&str], text: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = text.len();
    let request = format!(
        "POST /entries HTTP/1.1\r\nHost: ledger\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{text}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

fn gate() -> Gate {
    Gate::new("the ledger", key("billing/nightly"))
}

#[tokio::test]
async fn a_stale_request_gets_409_with_the_highest_token_and_the_handler_does_not_run() {
    let gate = gate();
    let server = Server::start(FenceLayer::new(gate.clone()), Ledger::new()).await;
    for token in ["7", "7", "9"] {
        let answer = server.post(&[&format!("Fencing-Token: billing/nightly={token}")], "row").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "written\n"));
        assert_eq!(answer.header("fencing-token-highest"), None);
    }
    let answer = server.post(&["fencing-token: billing/nightly=7"], "late").await;
    assert_eq!(answer.status, 409);
    assert_eq!(answer.header(HIGHEST.as_str()), Some("billing/nightly=9"));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(
        answer.body,
        "the ledger refused token 7 of lease billing/nightly: token 9 has been there. A newer holder writes: stop for \
         good\n"
    );
    assert_eq!(server.ledger.began.load(Ordering::SeqCst), 3);
    assert_eq!(
        server.ledger.written(),
        ["row by billing/nightly=7", "row by billing/nightly=7", "row by billing/nightly=9"]
    );
    assert_eq!(gate.refused(), 1);
}

#[tokio::test]
async fn requests_without_one_usable_token_of_this_lease_are_refused_and_raise_nothing() {
    let gate = gate();
    let server = Server::start(FenceLayer::new(gate.clone()), Ledger::new()).await;
    for (headers, status, word) in [
        (&[][..], 428, "there is no header Fencing-Token"),
        (&["Fencing-Token: 7"], 400, "is not a fencing token"),
        (&["Fencing-Token:"], 400, "is not a fencing token"),
        (&["Fencing-Token: billing/nightly=0"], 400, "never granted"),
        (&["Fencing-Token: billing/nightly=99999999999999999999"], 400, "is not a token"),
        (&["Fencing-Token: billing/nightly=seven"], 400, "is not a token"),
        (&["Fencing-Token: grün=7"], 400, "percent-encode"),
        (&["Fencing-Token: billing/nightly=7, billing/nightly=9"], 400, "several"),
        (&["Fencing-Token: billing/nightly=7", "Fencing-Token: billing/nightly=7"], 400, "several"),
        (&["Fencing-Token: payroll=900"], 409, "is fenced by lease billing/nightly"),
    ] {
        let answer = server.post(headers, "row").await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
        assert!(answer.body.contains(word) && answer.body.lines().count() == 1, "{headers:?}: {answer:?}");
        assert_eq!(answer.header(HIGHEST.as_str()), None);
    }
    assert_eq!((gate.highest(), gate.refused()), (None, 1));
    gate.admit(&"billing/nightly=9".parse().unwrap()).unwrap();
    let answer = server.post(&["Fencing-Token: payroll=900"], "row").await;
    assert_eq!((answer.status, answer.header(HIGHEST.as_str())), (409, None));
    assert_eq!(server.ledger.began.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn requests_without_a_token_pass_if_that_is_allowed_and_bad_ones_still_do_not() {
    let gate = gate();
    let server = Server::start(FenceLayer::new(gate.clone()).allow_missing(), Ledger::new()).await;
    assert_eq!(server.post(&["Fencing-Token: billing/nightly=9"], "one").await.status, 200);
    assert_eq!(server.post(&[], "two").await.status, 200);
    assert_eq!(server.post(&["Fencing-Token: billing/nightly=7"], "three").await.status, 409);
    assert_eq!(server.post(&["Fencing-Token: x"], "four").await.status, 400);
    assert_eq!(server.ledger.written(), ["one by billing/nightly=9", "two by no token"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_of_a_newer_token_begins_after_the_running_ones_of_older_tokens() {
    let server = Server::start(FenceLayer::new(gate()), Ledger::braked()).await;
    let (address, ledger) = (server.address, server.ledger.clone());
    let send = |token: &'static str, text: &'static str| {
        spawn(async move { post_to(address, &[token], text).await.status })
    };
    let older =
        [send("Fencing-Token: billing/nightly=7", "a"), send("Fencing-Token: billing/nightly=7", "b")];
    eventually("two handlers run", || ledger.began.load(Ordering::SeqCst) == 2).await;
    let newer = send("Fencing-Token: billing/nightly=9", "c");
    // From the moment that 9 has arrived, 7 is refused. Until then it runs beside the others.
    let mut beside = Vec::new();
    for _ in 0..1000 {
        let late = send("Fencing-Token: billing/nightly=7", "d");
        let before = ledger.began.load(Ordering::SeqCst);
        eventually("answered or running", || {
            late.is_finished() || ledger.began.load(Ordering::SeqCst) > before
        })
        .await;
        if late.is_finished() {
            assert_eq!(late.await.unwrap(), 409);
            break;
        }
        beside.push(late);
    }
    assert_eq!(ledger.began.load(Ordering::SeqCst), 2 + beside.len(), "9 waits");
    ledger.permits.add_permits(2 + beside.len());
    for call in older.into_iter().chain(beside) {
        assert_eq!(call.await.unwrap(), 200);
    }
    ledger.permits.add_permits(1);
    assert_eq!(newer.await.unwrap(), 200);
    assert_eq!(ledger.written().last().unwrap(), "c by billing/nightly=9");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_closes_its_connection_leaves_no_pass_behind() {
    let server = Server::start(FenceLayer::new(gate()), Ledger::braked()).await;
    let (address, ledger) = (server.address, server.ledger.clone());
    let gone =
        spawn(async move { post_to(address, &["Fencing-Token: billing/nightly=7"], "a").await.status });
    eventually("its handler runs", || ledger.began.load(Ordering::SeqCst) == 1).await;
    gone.abort();
    let newer =
        spawn(async move { post_to(address, &["Fencing-Token: billing/nightly=9"], "b").await.status });
    eventually("the newer handler runs", || ledger.began.load(Ordering::SeqCst) == 2).await;
    ledger.permits.add_permits(1);
    assert_eq!(newer.await.unwrap(), 200);
    assert_eq!(ledger.written(), ["b by billing/nightly=9"]);
}

/// A fence that fails, with words that clients must not see.
struct Broken;

impl Seal for Broken {
    async fn seal<'w>(&'w self, token: &'w FencingToken) -> Result<(), FenceError> {
        if token.token().get() == 7 {
            return Err(FenceError::unknown("s3://secret-bucket/mark", "connection reset"));
        }
        Err(FenceError::refused("s3://secret-bucket/mark", Reason::Denied, "no rights"))
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_made_durable_gets_503_and_the_handler_does_not_run() {
    let server = Server::start(FenceLayer::new(gate().durable(Broken)), Ledger::new()).await;
    for token in ["Fencing-Token: billing/nightly=7", "Fencing-Token: billing/nightly=9"] {
        let answer = server.post(&[token], "row").await;
        assert_eq!((answer.status, answer.header(HIGHEST.as_str())), (503, None));
        assert!(answer.body.contains("try again") && !answer.body.contains("secret"), "{answer:?}");
    }
    assert_eq!(server.ledger.began.load(Ordering::SeqCst), 0);
}

/// A directory of a file store; deleted when dropped.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_restarted_server_refuses_the_stale_request_if_its_mark_is_in_a_store() {
    let name = format!("tenure-fence-http-{}", std::process::id());
    let directory = Directory(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    let started = async || {
        let coordinator = Coordinator::connect(File::open(&directory.0).unwrap()).await.unwrap();
        let mark = coordinator.fenced("ledger/mark").unwrap();
        (Server::start(FenceLayer::new(gate().durable(mark)), Ledger::new()).await, coordinator)
    };
    let (server, coordinator) = started().await;
    assert_eq!(server.post(&["Fencing-Token: billing/nightly=7"], "a").await.status, 200);
    assert_eq!(server.post(&["Fencing-Token: billing/nightly=9"], "b").await.status, 200);
    drop(server);
    coordinator.shutdown().await.unwrap();

    let (server, _coordinator) = started().await;
    let answer = server.post(&["Fencing-Token: billing/nightly=7"], "late").await;
    assert_eq!((answer.status, answer.header(HIGHEST.as_str())), (409, Some("billing/nightly=9")));
    assert_eq!(server.post(&["Fencing-Token: billing/nightly=9"], "c").await.status, 200);
    assert_eq!(server.ledger.written(), ["c by billing/nightly=9"]);

    // Without the durable mark, the same restart forgets.
    let forgetful = Server::start(FenceLayer::new(gate()), Ledger::new()).await;
    assert_eq!(forgetful.post(&["Fencing-Token: billing/nightly=7"], "late").await.status, 200);
}

/// A client of hyper under this lease, as a program would use it.
fn client(lease: &Arc<Lease>) -> FencedClient<Client<HttpConnector, Body>, Arc<Lease>> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    FencedClientLayer::new(Arc::clone(lease)).layer(client)
}

fn request(server: &Server, text: &'static str) -> Request<Body> {
    let uri = format!("http://{}/entries?secret=x", server.address);
    // A token that the program set by hand is replaced.
    Request::post(uri).header(HEADER, "billing/nightly=9007199254740991").body(Body::from(text)).unwrap()
}

#[tokio::test]
async fn a_client_sends_the_token_of_its_lease_and_its_refusal_is_told() {
    let refusals = Arc::new(Refusals::default());
    let recorder: Arc<dyn Recorder> = refusals.clone();
    let tenure = Coordinator::builder().recorder(recorder).connect(Memory::new()).await.unwrap();
    let lease = Arc::new(tenure.lease("billing/nightly").unwrap().acquire().await.unwrap());
    let gate = gate();
    let server = Server::start(FenceLayer::new(gate.clone()), Ledger::new()).await;
    let client = client(&lease);
    let response = client.clone().oneshot(request(&server, "row")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(server.ledger.written(), [format!("row by {}", lease.fencing_token())]);

    let newer = FencingToken::new(lease.key().clone(), lease.token().next().unwrap()).unwrap();
    gate.admit(&newer).unwrap();
    let response = client.clone().oneshot(request(&server, "late")).await.unwrap();
    assert_eq!(response.status(), StatusCode::CONFLICT);
    assert_eq!(response.headers()[HIGHEST], newer.to_string());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.ends_with(b"stop for good\n"));
    eventually("the refusal is told", || !refusals.0.lock().unwrap().is_empty()).await;
    assert_eq!(
        *refusals.0.lock().unwrap(),
        [("127.0.0.1/entries".to_owned(), Some(lease.token()), newer.token())]
    );
}

#[tokio::test]
async fn a_client_with_a_lost_lease_sends_nothing() {
    let tenure = Coordinator::connect(Memory::new()).await.unwrap();
    let lease = Arc::new(tenure.lease("billing/nightly").unwrap().acquire().await.unwrap());
    let server = Server::start(FenceLayer::new(gate()), Ledger::new()).await;
    let client = client(&lease);
    lease.release().await.unwrap();
    let error = client.clone().oneshot(request(&server, "late")).await.unwrap_err();
    assert_eq!(error.downcast_ref::<tenure::Error>().unwrap().kind(), ErrorKind::Lost);
    assert_eq!(server.ledger.began.load(Ordering::SeqCst), 0);
    assert_eq!(lease.idempotency_key(1).unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(tenure::fence::message::header(&lease).unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn the_term_of_a_leader_is_a_lease_for_a_client_too() {
    let tenure = Coordinator::connect(Memory::new()).await.unwrap();
    let election = tenure.election("billing/nightly").unwrap();
    let term = election.campaign().unwrap().next().await.unwrap();
    let server = Server::start(FenceLayer::new(gate()), Ledger::new()).await;
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let client = FencedClientLayer::new(term.clone()).layer(client);
    assert_eq!(client.oneshot(request(&server, "row")).await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.ledger.written(), [format!("row by billing/nightly={}", term.token())]);
}
