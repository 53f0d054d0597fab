//! A forward proxy, as in company networks: clients name the address that they want to reach.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::port::Port;
use crate::proxy::{HttpRequest, HttpStream};

/// A forward proxy on loopback, on its own thread. It serves `CONNECT`, and forwards requests whose target is an
/// absolute address.
///
/// Only the proxy resolves the names, so tests can use names that no DNS server knows.
#[derive(Debug)]
pub struct ForwardProxy {
    port: Port,
    state: Arc<ForwardState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct ForwardState {
    hosts: Mutex<BTreeMap<String, SocketAddr>>,
    /// Required value of `Proxy-Authorization`.
    password: Option<String>,
    log: Mutex<Vec<String>>,
}

impl ForwardProxy {
    /// Starts a proxy that serves every client.
    pub fn start() -> Self {
        Self::with(ForwardState::default())
    }

    /// Starts a proxy that serves only requests with exactly this `Proxy-Authorization`.
    pub fn start_for(authorization: &str) -> Self {
        Self::with(ForwardState { password: Some(authorization.to_owned()), ..ForwardState::default() })
    }

    fn with(state: ForwardState) -> Self {
        let (port, state) = (Port::reserve(), Arc::new(state));
        let (address, theirs) = (port.address(), Arc::clone(&state));
        let (stop, stopped) = oneshot::channel();
        let (ready, wait) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("forward proxy".to_owned());
        let thread = thread.spawn(move || {
            crate::block_on(async move {
                let listener = TcpListener::bind(address).await.expect("the port is reserved");
                ready.send(()).expect("the caller waits for it");
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, theirs) => {}
                }
            });
        });
        wait.recv().expect("the proxy starts");
        Self { port, state, stop: Some(stop), thread: Some(thread.expect("a thread can be started")) }
    }

    /// Routes this host to this address from now on, whatever port the client names.
    pub fn route(&self, host: &str, address: SocketAddr) {
        let mut hosts = self.state.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.insert(host.to_owned(), address);
    }

    /// The URL of the proxy: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.port.address())
    }

    /// Method and target of every request, in the order of arrival.
    pub fn log(&self) -> Vec<String> {
        self.state.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl ForwardState {
    /// The address of this host and port.
    fn address(&self, authority: &str) -> Option<SocketAddr> {
        let (host, _) = authority.rsplit_once(':').unwrap_or((authority, ""));
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(host).copied().or_else(|| authority.parse().ok())
    }
}

async fn accept(listener: TcpListener, state: Arc<ForwardState>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(serve(client, Arc::clone(&state)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(client: TcpStream, state: Arc<ForwardState>) -> io::Result<()> {
    let mut client = HttpStream::new(client);
    while let Some(request) = client.request().await? {
        let line = format!("{} {}", request.method, request.target);
        state.log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        if state
            .password
            .as_deref()
            .is_some_and(|password| request.header("proxy-authorization") != Some(password))
        {
            client
                .send(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
                .await?;
            continue;
        }
        if request.method == "CONNECT" {
            let Some(mut server) = reach(&state, &request.target).await else {
                client.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").await?;
                continue;
            };
            client.send(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
            // Neither side sends before the connection exists, so the proxy has read nothing ahead.
            copy_bidirectional(&mut client.into_stream(), &mut server).await?;
            return Ok(());
        }
        let Some((authority, bytes)) = in_origin_form(&request) else {
            client.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await?;
            continue;
        };
        let Some(server) = reach(&state, &authority).await else {
            client.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 21\r\n\r\n<h1>Bad Gateway</h1>\n").await?;
            continue;
        };
        let mut server = HttpStream::new(server);
        server.send(&bytes).await?;
        let answer = server.answer(&request.method).await?;
        client.send(&answer.bytes).await?;
    }
    Ok(())
}

async fn reach(state: &ForwardState, authority: &str) -> Option<TcpStream> {
    TcpStream::connect(state.address(authority)?).await.ok()
}

/// The server that a request names, and the request in the form that this server expects.
fn in_origin_form(request: &HttpRequest) -> Option<(String, Vec<u8>)> {
    let rest = request.target.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let head = format!("{} {}", request.method, request.target);
    let mut bytes = format!("{} /{path}", request.method).into_bytes();
    bytes.extend_from_slice(&request.bytes[head.len()..]);
    let authority = if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
    Some((authority, bytes))
}
