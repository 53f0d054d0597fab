//! One end of a connection, read in parts.

use std::io::{self, Read};
use std::net::TcpStream;

pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// Bytes that were read and not yet used.
    rest: Vec<u8>,
}

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, rest: Vec::new() }
    }

    /// The first line and the headers, with the empty line at their end.
    pub(crate) fn head(&mut self) -> io::Result<String> {
        self.until("\r\n\r\n")
    }

    /// The body that this head announces; `None` if it announces none.
    pub(crate) fn body(&mut self, head: &str) -> io::Result<Option<String>> {
        if let Some(length) = header(head, "content-length") {
            self.exactly(length.parse().unwrap()).map(Some)
        } else if header(head, "transfer-encoding").is_some_and(|coding| coding == "chunked") {
            self.chunks().map(Some)
        } else {
            Ok(None)
        }
    }

    pub(crate) fn everything(&mut self) -> io::Result<String> {
        let mut all = std::mem::take(&mut self.rest);
        self.stream.read_to_end(&mut all)?;
        Ok(String::from_utf8(all).unwrap())
    }

    fn chunks(&mut self) -> io::Result<String> {
        let mut all = String::new();
        loop {
            let line = self.until("\r\n")?;
            let length = usize::from_str_radix(line.trim().split(';').next().unwrap(), 16).unwrap();
            if length == 0 {
                // Trailers.
                while self.until("\r\n")? != "\r\n" {}
                return Ok(all);
            }
            all += &self.exactly(length)?;
            self.exactly(2)?;
        }
    }

    fn until(&mut self, end: &str) -> io::Result<String> {
        loop {
            if let Some(at) = self.rest.windows(end.len()).position(|window| window == end.as_bytes()) {
                return Ok(self.take(at + end.len()));
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, length: usize) -> io::Result<String> {
        while self.rest.len() < length {
            self.more()?;
        }
        Ok(self.take(length))
    }

    fn take(&mut self, length: usize) -> String {
        let rest = self.rest.split_off(length);
        String::from_utf8(std::mem::replace(&mut self.rest, rest)).unwrap()
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

pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
