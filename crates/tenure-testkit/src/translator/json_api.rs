//! The server's side of the translator.

use std::io;
use std::net::SocketAddr;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use tokio::net::TcpStream;

use crate::proxy::{HttpAnswer, HttpStream};

/// A connection to the JSON API, opened on demand.
pub(crate) struct JsonApi {
    server: SocketAddr,
    wire: Option<HttpStream>,
    /// Time of the server's last answer.
    pub(crate) date: Option<String>,
}

impl JsonApi {
    pub(crate) fn new(server: SocketAddr) -> Self {
        Self { server, wire: None, date: None }
    }

    /// Sends a request and reads the complete answer.
    pub(crate) async fn ask(&mut self, method: &str, target: &str, body: &[u8]) -> io::Result<HttpAnswer> {
        // Kept only if the exchange succeeds.
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => HttpStream::new(TcpStream::connect(self.server).await?),
        };
        // Answers to HTTP/1.0 have no chunks.
        let head = format!(
            "{method} {target} HTTP/1.0\r\nHost: {}\r\nConnection: keep-alive\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            self.server,
            body.len()
        );
        wire.send(&[head.as_bytes(), body].concat()).await?;
        let answer = wire.answer(method).await?;
        self.wire = (!answer.last).then_some(wire);
        self.date = answer.header("date").map(str::to_owned);
        Ok(answer)
    }
}

/// A part of a URL, with escapes.
pub(crate) fn escaped(part: &[u8]) -> String {
    percent_encode(part, NON_ALPHANUMERIC).to_string()
}
