//! A small real server that records every request.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::peer::Peer;

/// Answers each request with its number: as a body with a length, unless the path demands another form.
pub(crate) struct Recorder {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, requests) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let theirs = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let theirs = Arc::clone(&theirs);
                std::thread::spawn(move || serve(stream.unwrap(), &theirs));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Method, path and body of each request.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, requests: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut peer = Peer::new(stream);
    loop {
        let head = peer.head()?;
        let body = peer.body(&head)?.unwrap_or_default();
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(format!("{method} {path} {body}").trim_end().to_owned());
            requests.len().to_string()
        };
        let length = number.len();
        let answer = match path {
            "/empty" => "200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "/chunked" => format!(
                "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nn \r\n{length:x}\r\n{number}\r\n0\r\nX-Sum: 1\r\n\r\n"
            ),
            "/until-close" => format!("200 OK\r\n\r\n{number}"),
            "/closing" => format!("200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{number}"),
            "/nothing" => "204 No Content\r\n\r\n".to_owned(),
            "/unchanged" => "304 Not Modified\r\nContent-Length: 12\r\n\r\n".to_owned(),
            "/stale" => "412 Precondition Failed\r\nContent-Length: 5\r\n\r\nstale".to_owned(),
            _ if method == "HEAD" => format!("200 OK\r\nContent-Length: {length}\r\n\r\n"),
            _ => format!("200 OK\r\nContent-Length: {length}\r\n\r\n{number}"),
        };
        peer.stream.write_all(format!("HTTP/1.1 {answer}").as_bytes())?;
        if matches!(path, "/until-close" | "/closing") {
            return Ok(());
        }
    }
}
