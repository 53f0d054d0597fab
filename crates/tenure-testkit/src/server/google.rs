//! Stand-ins for Google Cloud Storage. Both speak only the JSON API correctly, so a translator stands in front of them.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::recipe::{BEARER_TOKEN, Recipe};
use crate::home::Home;
use crate::http;
use crate::port::Port;
use crate::translator::Translator;

/// fake-gcs-server: atomic conditions.
#[derive(Debug)]
pub(crate) struct FakeGcs;

/// gcp-storage-emulator: not safe. It ignores every condition.
#[derive(Debug)]
pub(crate) struct GcpEmulator;

impl Recipe for FakeGcs {
    /// One for the translator, one for the server.
    fn ports(&self) -> usize {
        2
    }

    fn command(&self, program: &Path, home: &Home, ports: &[Port]) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.args(["-scheme", "http", "-host", "127.0.0.1", "-port"]).arg(ports[1].number().to_string());
        // Its other backend keeps everything in memory, and a restart would lose it.
        command.args(["-backend", "filesystem", "-filesystem-root"]).arg(home.data());
        Ok(command)
    }

    fn is_ready(&self, ports: &[Port]) -> bool {
        http::status(server(ports), "GET", "/_internal/healthcheck", "").is_ok_and(|status| status == 200)
    }

    fn create_bucket(&self, _: &Home, ports: &[Port], name: &str) -> io::Result<()> {
        create_bucket(ports, name)
    }

    fn front(&self, ports: &[Port]) -> Option<Translator> {
        Some(Translator::start(ports[0].address(), server(ports), BEARER_TOKEN, 128))
    }
}

impl Recipe for GcpEmulator {
    /// One for the translator, one for the server.
    fn ports(&self) -> usize {
        2
    }

    fn command(&self, program: &Path, home: &Home, ports: &[Port]) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.arg("--data-dir").arg(home.data()).args([
            "start",
            "--quiet",
            "--host",
            "127.0.0.1",
            "--port",
        ]);
        command.arg(ports[1].number().to_string());
        Ok(command)
    }

    fn is_ready(&self, ports: &[Port]) -> bool {
        http::status(server(ports), "GET", "/", "").is_ok_and(|status| status == 200)
    }

    fn create_bucket(&self, _: &Home, ports: &[Port], name: &str) -> io::Result<()> {
        create_bucket(ports, name)
    }

    /// It accepts one connection at a time, and has a queue for five. Clients beyond that would wait for seconds.
    fn front(&self, ports: &[Port]) -> Option<Translator> {
        Some(Translator::start(ports[0].address(), server(ports), BEARER_TOKEN, 1))
    }
}

fn create_bucket(ports: &[Port], name: &str) -> io::Result<()> {
    let json = [("content-type", "application/json")];
    let body = format!(r#"{{"name":"{name}"}}"#);
    match http::ask(server(ports), ("POST", "/storage/v1/b?project=tenure"), &json, &body)? {
        // Created, or existed already.
        (200 | 409, _) => Ok(()),
        (status, answer) => Err(io::Error::other(format!("it answered {status}: {answer}"))),
    }
}

fn server(ports: &[Port]) -> SocketAddr {
    ports[1].address()
}
