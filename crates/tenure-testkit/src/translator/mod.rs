//! A translator between Google's two protocols: clients speak the XML API, and the server behind it the JSON API.
//!
//! The stand-ins for Google check conditions only in the JSON API, if at all. The translator decides nothing: it passes
//! each condition on, and passes the server's decision back. Only the 304 of a read is its own, from an ETag that the
//! server has just given.

mod checksum;
mod json_api;
mod xml_answer;
mod xml_request;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use checksum::crc32c;
use json_api::JsonApi;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use xml_request::XmlRequest;

use crate::proxy::HttpStream;

/// A translator on loopback, on its own thread. Dropping it ends the pending requests and closes all connections.
///
/// The pending requests come first because fake-gcs-server writes the content of an object and then its attributes: if
/// it is killed in between, a create finds no object, although there was one.
#[derive(Debug)]
pub(crate) struct Translator {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Translator {
    /// Listens at `address`, for clients with this token. The server gets at most `parallel` requests at a time.
    pub(crate) fn start(address: SocketAddr, server: SocketAddr, token: &'static str, parallel: u32) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ready, wait) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("translator".to_owned());
        let thread = thread.spawn(move || {
            crate::block_on(async move {
                let listener = TcpListener::bind(address).await.expect("the port is reserved");
                ready.send(()).expect("the starting thread waits");
                let (mut connections, pending) =
                    (JoinSet::new(), Arc::new(Semaphore::new(parallel as usize)));
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, &mut connections, |client| {
                        serve(client, server, token, Arc::clone(&pending))
                    }) => {}
                }
                // The server may hang, so the wait has a limit.
                let _ = tokio::time::timeout(PATIENCE, pending.acquire_many(parallel)).await;
            });
        });
        wait.recv().expect("the translator starts");
        Self { stop: Some(stop), thread: Some(thread.expect("a thread can be started")) }
    }
}

impl Drop for Translator {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept<F>(listener: TcpListener, connections: &mut JoinSet<()>, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(serve(client));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one client. If the server does not answer, the client is cut off, as it would be without a translator. Each
/// pending request holds a permit.
async fn serve(client: TcpStream, server: SocketAddr, token: &'static str, pending: Arc<Semaphore>) {
    let (mut client, mut api) = (HttpStream::new(client), JsonApi::new(server));
    while let Ok(Some(request)) = client.request().await {
        let _pending = pending.acquire().await;
        let Ok(answer) = XmlRequest::new(&request, token).answer(&mut api).await else {
            return client.cut(false);
        };
        if client.send(&answer.bytes(&request.method)).await.is_err() || request.last {
            return;
        }
    }
}

/// Longest time for the pending requests to end.
const PATIENCE: Duration = Duration::from_secs(5);
