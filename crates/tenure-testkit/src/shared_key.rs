//! Azure's signature with the key of a storage account.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use ring::hmac;

/// A storage account and its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedKey<'a> {
    pub(crate) account: &'a str,
    /// In base64.
    pub(crate) key: &'a str,
}

impl SharedKey<'_> {
    /// The headers to add to such a request. Some of the request's own headers are signed, too; their names must be in
    /// lower case, and `Content-Length` is not among them.
    pub(crate) fn sign(
        &self,
        (method, target): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Vec<(&'static str, String)> {
        let now = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let own = [("x-ms-date", now.as_str()), ("x-ms-version", VERSION)];
        // An empty body has no length here.
        let length = if body.is_empty() { String::new() } else { body.len().to_string() };
        let value = |name: &str| match name {
            "content-length" => length.as_str(),
            _ => headers.iter().find(|(header, _)| *header == name).map_or("", |(_, value)| *value),
        };
        let mut text = SIGNED.iter().fold(format!("{method}\n"), |text, name| text + value(name) + "\n");
        let mut special: Vec<_> =
            headers.iter().chain(&own).filter(|(name, _)| name.starts_with("x-ms-")).collect();
        special.sort_unstable();
        for (name, value) in special {
            writeln!(text, "{name}:{value}").expect("a string takes everything");
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        write!(text, "/{}{path}", self.account).expect("a string takes everything");
        let mut parameters: Vec<_> = query.split('&').filter(|parameter| !parameter.is_empty()).collect();
        parameters.sort_unstable();
        for parameter in parameters {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            write!(text, "\n{}:{value}", name.to_ascii_lowercase()).expect("a string takes everything");
        }
        let key = BASE64_STANDARD.decode(self.key).expect("the key is valid base64");
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes());
        let authorization = format!("SharedKey {}:{}", self.account, BASE64_STANDARD.encode(signature));
        vec![("x-ms-date", now), ("x-ms-version", VERSION.to_owned()), ("authorization", authorization)]
    }
}

/// Version of the API.
const VERSION: &str = "2023-11-03";

/// The signed headers that every request has a line for, in this order.
const SIGNED: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];
