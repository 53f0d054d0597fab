//! Signed requests of an administrator to a server.

use super::{Dialect, Server, Session};
use crate::http;
use crate::shared_key::SharedKey;
use crate::sign::Signer;
use crate::translator::crc32c;

impl Server {
    /// The headers that a request to this server needs. `host` is the address that the client connects to.
    pub fn sign(&self, host: &str, method: &str, path: &str, body: &str) -> Vec<(&'static str, String)> {
        self.sign_with(host, (method, path), &[], body)
    }

    /// The headers that a request with these headers needs, too. `host` is the address that the client connects to,
    /// `what` the method and the path. Azure's signature covers conditions, so they must be among the headers. The names
    /// of headers must be in lower case.
    pub fn sign_with(
        &self,
        host: &str,
        what: (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Vec<(&'static str, String)> {
        match self.kind().dialect() {
            Dialect::S3 => self.signer("s3").sign(host, what, headers, body.as_bytes()),
            Dialect::Azure => {
                let shared = SharedKey { account: self.account(), key: self.account_key() };
                shared.sign(what, headers, body.as_bytes())
            }
            Dialect::Google => vec![("authorization", format!("Bearer {}", self.bearer_token()))],
        }
    }

    /// Sends a request as the administrator, and returns the complete answer. Panics if the server does not report
    /// success. The names of headers must be in lower case.
    #[track_caller]
    pub fn administer(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> String {
        let host = self.address().to_string();
        self.ask((method, target), headers, self.sign_with(&host, (method, target), headers, body), body)
    }

    /// Configures a bucket, as by `lifecycle`. S3 accepts such a document only with a checksum.
    #[track_caller]
    pub fn configure(&self, bucket: &str, what: &str, document: &str) {
        let checksum = crc32c(document.as_bytes());
        self.administer(
            "PUT",
            &format!("/{bucket}?{what}"),
            &[("x-amz-checksum-crc32c", &checksum)],
            document,
        );
    }

    /// Credentials with only the rights that this policy grants. Only MinIO supports them.
    #[track_caller]
    pub fn session(&self, policy: &str) -> Session {
        let policy: String = policy.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = format!("Action=AssumeRole&Version=2011-06-15&DurationSeconds=3600&Policy={policy}");
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let host = self.address().to_string();
        let signed = self.signer("sts").sign(&host, ("POST", "/"), &form, body.as_bytes());
        let answer = self.ask(("POST", "/"), &form, signed, &body);
        Session::parse(&answer).unwrap_or_else(|| panic!("there are no credentials in this: {answer}"))
    }

    #[track_caller]
    fn ask(
        &self,
        what: (&str, &str),
        headers: &[(&str, &str)],
        signed: Vec<(&'static str, String)>,
        body: &str,
    ) -> String {
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
