//! Requests for objects, in the protocol of each server.

use std::net::SocketAddr;

use tenure_testkit::{Dialect, Server};

use super::client::{Answer, Client};
use super::peer::header;

/// The objects of a server, each request with credentials and on a new connection.
#[derive(Clone, Copy)]
pub(crate) struct Objects<'a> {
    server: &'a Server,
    address: SocketAddr,
}

/// Condition of a write.
#[derive(Clone, Copy)]
pub(crate) enum Condition<'a> {
    Always,
    Absent,
    Version(&'a str),
}

impl<'a> Objects<'a> {
    pub(crate) fn of(server: &'a Server) -> Self {
        Self { server, address: server.address() }
    }

    /// The same objects through a proxy.
    pub(crate) fn at(server: &'a Server, address: SocketAddr) -> Self {
        Self { server, address }
    }

    /// Writes an object. The key is the rest of the path, with escapes.
    pub(crate) fn put(self, key: &str, body: &str, condition: Condition<'_>) -> Answer {
        self.try_put(key, body, condition).unwrap()
    }

    pub(crate) fn try_put(self, key: &str, body: &str, condition: Condition<'_>) -> std::io::Result<Answer> {
        let google = self.server.kind().dialect() == Dialect::Google;
        let condition = match condition {
            Condition::Always => None,
            Condition::Absent if google => Some(("x-goog-if-generation-match", "0")),
            Condition::Version(version) if google => Some(("x-goog-if-generation-match", version)),
            Condition::Absent => Some(("if-none-match", "*")),
            Condition::Version(version) => Some(("if-match", version)),
        };
        let azure = self.server.kind().dialect() == Dialect::Azure;
        let kind = azure.then_some(("x-ms-blob-type", "BlockBlob"));
        let headers: Vec<_> = condition.into_iter().chain(kind).collect();
        self.try_ask("PUT", key, &headers, body)
    }

    pub(crate) fn get(self, key: &str) -> Answer {
        self.ask("GET", key, &[])
    }

    pub(crate) fn ask(self, method: &str, key: &str, headers: &[(&str, &str)]) -> Answer {
        self.try_ask(method, key, headers, "").unwrap()
    }

    /// The path of an object, or of a bucket.
    pub(crate) fn path(self, key: &str) -> String {
        match self.server.kind().dialect() {
            Dialect::Azure => format!("/{}{key}", self.server.account()),
            Dialect::S3 | Dialect::Google => key.to_owned(),
        }
    }

    /// The version that an answer names.
    pub(crate) fn version(self, answer: &Answer) -> String {
        let google = self.server.kind().dialect() == Dialect::Google;
        let name = if google { "x-goog-generation" } else { "etag" };
        header(&answer.head, name).unwrap_or_else(|| panic!("no version: {answer:?}")).to_owned()
    }

    fn try_ask(
        self,
        method: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> std::io::Result<Answer> {
        let (host, path) = (self.address.to_string(), self.path(key));
        let signed = self.server.sign_with(&host, (method, &path), headers, body);
        let signed = signed.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<_> = headers.iter().copied().chain(signed).collect();
        Client::connect(self.address)?.ask(method, &path, &headers, body)
    }
}
