//! One connection of a client, and its connection to the server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use super::Fault;
use super::message::{HttpAnswer, HttpRequest, HttpStream};
use super::shared::{DueFault, ProxyShared, UnderWay};

/// One connection of a client. It lives as long as its connection to the server, as it would without a proxy.
pub(crate) struct Connection {
    client: HttpStream,
    server: Upstream,
    shared: Arc<ProxyShared>,
    number: u64,
}

/// Connection to the server, opened on demand.
struct Upstream {
    address: SocketAddr,
    wire: Option<HttpStream>,
}

/// Next step for the client's connection.
enum NextStep {
    GoOn,
    Close,
    /// Cut the connection: by an orderly close, or by a reset.
    Cut {
        orderly: bool,
    },
}

impl Connection {
    pub(crate) fn new(client: TcpStream, server: SocketAddr, shared: Arc<ProxyShared>, number: u64) -> Self {
        let server = Upstream { address: server, wire: None };
        Self { client: HttpStream::new(client), server, shared, number }
    }

    pub(crate) async fn serve(mut self) {
        loop {
            let request = tokio::select! {
                request = self.client.request() => request,
                () = self.server.closed() => return,
            };
            let Ok(Some(request)) = request else { return };
            let under_way = self.shared.arrived(&request, self.number);
            let then = match under_way.due() {
                None => self.pass_on(&request, under_way).await,
                Some(due) => self.fail(&request, due, under_way).await,
            };
            match then {
                NextStep::GoOn if !request.last => {}
                NextStep::Cut { orderly } => return self.client.cut(orderly),
                NextStep::GoOn | NextStep::Close => return,
            }
        }
    }

    /// Forwards the request without a fault. If the server does not answer, the client's connection is cut.
    async fn pass_on(&mut self, request: &HttpRequest, mut under_way: UnderWay) -> NextStep {
        match self.server.ask(request, &mut under_way).await {
            Ok(answer) => self.tell(&answer.bytes, answer.status, answer.last, under_way).await,
            Err(_) => NextStep::Cut { orderly: false },
        }
    }

    async fn fail(&mut self, request: &HttpRequest, due: DueFault, mut under_way: UnderWay) -> NextStep {
        let cut = NextStep::Cut { orderly: due.orderly };
        match due.fault {
            Fault::CutBefore => under_way.happened(),
            Fault::CutAfter => {
                if self.server.ask(request, &mut under_way).await.is_ok() {
                    under_way.happened();
                }
            }
            Fault::CutMidAnswer => {
                let Ok(answer) = self.server.ask(request, &mut under_way).await else { return cut };
                let Some(broken) = answer.broken() else {
                    return self.tell(&answer.bytes, answer.status, answer.last, under_way).await;
                };
                under_way.happened();
                self.tell(&broken, answer.status, true, under_way).await;
                // A reset could overtake the bytes that the client must receive.
                return NextStep::Close;
            }
            Fault::CutThenDeliver(after) => self.deliver_later(request.clone(), after, under_way),
            Fault::HangThenDeliver(after) => {
                self.deliver_later(request.clone(), after, under_way);
                self.hang(after).await;
            }
            Fault::TwiceFirstAnswer | Fault::TwiceSecondAnswer => {
                let first = self.server.ask(request, &mut under_way).await;
                let second = self.server.ask(request, &mut under_way).await;
                let (Ok(first), Ok(second)) = (first, second) else { return cut };
                under_way.happened();
                let answer = if due.fault == Fault::TwiceFirstAnswer { first } else { second };
                return self.tell(&answer.bytes, answer.status, answer.last, under_way).await;
            }
            Fault::AgainLater(after) => {
                let Ok(answer) = self.server.ask(request, &mut under_way).await else { return cut };
                under_way.answered(answer.status);
                self.deliver_later(request.clone(), after, under_way);
                return self.send(&answer.bytes, answer.last).await;
            }
            Fault::SwallowRequest(time) => {
                under_way.happened();
                self.hang(time).await;
            }
            Fault::SwallowAnswer(time) => {
                if self.server.ask(request, &mut under_way).await.is_ok() {
                    under_way.happened();
                    self.hang(time).await;
                }
            }
            Fault::DelayRequest(time) => {
                sleep(time).await;
                let Ok(answer) = self.server.ask(request, &mut under_way).await else { return cut };
                under_way.happened();
                return self.tell(&answer.bytes, answer.status, answer.last, under_way).await;
            }
            Fault::DelayAnswer(time) => {
                let Ok(answer) = self.server.ask(request, &mut under_way).await else { return cut };
                sleep(time).await;
                under_way.happened();
                return self.tell(&answer.bytes, answer.status, answer.last, under_way).await;
            }
            Fault::AnswerInstead(error) => {
                under_way.happened();
                return self.tell(&error.bytes(request), error.status, false, under_way).await;
            }
            Fault::AnswerAfter(error) => {
                let Ok(answer) = self.server.ask(request, &mut under_way).await else { return cut };
                under_way.happened();
                return self.tell(&error.bytes(request), error.status, answer.last, under_way).await;
            }
            Fault::ForgetCondition => {
                let Some(request) = request.without_condition() else {
                    return self.pass_on(request, under_way).await;
                };
                let Ok(answer) = self.server.ask(&request, &mut under_way).await else { return cut };
                under_way.happened();
                return self.tell(&answer.bytes, answer.status, answer.last, under_way).await;
            }
        }
        cut
    }

    /// Ends the exchange. The log and the counts contain it completely before the client gets the answer, because a
    /// test reads them as soon as its client returns.
    async fn tell(&mut self, bytes: &[u8], status: u16, last: bool, under_way: UnderWay) -> NextStep {
        under_way.answered(status);
        drop(under_way);
        self.send(bytes, last).await
    }

    async fn send(&mut self, bytes: &[u8], last: bool) -> NextStep {
        match self.client.send(bytes).await {
            Ok(()) if !last => NextStep::GoOn,
            Ok(()) | Err(_) => NextStep::Close,
        }
    }

    /// Stays silent until the client gives up or the time is over.
    async fn hang(&mut self, time: Duration) {
        tokio::select! {
            () = self.client.closed() => {}
            () = sleep(time) => {}
        }
    }

    /// Delivers the request on a new connection, because this one may be closed by then.
    fn deliver_later(&self, request: HttpRequest, after: Duration, mut under_way: UnderWay) {
        let mut server = Upstream { address: self.server.address, wire: None };
        tokio::spawn(async move {
            sleep(after).await;
            if server.ask(&request, &mut under_way).await.is_ok() {
                under_way.happened();
            }
        });
    }
}

impl Upstream {
    /// Sends the request and reads the complete answer.
    async fn ask(&mut self, request: &HttpRequest, under_way: &mut UnderWay) -> io::Result<HttpAnswer> {
        // Kept only if the exchange succeeds.
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => HttpStream::new(TcpStream::connect(self.address).await?),
        };
        wire.send(&request.bytes).await?;
        let answer = wire.answer(&request.method).await?;
        under_way.served(answer.status);
        self.wire = (!answer.last).then_some(wire);
        Ok(answer)
    }

    /// Returns when the server has closed the connection; never, if there is none.
    async fn closed(&mut self) {
        match &mut self.wire {
            Some(wire) => wire.closed().await,
            None => std::future::pending().await,
        }
    }
}
