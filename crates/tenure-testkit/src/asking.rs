//! One plain HTTP request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::sign::sign;

/// Asks without a signature, and gives the status of the answer.
pub(crate) fn status(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<u16> {
    ask(address, method, path, "", body)
}

/// Asks with a signature, and gives the status of the answer.
pub(crate) fn signed(address: SocketAddr, method: &str, path: &str) -> io::Result<u16> {
    let headers = sign(&address.to_string(), method, path, "");
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    ask(address, method, path, &headers, "")
}

fn ask(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
    )?;
    let mut answer = Vec::new();
    // Some servers cut what they could have closed; the status has been said by then.
    let ended = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    status
        .ok_or_else(|| ended.err().unwrap_or_else(|| io::Error::other(format!("no HTTP answer: {answer:?}"))))
}

/// A server that has just started may need seconds for its first answer.
const PATIENCE: Duration = Duration::from_secs(20);
