//! One connection that sends exactly the given requests, and never retries.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::peer::Peer;

/// A connection that stays open between requests.
pub(crate) struct Client {
    address: SocketAddr,
    peer: Peer,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// An error if the answer was cut after its head.
    pub(crate) body: io::Result<String>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::connect(address).unwrap()
    }

    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        Ok(Self { address, peer: Peer::new(stream) }.patient_for(Duration::from_secs(30)))
    }

    /// Sets the longest time to wait for an answer.
    pub(crate) fn patient_for(self, time: Duration) -> Self {
        self.peer.stream.set_read_timeout(Some(time)).unwrap();
        self
    }

    pub(crate) fn put(&mut self, path: &str, body: &str) -> io::Result<Answer> {
        self.ask("PUT", path, &[], body)
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.raw(&request)
    }

    /// Sends exactly these bytes.
    pub(crate) fn raw(&mut self, request: &str) -> io::Result<Answer> {
        self.peer.stream.write_all(request.as_bytes())?;
        self.answer(request.starts_with("HEAD"))
    }

    pub(crate) fn answer(&mut self, without_body: bool) -> io::Result<Answer> {
        let head = self.peer.head()?;
        let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
        let body = if without_body || matches!(status, 100 | 204 | 304) {
            Ok(String::new())
        } else {
            match self.peer.body(&head) {
                Ok(Some(body)) => Ok(body),
                Ok(None) => self.peer.everything(),
                Err(error) => Err(error),
            }
        };
        Ok(Answer { status, head, body })
    }
}
