//! Complete messages of HTTP/1.1, byte for byte, so that the signature of a forwarded request stays valid.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::request::ProxiedRequest;
use crate::server::{ACCESS_KEY, ACCOUNT, ACCOUNT_KEY, REGION, SECRET_KEY};
use crate::shared_key::SharedKey;
use crate::sign::Signer;

/// A connection that is read one message at a time.
#[derive(Debug)]
pub(crate) struct HttpStream {
    stream: TcpStream,
    /// Bytes that were read and not yet used.
    buffer: Vec<u8>,
}

/// A request with its body.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) bytes: Vec<u8>,
    /// Offset of the body.
    body: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Headers,
    /// True if the client sends no other request on this connection.
    pub(crate) last: bool,
}

/// An answer with its body.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) bytes: Vec<u8>,
    /// Offset of the body.
    pub(crate) body: usize,
    pub(crate) status: u16,
    headers: Headers,
    /// True if the server sends no other answer on this connection.
    pub(crate) last: bool,
    /// Method by which the end of the body is found.
    framing: Framing,
}

/// Names are in lower case.
type Headers = Vec<(String, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// There is no body, whatever the headers announce.
    None,
    Length(usize),
    Chunked,
    UntilClose,
}

impl ProxiedRequest for HttpRequest {
    fn method(&self) -> &str {
        &self.method
    }

    fn target(&self) -> &str {
        &self.target
    }

    fn is_write(&self) -> bool {
        self.method == "PUT"
    }

    fn header(&self, name: &str) -> Option<&str> {
        Self::header(self, name)
    }
}

impl HttpRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as it was sent: with the frames of its chunks, if it has any.
    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// The same request without its condition; `None` if it has none. It is signed again if its signature covers the
    /// condition.
    pub(crate) fn without_condition(&self) -> Option<Self> {
        const CONDITIONS: [&str; 3] = ["if-match", "if-none-match", "x-goog-if-generation-match"];
        CONDITIONS.iter().find(|name| self.header(name).is_some())?;
        let mut headers: Headers = self.headers.clone();
        headers.retain(|(name, _)| !CONDITIONS.contains(&name.as_str()));
        let (what, scheme) = ((self.method.as_str(), self.target.as_str()), self.header("authorization"));
        let signed = match scheme.and_then(|value| value.split(' ').next()) {
            Some("AWS4-HMAC-SHA256") => {
                let (access_key, secret_key) = (ACCESS_KEY, SECRET_KEY);
                let signer = Signer { access_key, secret_key, region: REGION, service: "s3" };
                signer.sign(self.header("host").unwrap_or_default(), what, &[], self.content())
            }
            Some("SharedKey") => {
                let replaced = ["x-ms-date", "x-ms-version"];
                let others = headers.iter().filter(|(name, _)| !replaced.contains(&name.as_str()));
                let others: Vec<_> = others.map(|(name, value)| (name.as_str(), value.as_str())).collect();
                SharedKey { account: ACCOUNT, key: ACCOUNT_KEY }.sign(what, &others, self.content())
            }
            // A token is no signature.
            _ => Vec::new(),
        };
        headers.retain(|(name, _)| signed.iter().all(|(replaced, _)| replaced != name));
        headers.extend(signed.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!("{} {} HTTP/1.1\r\n{}\r\n", self.method, self.target, lines.collect::<String>());
        let bytes = [head.as_bytes(), self.content()].concat();
        Some(Self { bytes, body: head.len(), headers, ..self.clone() })
    }
}

impl HttpAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as it was sent: with the frames of its chunks, if it has any.
    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// The part of the answer that arrives if the connection breaks within the body; `None` if the answer cannot have a
    /// body.
    pub(crate) fn broken(&self) -> Option<Vec<u8>> {
        let body = self.bytes.len() - self.body;
        match self.framing {
            Framing::None => None,
            Framing::Length(0) => {
                // The head announces more than there is.
                let head = String::from_utf8_lossy(&self.bytes);
                let lines = head.trim_end().split("\r\n");
                let others = lines.filter(|line| !line.to_ascii_lowercase().starts_with("content-length:"));
                let head = others.fold(String::new(), |head, line| head + line + "\r\n");
                Some(format!("{head}Content-Length: 64\r\n\r\n").into_bytes())
            }
            _ => Some(self.bytes[..self.body + body / 2].to_vec()),
        }
    }
}

impl HttpStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // The proxy adds no delay beyond those of its faults.
        let _ = stream.set_nodelay(true);
        Self { stream, buffer: Vec::new() }
    }

    /// The underlying connection, for bytes that are not HTTP messages.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next request; `None` when the client sends no more.
    pub(crate) async fn request(&mut self) -> io::Result<Option<HttpRequest>> {
        let Some(body) = self.head().await? else { return Ok(None) };
        let mut slots = [httparse::EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Request::new(&mut slots);
        parsed.parse(&self.buffer[..body]).map_err(io::Error::other)?;
        let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        let (method, target, version) = (method.to_owned(), target.to_owned(), parsed.version);
        let headers = owned(parsed.headers);
        let framing = match framing(&headers)? {
            // A request without a length has no body.
            Framing::UntilClose => Framing::None,
            framing => framing,
        };
        if find(&headers, "expect").is_some() && self.buffer.len() == body {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let end = self.end_of_body(body, framing).await?;
        let last = is_last(&headers, version);
        Ok(Some(HttpRequest { bytes: self.take(end), body, method, target, headers, last }))
    }

    /// The answer to a request with this method.
    pub(crate) async fn answer(&mut self, method: &str) -> io::Result<HttpAnswer> {
        loop {
            let body = self.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let mut slots = [httparse::EMPTY_HEADER; HEADERS];
            let mut parsed = httparse::Response::new(&mut slots);
            parsed.parse(&self.buffer[..body]).map_err(io::Error::other)?;
            let (status, version, headers) =
                (parsed.code.unwrap_or_default(), parsed.version, owned(parsed.headers));
            if status < 200 {
                // An interim answer, which precedes the final one.
                self.take(body);
                continue;
            }
            let framing = match status {
                204 | 304 => Framing::None,
                _ if method == "HEAD" => Framing::None,
                _ => framing(&headers)?,
            };
            let end = self.end_of_body(body, framing).await?;
            let last = framing == Framing::UntilClose || is_last(&headers, version);
            return Ok(HttpAnswer { bytes: self.take(end), body, status, headers, last, framing });
        }
    }

    /// Returns when the other side has closed the connection, or sends something unexpected.
    pub(crate) async fn closed(&mut self) {
        // No bytes are expected, so any byte ends the connection, too.
        let _ = self.fill().await;
    }

    /// Breaks the connection: by a reset, or by an orderly close.
    pub(crate) fn cut(self, orderly: bool) {
        if !orderly {
            let _ = self.stream.set_zero_linger();
        }
    }

    /// Reads until a complete head is in the buffer, and returns its end; `None` if the other side closes before it.
    async fn head(&mut self) -> io::Result<Option<usize>> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                return Ok(Some(at + 4));
            }
            if self.fill().await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// Reads until the complete body is in the buffer, and returns its end.
    async fn end_of_body(&mut self, begin: usize, framing: Framing) -> io::Result<usize> {
        match framing {
            Framing::None => Ok(begin),
            Framing::Length(length) => {
                self.at_least(begin.saturating_add(length)).await?;
                Ok(begin + length)
            }
            Framing::UntilClose => {
                while self.fill().await? > 0 {}
                Ok(self.buffer.len())
            }
            Framing::Chunked => {
                let mut at = begin;
                loop {
                    let line = self.line(at).await?;
                    let parsed = httparse::parse_chunk_size(&self.buffer[at..line]);
                    let Ok(httparse::Status::Complete((_, length))) = parsed else {
                        return Err(io::Error::other("a chunk without a length"));
                    };
                    at = line;
                    if length == 0 {
                        break;
                    }
                    let length = usize::try_from(length).map_err(io::Error::other)?;
                    at = at.saturating_add(length).saturating_add(2);
                    self.at_least(at).await?;
                }
                // Trailers, and the empty line after them.
                loop {
                    let line = self.line(at).await?;
                    let empty = line == at + 2;
                    at = line;
                    if empty {
                        return Ok(at);
                    }
                }
            }
        }
    }

    /// The end of the line that begins at `begin`.
    async fn line(&mut self, begin: usize) -> io::Result<usize> {
        loop {
            if let Some(at) = self.buffer[begin..].windows(2).position(|window| window == b"\r\n") {
                return Ok(begin + at + 2);
            }
            let length = self.buffer.len();
            self.at_least(length + 1).await?;
        }
    }

    async fn at_least(&mut self, length: usize) -> io::Result<()> {
        while self.buffer.len() < length {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<usize> {
        if self.buffer.len() > LARGEST {
            return Err(io::Error::other("a message that is too large to be held"));
        }
        self.stream.read_buf(&mut self.buffer).await
    }

    fn take(&mut self, end: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(end);
        std::mem::replace(&mut self.buffer, rest)
    }
}

fn owned(headers: &[httparse::Header<'_>]) -> Headers {
    let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
    headers.iter().map(|header| (header.name.to_ascii_lowercase(), text(header.value))).collect()
}

fn find<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
}

fn framing(headers: &Headers) -> io::Result<Framing> {
    if find(headers, "transfer-encoding")
        .is_some_and(|coding| coding.to_ascii_lowercase().ends_with("chunked"))
    {
        return Ok(Framing::Chunked);
    }
    match find(headers, "content-length") {
        Some(length) => Ok(Framing::Length(length.parse().map_err(io::Error::other)?)),
        None => Ok(Framing::UntilClose),
    }
}

fn is_last(headers: &Headers, version: Option<u8>) -> bool {
    match find(headers, "connection").map(str::to_ascii_lowercase).as_deref() {
        Some("close") => true,
        Some("keep-alive") => false,
        _ => version == Some(0),
    }
}

/// More headers than any client or server sends.
const HEADERS: usize = 100;

/// Messages are kept in memory completely; records are small.
const LARGEST: usize = 64 << 20;
