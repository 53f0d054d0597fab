//! One connection that says exactly what it is told and repeats nothing.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection that stays open between requests.
pub(crate) struct Client {
    address: SocketAddr,
    stream: TcpStream,
    /// Read and not yet used.
    rest: Vec<u8>,
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
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self { address, stream, rest: Vec::new() })
    }

    /// Gives up on an answer after this.
    pub(crate) fn patient_for(self, time: Duration) -> Self {
        self.stream.set_read_timeout(Some(time)).unwrap();
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
        self.raw(method, request.as_bytes())
    }

    /// Sends these very bytes.
    pub(crate) fn raw(&mut self, method: &str, request: &[u8]) -> io::Result<Answer> {
        self.stream.write_all(request)?;
        let mut head;
        loop {
            head = self.until(b"\r\n\r\n")?;
            if !head.starts_with("HTTP/1.1 1") {
                break;
            }
        }
        let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
        let lower = head.to_lowercase();
        let body = if method == "HEAD" || status == 204 || status == 304 {
            Ok(String::new())
        } else if let Some((_, length)) = lower.split_once("\r\ncontent-length:") {
            let length = length.split("\r\n").next().unwrap().trim().parse().unwrap();
            self.exactly(length)
        } else if lower.contains("\r\ntransfer-encoding: chunked") {
            self.chunks()
        } else {
            let mut all = std::mem::take(&mut self.rest);
            self.stream.read_to_end(&mut all).map(|_| String::from_utf8(all).unwrap())
        };
        Ok(Answer { status, head, body })
    }

    fn chunks(&mut self) -> io::Result<String> {
        let mut all = String::new();
        loop {
            let length = usize::from_str_radix(self.until(b"\r\n")?.trim(), 16).unwrap();
            all += &self.exactly(length)?;
            self.exactly(2)?;
            if length == 0 {
                return Ok(all);
            }
        }
    }

    fn until(&mut self, end: &[u8]) -> io::Result<String> {
        loop {
            if let Some(at) = self.rest.windows(end.len()).position(|window| window == end) {
                let rest = self.rest.split_off(at + end.len());
                return Ok(String::from_utf8(std::mem::replace(&mut self.rest, rest)).unwrap());
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, length: usize) -> io::Result<String> {
        while self.rest.len() < length {
            self.more()?;
        }
        let rest = self.rest.split_off(length);
        Ok(String::from_utf8(std::mem::replace(&mut self.rest, rest)).unwrap())
    }

    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.rest.extend_from_slice(&buffer[..read]);
                Ok(())
            }
        }
    }
}
