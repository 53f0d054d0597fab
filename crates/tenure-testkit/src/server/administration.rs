//! Signed requests of an administrator to a server.

use super::{Server, Session};
use crate::http;
use crate::sign::Signer;

impl Server {
    /// The headers that a request to this server needs. `host` is the address that the client connects to.
    pub fn sign(&self, host: &str, method: &str, path: &str, body: &str) -> Vec<(&'static str, String)> {
        self.signer("s3").sign(host, (method, path), &[], body.as_bytes())
    }

    /// Sends a request as the administrator, and returns the complete answer. Panics if the server does not report
    /// success. The names of headers must be in lower case.
    #[track_caller]
    pub fn administer(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> String {
        self.ask("s3", (method, target), headers, body)
    }

    /// Credentials with only the rights that this policy grants. Only MinIO supports them.
    #[track_caller]
    pub fn session(&self, policy: &str) -> Session {
        let policy: String = policy.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = format!("Action=AssumeRole&Version=2011-06-15&DurationSeconds=3600&Policy={policy}");
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let answer = self.ask("sts", ("POST", "/"), &form, &body);
        Session::parse(&answer).unwrap_or_else(|| panic!("there are no credentials in this: {answer}"))
    }

    #[track_caller]
    fn ask(&self, service: &str, what: (&str, &str), headers: &[(&str, &str)], body: &str) -> String {
        let signed = self.signer(service).sign(&self.address().to_string(), what, headers, body.as_bytes());
        let signed = signed.iter().map(|(name, value)| (*name, value.as_str()));
        let all: Vec<(&str, &str)> = headers.iter().copied().chain(signed).collect();
        match http::ask(self.address(), what, &all, body) {
            Ok((200..300, answer)) => answer,
            other => panic!("{} did not do {what:?}: {other:?}\n{}", self.kind().program(), self.output()),
        }
    }

    fn signer<'a>(&self, service: &'a str) -> Signer<'a> {
        let (access_key, secret_key) = (self.access_key(), self.secret_key());
        Signer { access_key, secret_key, region: self.region(), service }
    }
}
