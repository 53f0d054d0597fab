//! The NATS server of the kit.

use std::io::{Read, Write};
use std::net::TcpStream;

use tenure_testkit::NatsServer;

/// Sends these lines, and returns everything that the server sends until it has answered a ping.
fn exchange(server: &NatsServer, lines: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream
        .write_all(format!("CONNECT {{\"verbose\":false,\"headers\":true}}\r\n{lines}PING\r\n").as_bytes())
        .unwrap();
    let (mut answer, mut buffer) = (String::new(), [0; 4096]);
    while !answer.contains("PONG\r\n") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the server closed the connection: {answer}");
        answer.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    answer
}

#[test]
fn it_passes_messages_on_and_starts_again_on_its_port() {
    let Some(server) = NatsServer::start_or_skip() else { return };
    let address = server.address();
    for _ in 0..2 {
        let answer = exchange(&server, "SUB orders 1\r\nPUB orders 5\r\nhello\r\n");
        assert!(answer.starts_with("INFO ") && answer.contains("MSG orders 1 5\r\nhello\r\n"), "{answer}");
        server.restart();
        assert_eq!(server.address(), address);
    }
    assert!(server.output().contains("Server is ready"), "{}", server.output());
}
